"""Signs that a Spark query has continued since a batch, and how long to wait for such a sign.

Nothing in a checkpoint location shows whether its query is running. A running query starts a batch
only if there are records to read, so the absence of a newer batch proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from decoder.storage import join
from migrate.inputs.spark_log import newest_committed_batch, newest_uncommitted_batch
from migrate.inputs.spark_log_entries import entry_numbers, offsets_path, read_entry
from migrate.inputs.spark_query import committed_at, query_directory
from migrate.inputs.watch import (
    LONGEST_WAIT,
    QueryWatch,
    longest_interval,
    possible_wait,
    seconds_since,
)
from migrate.model.errors import InputError
from migrate.model.positions import Origin
from migrate.storage.files import Files, MissingExtra

# The number of recent batches from which the interval is measured.
_LAST_BATCHES = 5


def batch_signs(origin: Origin) -> Iterator[str]:
    """Yield each sign that a query has committed or started another batch since ``origin``.

    A batch in ``origin.newer`` is not a sign, because the query had already started this batch when
    the positions were read.

    Raises:
        InputError, MissingExtra, OSError: the checkpoint location cannot be read.
    """
    files = Files()
    directory = query_directory(origin.pointer, files)
    newest = newest_committed_batch(directory, files)
    if newest != origin.number:
        committed = "no batch" if newest is None else f"batch {newest}"
        yield f"it has committed {committed}, but the move is from batch {origin.number}"
        return
    # A query that was reset to an earlier batch commits the same number again.
    if (
        origin.written_at is not None
        and committed_at(directory, newest, files) != origin.written_at
    ):
        yield f"it has committed batch {newest} again"
    begun = newest_uncommitted_batch(directory, files, newest)
    if begun is not None and begun not in origin.newer:
        yield f"it has started batch {begun}, but the move is from batch {origin.number}"


def find_query_watch(origin: Origin) -> QueryWatch:
    """Return how long to wait for a query's next batch.

    The interval is the longest time between recent entries of the offset log. With asynchronous
    progress tracking, the query runs batches in between, but does not log them.
    """
    files = Files()
    try:
        directory = query_directory(origin.pointer, files)
        batches = entry_numbers(files, join(directory, "offsets"))[-_LAST_BATCHES:]
        started = [_start_of(offsets_path(directory, batch), files) for batch in batches]
    except (InputError, MissingExtra, OSError, ValueError):
        return QueryWatch(None, None, None)
    times = [at for at in started if at is not None]
    interval = longest_interval(enumerate(times))
    age = seconds_since(times[-1]) if times else None
    is_fresh = age is not None and age <= LONGEST_WAIT
    watch = QueryWatch(interval, age, possible_wait(interval, is_fresh=is_fresh))
    return replace(watch, wait=None) if watch.is_old else watch


def _start_of(path: str, files: Files) -> int | None:
    """Return the time at which a batch started, in epoch milliseconds; None if unknown.

    The time is in the entry (``batchTimestampMs``). An epoch of the continuous trigger does not
    contain it, so the result is then the modification time of the file. Source: OffsetSeqMetadata @
    Spark 3.5.1, 4.0.0, 4.1.1, 4.2.0.
    """
    metadata = json.loads(read_entry(files, path).metadata or "{}")
    at = metadata.get("batchTimestampMs") if isinstance(metadata, dict) else None
    return at if isinstance(at, int) else files.modified_at(path)
