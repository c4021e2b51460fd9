"""A Spark checkpoint location: where its query goes on, and where it started.

::

    metadata        the query's id
    commits/N       batch N is done
    offsets/N       the end of batch N: a version, the query's metadata, then a line per source
    sources/S/0     the start of source S in batch 0; Kafka's begins with a zero byte

A batch without its commit is run again, so the query goes on where its newest *committed* batch
ended, and before the first one at the seeds. Batches need not follow each other: with asynchronous
progress tracking only some are logged. A query that was started by ``startingOffsets`` has seeds
too: Spark writes them before batch 0. Only the continuous trigger neither writes nor heeds them.

Source: org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution,
org.apache.spark.sql.kafka010.{KafkaMicroBatchStream, KafkaContinuousStream} @ Spark 4.2.0, and
their predecessors @ 3.5.1, 4.0.0 and 4.1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from decoder import ByteSource
from decoder.storage import join
from migrate.inputs.offsets_json import NotOffsets, parse_json
from migrate.inputs.spark_log_entries import (
    Offsets,
    check_commit,
    commit_path,
    entry_numbers,
    list_directory,
    offsets_path,
    read_entry,
    read_offsets,
    read_seed,
    read_text,
    seed_path,
)
from migrate.model.errors import InputError, Refused
from migrate.model.positions import PositionSet
from migrate.storage.files import Files

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def committed_positions(
    label: str, directory: str | Path, files: ByteSource | None = None
) -> PositionSet:
    """Return where the query goes on when it is started again.

    Args:
        label: the name of the positions.
        directory: the checkpoint location, as ``files`` names it.
        files: reads it; by default local paths and object stores.

    Raises:
        InputError: this is no checkpoint location, or damaged, or of an unknown version.
        Refused: two of its sources have different positions of one partition.
    """
    directory, files = str(directory), files or Files()
    batch = newest_committed_batch(directory, files)
    if batch is None:
        return starting_positions(label, directory, files)
    query_id(directory, files)
    return positions_after(label, directory, batch, files)


def positions_after(label: str, directory: str, batch: int, files: ByteSource) -> PositionSet:
    """Return where a batch ended.

    Raises:
        InputError, Refused: as for `committed_positions`.
    """
    sources = read_offsets(files, offsets_path(directory, batch))
    if not sources:
        raise InputError(f"{directory}: its query reads no Kafka source")
    return PositionSet(label, _merge(directory, sources.values()), f"after batch {batch}")


def logged_batches(
    directory: str, files: ByteSource
) -> Iterator[tuple[int, Mapping[str, Offsets]]]:
    """Yield the end of each committed batch that is still logged, by source, the oldest first.

    Spark deletes the oldest entries as the query goes on.

    Raises:
        InputError: an entry is damaged or of an unknown version.
    """
    newest = newest_committed_batch(directory, files)
    for batch in _planned(directory, files):
        path = offsets_path(directory, batch)
        if newest is not None and batch <= newest and files.is_file(path):
            yield batch, read_offsets(files, path)


def starting_positions(
    label: str, directory: str | Path, files: ByteSource | None = None
) -> PositionSet:
    """Return where the query started, or will start if it has not run yet.

    Partitions that were added to a topic later are missing. The arguments are those of
    `committed_positions`.

    Raises:
        InputError: as for `committed_positions`, or there is no seed of a Kafka source.
        Refused: as for `committed_positions`.
    """
    directory, files = str(directory), files or Files()
    seeds = kafka_seeds(directory, files)
    if not seeds:
        raise InputError(
            f"{directory}: no committed batch and no seed of a Kafka source in it (sources/0/0); "
            "is it the checkpointLocation of a micro-batch query?"
            if not entry_numbers(files, join(directory, "commits"))
            else f"{directory}: no seed of a Kafka source in it (sources/0/0): where it started "
            "cannot be told"
        )
    return PositionSet(label, _merge(directory, seeds.values()), "before batch 0")


def kafka_seeds(directory: str, files: ByteSource) -> dict[str, Offsets]:
    """Return where each Kafka source starts batch 0, by the source's number or name.

    Raises:
        InputError: there is no such directory, a seed is damaged or of an unknown version, or
            Spark would not accept the directory as a query's.
    """
    query_id(directory, files)
    seeds = {}
    for source in list_directory(files, join(directory, "sources")) or ():
        path = seed_path(directory, source)
        if files.is_file(path) and (seed := read_seed(files, path)) is not None:
            seeds[source] = seed
    return seeds


def query_id(directory: str, files: ByteSource) -> str | None:
    """Return the query's id; None without ``metadata``, which Spark then writes with a new id.

    Raises:
        InputError: there is no such directory, or its ``metadata`` is damaged: then Spark does not
            start, as with an incomplete seed.
    """
    if list_directory(files, directory) is None:
        raise InputError(f"{directory}: no such directory; name the checkpointLocation of a query")
    path = join(directory, "metadata")
    if not files.is_file(path):
        return None
    try:
        metadata = parse_json(read_text(files, path))
    except NotOffsets as error:
        raise InputError(f"{path}: {error}") from error
    own_id = metadata.get("id") if isinstance(metadata, dict) else None
    if not isinstance(own_id, str) or not _UUID.fullmatch(own_id):
        raise InputError(f"{path}: it does not hold the id of a query")
    return own_id


def newest_committed_batch(directory: str, files: ByteSource) -> int | None:
    """Return the number of the batch after which the query goes on; None before its first.

    Raises:
        InputError: the two logs disagree, so that Spark would go on elsewhere; or a repartitioning
            of the query's state is unfinished.
    """
    # This log before the other: a running query may commit one batch and plan two in between.
    planned = _planned(directory, files)
    committed = entry_numbers(files, join(directory, "commits"))
    if not committed:
        return None
    newest = committed[-1]
    check_commit(files, commit_path(directory, newest))
    # Spark takes the newest entry but one for committed, whatever commits/ says.
    if sum(batch > newest for batch in planned) > 1:
        raise InputError(
            f"{directory}: commits/ ends with {newest} and offsets/ with {planned[-1]}: Spark "
            "would go on after a batch that is not committed"
        )
    if planned and planned[-1] > newest:
        _check_goes_on(directory, files, newest, planned[-1])
    return newest


def batch_begun(directory: str, files: ByteSource, committed: int) -> int | None:
    """Return the number of a planned batch after the newest committed one, or None."""
    planned = _planned(directory, files)
    return planned[-1] if planned and planned[-1] > committed else None


def has_run(directory: str, files: ByteSource) -> bool:
    """Return whether a query has begun a batch there."""
    return bool(_planned(directory, files))


def was_started(directory: str, files: ByteSource) -> bool:
    """Return whether a query was started there: Spark makes its logs' directories first.

    In Real-Time Mode it may have written by then: a batch is logged at its end.
    """
    return list_directory(files, join(directory, "offsets")) is not None


def began_continuous(directory: str, files: ByteSource) -> bool:
    """Return whether the oldest entry of the offset log is an epoch of the continuous trigger.

    Its metadata is an empty line (ContinuousExecution.commit, OffsetSeqLog.serialize @ Spark 3.5.1
    and 4.0.0). Older entries are deleted as the query goes on.

    Raises:
        InputError: the entry is damaged or of an unknown version.
    """
    planned = _planned(directory, files)
    return bool(planned) and not read_entry(files, offsets_path(directory, planned[0]))[1]


def _planned(directory: str, files: ByteSource) -> list[int]:
    """Return the numbers of the batches in the offset log."""
    return entry_numbers(files, join(directory, "offsets"))


def _check_goes_on(directory: str, files: ByteSource, committed: int, begun: int) -> None:
    """Check that a begun batch ends where the committed one did, or later.

    A repartitioning commits a failed batch as skipped, and begins one more with the offsets of the
    batch before it. Until that one is committed, the skipped batch looks like one that was read
    (OfflineStateRepartitionRunner @ Spark 4.3.0).

    Raises:
        InputError: it ends before, or where the batch before the committed one did.
    """
    paths = [offsets_path(directory, batch) for batch in (committed - 1, committed, begun)]
    older, ended, begins = (
        read_offsets(files, path) if files.is_file(path) else None for path in paths
    )
    for source, offsets in (ended or {}).items():
        for place, offset in offsets.items():
            again = (begins or {}).get(source, {}).get(place)
            # A deleted topic is missing from later batches: that alone is no problem.
            is_behind = again < offset if again is not None else begins == older
            if is_behind:
                raise InputError(
                    f"{directory}: batch {begun} is begun and not committed, and ends {place[0]}-"
                    f"{place[1]} {'nowhere' if again is None else f'at {again}'}, and batch "
                    f"{committed}, which is committed, at {offset}: an unfinished repartitioning "
                    "of the query's state (or a topic that was created again): let it end first"
                )


def _merge(directory: str, sources: Iterable[Offsets]) -> Offsets:
    merged: Offsets = {}
    for offsets in sources:
        for place, offset in offsets.items():
            if merged.setdefault(place, offset) != offset:
                raise Refused(
                    f"{directory}: two sources of the query read {place[0]}-{place[1]} and stand "
                    f"at {merged[place]} and {offset}"
                )
    return merged
