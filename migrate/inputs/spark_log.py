"""The positions of a Spark query, read from its checkpoint location.

::

    metadata        the query's ID
    commits/N       batch N is complete
    offsets/N       the end of batch N: a version, the query's metadata, then a line per source
    sources/S/0     the seed: the start of source S in batch 0; for Kafka it begins with a zero byte

A restarted query resumes from the end of its newest *committed* batch, because Spark reruns an
uncommitted batch. Spark plans a batch only after the previous batch is committed. The ``commits``
directory has no entries if it was lost or if Spark 2.1.0 wrote it. In that case, the query reruns
the newest batch in ``offsets``, starting from the end of the previous batch. Without a committed
batch, the query starts at the seeds. If the seeds are missing, Spark writes them before batch 0
from ``startingOffsets``. The continuous trigger does not use seeds. With asynchronous progress
tracking, only some batches are logged.

Source: org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution,
org.apache.spark.sql.kafka010.{KafkaMicroBatchStream, KafkaContinuousStream} @ Spark 4.2.0, and
their predecessors @ 3.5.1, 4.0.0, and 4.1.1.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from decoder import ByteSource
from decoder.storage import METADATA_FILE, checkpoint_number, join
from migrate.inputs.offsets_json import parse_json
from migrate.inputs.spark_log_entries import (
    EmptyEntry,
    Offsets,
    commit_path,
    entry_numbers,
    input_errors,
    list_directory,
    offsets_path,
    read_commit,
    read_entry,
    read_offsets,
    read_seed,
    read_text,
    seed_path,
)
from migrate.model.catalog import (
    BATCH_AND_COMMITS_MISSING,
    BATCH_MISSING,
    COMMITS_BEYOND_OFFSETS,
    COMMITS_MISSING,
    FLINK_CHECKPOINT_AS_QUERY,
    NO_CHECKPOINT_LOCATION,
    NO_KAFKA_SOURCE_IN_QUERY,
    NO_QUERY_AT_LOCATION,
    QUERY_ID_UNREADABLE,
    QUERY_IS_FILE,
    QUERY_START_UNKNOWN,
    STREAMS_AT_DIFFERENT_POSITIONS,
    UNCOMMITTED_BATCH_BEHIND,
    UNCOMMITTED_BATCH_WITHOUT_PARTITION,
)
from migrate.model.errors import InputError, Refused
from migrate.model.message import Message
from migrate.model.positions import SPARK_PREFIX, PositionSet
from migrate.storage.files import Files
from migrate.storage.suggest_path import locations_to_suggest

# If a directory is not a checkpoint location, the user may have meant one of its subdirectories.
# This is the maximum number of subdirectories to check.
_MOST_NAMED = 50
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def committed_positions(
    label: str, directory: str | Path, files: ByteSource | None = None
) -> PositionSet:
    """Return the positions from which a restarted query resumes.

    Args:
        label: the name of the positions.
        directory: the checkpoint location, as a path in ``files``.
        files: the storage to read from; by default, local files and object stores.

    Raises:
        InputError: the directory is not a checkpoint location; its query reads from no Kafka
            source; or `newest_committed_batch` raises it.
        Refused: two sources have different positions for one partition.
    """
    directory, files = str(directory), files or Files()
    batch = newest_committed_batch(directory, files)
    if batch is None:
        start = starting_positions(label, directory, files)
        if is_in_first_batch(directory, files):
            return replace(start, note="in batch 0, which is not committed")
        return start
    query_id(directory, files)
    return positions_after(label, directory, batch, files)


def positions_after(label: str, directory: str, batch: int, files: ByteSource) -> PositionSet:
    """Return the positions at the end of a batch.

    Raises:
        InputError, Refused: as in `committed_positions`.
    """
    sources = kafka_offsets(directory, batch, files)
    if not sources:
        raise InputError(NO_KAFKA_SOURCE_IN_QUERY(location=directory))
    return PositionSet(label, _merge(directory, sources.values()), f"after batch {batch}")


def kafka_offsets(directory: str, batch: int, files: ByteSource) -> dict[str, Offsets]:
    """Return the end offsets of a batch in each Kafka source, by the source's number or name.

    A source is omitted if its seed shows that it belongs to a different connector.

    Raises:
        InputError: an entry is damaged or has an unknown version.
    """
    others = _other_sources(directory, files)
    offsets = read_offsets(files, offsets_path(directory, batch))
    return {source: ends for source, ends in offsets.items() if source not in others}


def _other_sources(directory: str, files: ByteSource) -> set[str]:
    """Return the numbers or names of the sources whose seeds are not those of Kafka sources."""
    seeded = _seeded_sources(directory, files)
    return {source for source in seeded if read_seed(files, seed_path(directory, source)) is None}


def _seeded_sources(directory: str, files: ByteSource) -> list[str]:
    """Return the numbers or names of the sources that have written their start offsets."""
    names = list_directory(files, join(directory, "sources")) or ()
    return [source for source in names if files.is_file(seed_path(directory, source))]


def assumed_sources(directory: str, batch: int, files: ByteSource) -> list[str]:
    """Return the sources that have no seed, but whose offsets have the format of Kafka offsets.

    Only the format suggests that they are Kafka sources. Spark's Kafka source writes a seed to
    ``sources/<source>/0``, except under the continuous trigger. For this trigger, the result is
    empty.

    Raises:
        InputError: as in ``kafka_offsets``.
    """
    if oldest_is_continuous(directory, files):
        return []
    seeded = _seeded_sources(directory, files)
    return [source for source in kafka_offsets(directory, batch, files) if source not in seeded]


def logged_batches(
    directory: str, files: ByteSource
) -> Iterator[tuple[int, Mapping[str, Offsets]]]:
    """Yield (committed batch, its end offsets by source) from the offset log, oldest first.

    A running query deletes old entries, so entries that are deleted in the meantime are omitted.

    Raises:
        InputError: as in `newest_committed_batch`.
    """
    newest = newest_committed_batch(directory, files)
    others = _other_sources(directory, files)
    for batch in _offset_log_batches(directory, files):
        path = offsets_path(directory, batch)
        if newest is not None and batch <= newest and files.is_file(path):
            offsets = read_offsets(files, path)
            yield batch, {source: ends for source, ends in offsets.items() if source not in others}


def planned_batch(directory: str, files: ByteSource) -> tuple[int, Mapping[str, Offsets]] | None:
    """Return the uncommitted batch that Spark has planned, and its end offsets by source.

    Return None if the newest planned batch is committed, or if Spark is still writing its entry.

    Raises:
        InputError: as in `newest_committed_batch`.
    """
    committed = newest_committed_batch(directory, files)
    batch = newest_uncommitted_batch(directory, files, -1 if committed is None else committed)
    if batch is None:
        return None
    try:
        return batch, kafka_offsets(directory, batch, files)
    except EmptyEntry:
        return None


def starting_positions(
    label: str, directory: str | Path, files: ByteSource | None = None
) -> PositionSet:
    """Return the positions at which the query started, or will start if it has not run yet.

    The result lacks partitions that were added to a topic later. For the arguments, see
    `committed_positions`.

    Raises:
        InputError: as in `committed_positions`, or no Kafka source has a seed.
        Refused: as in `committed_positions`.
    """
    directory, files = str(directory), files or Files()
    seeds = kafka_seeds(directory, files)
    if not seeds:
        raise InputError(why_no_start(directory, files))
    return PositionSet(label, _merge(directory, seeds.values()), "before batch 0")


def why_no_start(directory: str, files: ByteSource) -> Message:
    """Return the reason that a directory has no seed for a Kafka source."""
    names = list_directory(files, directory) or ()
    if METADATA_FILE in names or any(checkpoint_number(name) is not None for name in names):
        return FLINK_CHECKPOINT_AS_QUERY(path=directory)
    if entry_numbers(files, join(directory, "commits")):
        return QUERY_START_UNKNOWN(location=directory)
    below = (join(directory, name) for name in names[:_MOST_NAMED])
    alike = [SPARK_PREFIX + path for path in below if files.is_file(join(path, "metadata"))]
    alike = alike or locations_to_suggest(directory, files)
    return NO_QUERY_AT_LOCATION(location=directory, alike=alike)


def kafka_seeds(directory: str, files: ByteSource) -> dict[str, Offsets]:
    """Return each Kafka source's start offsets in batch 0, by the source's number or name.

    Raises:
        InputError: a seed is damaged or has an unknown version, or `query_id` raises it.
    """
    query_id(directory, files)
    seeds = {}
    for source in list_directory(files, join(directory, "sources")) or ():
        path = seed_path(directory, source)
        if files.is_file(path) and (seed := read_seed(files, path)) is not None:
            seeds[source] = seed
    return seeds


def query_id(directory: str, files: ByteSource) -> str | None:
    """Return the query's ID; None if ``metadata`` is missing, so Spark creates a new ID.

    Raises:
        InputError: the directory is missing or is a file; or ``metadata`` is damaged, so Spark
            would not start the query.
    """
    if list_directory(files, directory) is None:
        if posixpath.basename(directory) == METADATA_FILE and files.is_file(directory):
            raise InputError(FLINK_CHECKPOINT_AS_QUERY(path=directory))
        alike = locations_to_suggest(directory, files)
        if files.is_file(directory):
            raise InputError(QUERY_IS_FILE(path=directory, alike=alike))
        raise InputError(NO_CHECKPOINT_LOCATION(location=directory, alike=alike))
    path = join(directory, "metadata")
    if not files.is_file(path):
        return None
    with input_errors(path):
        metadata = parse_json(read_text(files, path))
    own_id = metadata.get("id") if isinstance(metadata, dict) else None
    if not isinstance(own_id, str) or not _UUID.fullmatch(own_id):
        raise InputError(QUERY_ID_UNREADABLE(path=path))
    return own_id


def newest_committed_batch(directory: str, files: ByteSource) -> int | None:
    """Return the number of the newest committed batch, or None if no batch is committed.

    If there is no commit log, the second-newest planned batch counts as committed, as in Spark
    (MicroBatchExecution.populateStartOffsets @ 3.5.1, 4.0.0, 4.1.1, and 4.2.0). If there is no
    commit log under the continuous trigger, no batch counts as committed, because Spark starts the
    query as a new query (ContinuousExecution.getStartOffsets @ 4.0.0).

    Raises:
        InputError: the offset log and the commit log disagree, so Spark would fail or would not
            resume after this batch; the repartitioning of the query's state has not been completed;
            or an entry is damaged or has an unknown version.
    """
    # Read the offset log first. In the reverse order, a running query could commit a batch and plan
    # the next batch between the two reads, and both batches would seem uncommitted.
    planned = _offset_log_batches(directory, files)
    committed = entry_numbers(files, join(directory, "commits"))
    if not committed:
        if oldest_is_continuous(directory, files):
            return None
        return _newest_but_one(directory, planned)
    newest = committed[-1]
    if planned and planned[-1] < newest:
        raise InputError(
            COMMITS_BEYOND_OFFSETS(location=directory, committed=newest, planned=planned[-1])
        )
    read_commit(files, commit_path(directory, newest))
    # Spark treats the second-newest entry of offsets/ as committed, even if commits/ lacks it.
    # Spark would then resume after a batch that is newer than ``newest``.
    if sum(batch > newest for batch in planned) > 1:
        raise InputError(COMMITS_MISSING(location=directory, committed=newest, planned=planned[-1]))
    _check_second_newest(directory, files, planned, committed)
    if planned and planned[-1] > newest:
        _check_not_behind(directory, files, newest, planned[-1])
    return newest


def _newest_but_one(directory: str, planned: Sequence[int]) -> int | None:
    """Return the number of the batch before the newest planned batch.

    Return None if no batch is planned, or if the newest planned batch is batch 0.
    """
    if not planned or planned[-1] == 0:
        return None
    before = planned[-1] - 1
    if planned[-2:-1] != [before]:
        raise InputError(
            BATCH_AND_COMMITS_MISSING(location=directory, planned=planned[-1], missing=before)
        )
    return before


def _check_second_newest(
    directory: str, files: ByteSource, planned: Sequence[int], committed: Sequence[int]
) -> None:
    """Check that the offset log contains the batch before its newest batch.

    Spark reads that batch even if the newest batch is committed. With asynchronous progress
    tracking, Spark logs only some batches (the same batches in both logs), and reads the last batch
    that it logged before the newest batch.

    Raises:
        InputError: the batch is missing, and the logs show neither asynchronous progress nor the
            continuous trigger.
    """
    if not planned or planned[-1] == 0 or planned[-1] - 1 in planned:
        return
    before = planned[-1] - 1
    may_be_async = len(planned) > 1 and before not in committed
    if not may_be_async and not oldest_is_continuous(directory, files):
        raise InputError(BATCH_MISSING(location=directory, planned=planned[-1], missing=before))


def newest_uncommitted_batch(directory: str, files: ByteSource, committed: int) -> int | None:
    """Return the number of the newest planned batch if it is not committed, else None."""
    planned = _offset_log_batches(directory, files)
    return planned[-1] if planned and planned[-1] > committed else None


def has_begun_batch(directory: str, files: ByteSource) -> bool:
    """Return whether a query has started a batch in this checkpoint location."""
    return bool(_offset_log_batches(directory, files))


def is_in_first_batch(directory: str, files: ByteSource) -> bool:
    """Return whether a micro-batch query has started batch 0 but not committed it.

    Raises:
        InputError: as in `newest_committed_batch`.
    """
    return (
        newest_committed_batch(directory, files) is None
        and has_begun_batch(directory, files)
        and not oldest_is_continuous(directory, files)
    )


def was_started(directory: str, files: ByteSource) -> bool:
    """Return whether a query was ever started.

    The evidence is the directory ``offsets``, which Spark creates before the first batch. An
    empty directory also counts, because in Real-Time Mode, a query may write records before a batch
    is in its logs.
    """
    return list_directory(files, join(directory, "offsets")) is not None


def oldest_is_continuous(directory: str, files: ByteSource) -> bool:
    """Return whether the oldest entry of the offset log is an epoch of the continuous trigger.

    The metadata of such an entry is an empty line (ContinuousExecution.commit,
    OffsetSeqLog.serialize @ Spark 3.5.1 and 4.0.0).

    Raises:
        InputError: the entry is damaged or has an unknown version.
    """
    planned = _offset_log_batches(directory, files)
    return bool(planned) and not read_entry(files, offsets_path(directory, planned[0])).metadata


def _offset_log_batches(directory: str, files: ByteSource) -> list[int]:
    """Return the batches in the offset log."""
    return entry_numbers(files, join(directory, "offsets"))


def _check_not_behind(directory: str, files: ByteSource, committed: int, begun: int) -> None:
    """Refuse a started batch whose offsets are lower than the committed offsets.

    To repartition a query's state, Spark commits a failed batch as skipped, and starts a new batch
    with the offsets from before the failed batch. Until the new batch is committed, the skipped
    batch seems to have read its records (OfflineStateRepartitionRunner @ Spark 4.3.0).

    Raises:
        InputError: the started batch has a lower offset than the committed batch; or it lacks a
            partition, and its other offsets equal those of the batch before the committed batch.
    """
    paths = [offsets_path(directory, batch) for batch in (committed - 1, committed, begun)]
    older, committed_ends, begun_ends = (
        read_offsets(files, path) if files.is_file(path) else None for path in paths
    )
    for source, offsets in (committed_ends or {}).items():
        for place, offset in offsets.items():
            begun_end = (begun_ends or {}).get(source, {}).get(place)
            # A missing partition alone is not a problem, because its topic may have been deleted.
            facts: dict[str, Any] = {
                "location": directory,
                "batch": begun,
                "partition": f"{place[0]}-{place[1]}",
                "committed": committed,
                "committed_offset": offset,
            }
            if begun_end is None and begun_ends == older:
                raise InputError(UNCOMMITTED_BATCH_WITHOUT_PARTITION(**facts))
            if begun_end is not None and begun_end < offset:
                raise InputError(UNCOMMITTED_BATCH_BEHIND(**facts, offset=begun_end))


def _merge(directory: str, sources: Iterable[Offsets]) -> Offsets:
    merged: Offsets = {}
    for offsets in sources:
        for place, offset in offsets.items():
            if merged.setdefault(place, offset) != offset:
                raise Refused(
                    STREAMS_AT_DIFFERENT_POSITIONS(
                        location=directory,
                        partition=f"{place[0]}-{place[1]}",
                        first=merged[place],
                        second=offset,
                    )
                )
    return merged
