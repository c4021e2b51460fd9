"""What a Spark checkpoint location says: where its query goes on, and where it started.

::

    metadata        the query's id
    commits/N       batch N is done
    offsets/N       where batch N ends: a version, the query's metadata, then a line per source
    sources/S/0     where source S starts batch 0; Kafka's begins with a zero byte

A line of ``offsets/N`` is the source's offset in version 1, sources in the order of the plan, and
``<source>:<offset>`` in version 2, which Spark 4.2 writes where it is told to. A source S is a
number or, from Spark 4.2 on, the name that its reader gave it.

A batch without its commit is run again, so the query goes on where its newest *committed* batch
ended, and before the first one at the seeds. Batches need not follow each other: with asynchronous
progress tracking only some are logged. A query that was started by ``startingOffsets`` has seeds
too: Spark writes them before batch 0. Only the continuous trigger neither writes nor heeds them.

A source whose offset is ``-`` has had none; Kafka's has none only while it has no partition.
Sources of other kinds are passed over. The ``.crc`` files that Hadoop keeps beside local ones are
not read: Spark reads through Hadoop's FileContext, which does not check them, stale or not.

Source: org.apache.spark.sql.execution.streaming.checkpointing.{HDFSMetadataLog, OffsetSeqLog,
CommitLog}, org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution,
org.apache.spark.sql.kafka010.{KafkaMicroBatchStream, KafkaSourceInitialOffsetWriter,
KafkaContinuousStream} @ Spark 4.2.0, and what came before them @ 3.5.1, 4.0.0 and 4.1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from decoder import ByteSource
from decoder.storage import StorageUnavailable, join
from migrate.inputs.offsets_json import NotOffsets, parse_json, topic_offsets
from migrate.model.errors import InputError, Refused
from migrate.model.positions import PositionSet, TopicPartition
from migrate.storage.files import Files

# The versions of each log, and which Sparks write them.
_OFFSET_LOGS = {"v1": "Spark 2.1 and newer", "v2": "Spark 4.2"}
_COMMIT_LOGS = {
    "v1": "Spark 2.1 and newer",
    "v2": "Spark 4.0",
    "v3": "Spark 4.2",
}
_SEEDS = {"v1": "Spark 2.1 and newer"}

# OffsetSeqMetadataV2 @ Spark 4.2.0, which reads control batches and writes none.
_CONTROL_BATCH = '"controlBatchInfo"'

# What KafkaSourceInitialOffsetWriter puts first, for the sake of Spark 2.1.
_KAFKA_SEED = b"\0"
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_Offsets = dict[TopicPartition, int]


def committed_positions(
    label: str, directory: str | Path, files: ByteSource | None = None
) -> PositionSet:
    """Where the query goes on when it is started again.

    Args:
        label: what the positions are called.
        directory: its checkpoint location, as ``files`` names it.
        files: where it lies; local paths and object stores without it.

    Raises:
        InputError: it is no checkpoint location, or damaged, or of a version not known.
        Refused: two of its sources read one partition and stand at different places.
    """
    directory, files = str(directory), files or Files()
    batch = newest_committed_batch(directory, files)
    if batch is None:
        return starting_positions(label, directory, files)
    query_id(directory, files)
    return positions_after(label, directory, batch, files)


def positions_after(label: str, directory: str, batch: int, files: ByteSource) -> PositionSet:
    """Where a batch ended.

    Raises:
        InputError, Refused: as for `committed_positions`.
    """
    sources = _offsets_by_source(files, offsets_path(directory, batch))
    if not sources:
        raise InputError(f"{directory}: its query reads no Kafka source")
    return PositionSet(label, _merge(directory, sources.values()), f"after batch {batch}")


def logged_batches(
    directory: str, files: ByteSource
) -> Iterator[tuple[int, Mapping[str, _Offsets]]]:
    """Where each committed batch that is still logged ended, by source as in `kafka_seeds`; the
    oldest first. Spark deletes the oldest as the query goes on.

    Raises:
        InputError: an entry is damaged or of a version not known.
    """
    newest = newest_committed_batch(directory, files)
    for batch in numbers(files, join(directory, "offsets")):
        path = offsets_path(directory, batch)
        if newest is None or batch > newest or not files.is_file(path):
            continue
        yield batch, _offsets_by_source(files, path)


def starting_positions(
    label: str, directory: str | Path, files: ByteSource | None = None
) -> PositionSet:
    """Where the query started, or will where it has not run yet.

    A partition that was added to a topic later is not among them. The arguments are those of
    `committed_positions`.

    Raises:
        InputError: as for `committed_positions`, or it has no seed of a Kafka source.
        Refused: as for `committed_positions`.
    """
    directory, files = str(directory), files or Files()
    seeds = kafka_seeds(directory, files)
    if not seeds:
        raise InputError(
            f"{directory}: no committed batch and no seed of a Kafka source in it (sources/0/0); "
            "is it the checkpointLocation of a micro-batch query?"
            if not numbers(files, join(directory, "commits"))
            else f"{directory}: no seed of a Kafka source in it (sources/0/0): where it started "
            "cannot be told"
        )
    return PositionSet(label, _merge(directory, seeds.values()), "before batch 0")


def kafka_seeds(directory: str, files: ByteSource) -> dict[str, _Offsets]:
    """Where each Kafka source starts batch 0, by the source's number or name.

    Raises:
        InputError: there is no such directory, a seed is damaged or of a version not known, or
            Spark would not take the directory for a query's.
    """
    query_id(directory, files)
    seeds = {}
    for source in _names(files, join(directory, "sources")):
        path = seed_path(directory, source)
        if files.is_file(path) and _is_kafkas(files, path):
            seeds[source] = _read_seed(files, path)
    return seeds


def seed_path(directory: str, source: str) -> str:
    """The seed of a source, by the source's number or name."""
    return join(directory, "sources", source, "0")


def query_id(directory: str, files: ByteSource) -> str | None:
    """The query's id; None where there is no ``metadata``, and Spark would give it one.

    Raises:
        InputError: there is no such directory, or its ``metadata`` holds something else: then
            Spark does not start, as with a seed that was not written to its end.
    """
    if _list(files, directory) is None:
        raise InputError(f"{directory}: no such directory; name the checkpointLocation of a query")
    path = join(directory, "metadata")
    if not files.is_file(path):
        return None
    try:
        metadata = parse_json(_text(files, path))
    except NotOffsets as error:
        raise InputError(f"{path}: {error}") from error
    found = metadata.get("id") if isinstance(metadata, dict) else None
    if not isinstance(found, str) or not _UUID.fullmatch(found):
        raise InputError(f"{path}: it does not hold the id of a query")
    return found


def newest_committed_batch(directory: str, files: ByteSource) -> int | None:
    """The number of the batch after which the query goes on; None before its first.

    Raises:
        InputError: the two logs do not go together, so that Spark would go on elsewhere; or
            a repartitioning of the query's state has not come to its end.
    """
    # This log before the other: a query that runs commits a batch, and plans two, meanwhile.
    planned = numbers(files, join(directory, "offsets"))
    committed = numbers(files, join(directory, "commits"))
    if not committed:
        return None
    newest = committed[-1]
    commit = commit_path(directory, newest)
    _check_version(commit, _text(files, commit).partition("\n")[0], _COMMIT_LOGS)
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
    """The number of a batch after the newest committed one that is planned; None of none."""
    planned = numbers(files, join(directory, "offsets"))
    return planned[-1] if planned and planned[-1] > committed else None


def has_run(directory: str, files: ByteSource) -> bool:
    """Whether a query has begun a batch there."""
    return bool(numbers(files, join(directory, "offsets")))


def was_started(directory: str, files: ByteSource) -> bool:
    """Whether a query was started there: Spark makes its logs' directories before it plans. In
    Real-Time Mode it may have written by now all the same: a batch is logged where it ends."""
    return _list(files, join(directory, "offsets")) is not None


def began_continuous(directory: str, files: ByteSource) -> bool:
    """Whether the oldest entry of the offset log is an epoch of the continuous trigger, which has
    no metadata: its line is empty (ContinuousExecution.commit, OffsetSeqLog.serialize @ Spark 3.5.1
    and 4.0.0). Older entries are deleted as the query goes on.

    Raises:
        InputError: the entry is damaged or of a version not known.
    """
    logged = numbers(files, join(directory, "offsets"))
    if not logged:
        return False
    lines = _entry(files, join(directory, "offsets", str(logged[0])))
    return not lines[1]


def offsets_path(directory: str, batch: int) -> str:
    """The file that says where a batch ends."""
    return join(directory, "offsets", str(batch))


def commit_path(directory: str, batch: int) -> str:
    """The file that says that a batch is done."""
    return join(directory, "commits", str(batch))


def _check_goes_on(directory: str, files: ByteSource, committed: int, begun: int) -> None:
    """A batch that is begun ends where the committed one did, or later.

    A repartitioning commits a failed batch as skipped, and begins one more with the offsets of the
    batch before it. Until it has committed that, too, the skipped batch looks like one that was
    read (OfflineStateRepartitionRunner @ Spark 4.3.0).

    Raises:
        InputError: it ends before, or where the batch before the committed one did.
    """
    paths = [offsets_path(directory, batch) for batch in (committed - 1, committed, begun)]
    older, ended, begins = (
        _offsets_by_source(files, path) if files.is_file(path) else None for path in paths
    )
    for source, offsets in (ended or {}).items():
        for place, offset in offsets.items():
            again = (begins or {}).get(source, {}).get(place)
            # A topic that is gone is not in the batches that follow: that alone is nothing.
            behind = again < offset if again is not None else begins == older
            if behind:
                raise InputError(
                    f"{directory}: batch {begun} is begun and not committed, and ends {place[0]}-"
                    f"{place[1]} {'nowhere' if again is None else f'at {again}'}, and batch "
                    f"{committed}, which is committed, at {offset}: an unfinished repartitioning "
                    "of the query's state (or a topic that was created again): let it end first"
                )


# -- the logs ------------------------------------------------------------------------------------


def _offsets_by_source(files: ByteSource, path: str) -> dict[str, _Offsets]:
    """The offsets of the Kafka sources in an entry of the offset log, by number or name."""
    version, metadata, *lines = _entry(files, path)
    if _CONTROL_BATCH in metadata:
        raise InputError(
            f"{path}: a control batch, which reads nothing: what it does to the query's offsets is "
            "not known here"
        )
    named = [
        (str(number), line) if version == "v1" else _named(path, line)
        for number, line in enumerate(lines)
    ]
    found = {source: kafka_offsets_of(path, line) for source, line in named}
    return {source: offsets for source, offsets in found.items() if offsets is not None}


def _entry(files: ByteSource, path: str) -> list[str]:
    """The lines of an entry of the offset log: its version, its metadata, and the offsets."""
    # Not splitlines(): within JSON there may be what Unicode calls a line end and Spark doesn't.
    lines = [line.strip() for line in _text(files, path).split("\n")]
    _check_version(path, lines[0], _OFFSET_LOGS)
    if len(lines) < 2:
        raise InputError(f"{path}: cut short: it ends before its metadata")
    return lines


def _named(path: str, line: str) -> tuple[str, str]:
    name, colon, offset = line.partition(":")
    if not name or not colon:
        raise InputError(f"{path}: {line[:40]!r} is no <source>:<offset>")
    return name, offset


def kafka_offsets_of(path: str, line: str) -> _Offsets | None:
    """The offsets in a line of the file at ``path``, or None where the source is of another kind.

    Raises:
        InputError: it is damaged.
    """
    if not line.startswith("{"):
        return None  # such as the rate source's, a number; `-`: there is none yet
    try:
        value = parse_json(line)
        if not all(
            isinstance(inner, dict) and all(map(_NUMBER.fullmatch, inner))
            for inner in value.values()
        ):
            return None  # such as the file source's, {"logOffset":3}
        return _next_offsets(topic_offsets(value))
    except NotOffsets as error:
        raise InputError(f"{path}: {error}") from error


def _is_kafkas(files: ByteSource, path: str) -> bool:
    with _unreadable(path):
        return files.read_range(path, 0, 1) == _KAFKA_SEED


def _read_seed(files: ByteSource, path: str) -> _Offsets:
    version, _, offsets = _text(files, path).removeprefix(_KAFKA_SEED.decode()).partition("\n")
    _check_version(path, version, _SEEDS)
    try:
        return _next_offsets(topic_offsets(parse_json(offsets)))
    except NotOffsets as error:
        raise InputError(f"{path}: {error}") from error


def _next_offsets(offsets: _Offsets) -> _Offsets:
    """Spark resolves its markers before it logs."""
    for (topic, partition), offset in offsets.items():
        if offset < 0:
            raise NotOffsets(f"{topic!r} partition {partition}: {offset} is not an offset")
    return offsets


def _check_version(path: str, line: str, known: Mapping[str, str]) -> str:
    version = line.strip()
    if version not in known:
        names = ", ".join(f"{name} ({sparks})" for name, sparks in known.items())
        raise InputError(f"{path}: log version {version[:20]!r} is not known here; known: {names}")
    return version


def _merge(directory: str, sources: Iterable[_Offsets]) -> _Offsets:
    merged: _Offsets = {}
    for offsets in sources:
        for place, offset in offsets.items():
            if merged.setdefault(place, offset) != offset:
                raise Refused(
                    f"{directory}: two sources of the query read {place[0]}-{place[1]} and stand "
                    f"at {merged[place]} and {offset}"
                )
    return merged


# -- the files -----------------------------------------------------------------------------------


def numbers(files: ByteSource, directory: str) -> list[int]:
    """The numbered files of a directory, in order; none where it is not there."""
    return sorted(int(name) for name in _names(files, directory) if _NUMBER.fullmatch(name))


def _names(files: ByteSource, directory: str) -> list[str]:
    return _list(files, directory) or []


def _list(files: ByteSource, directory: str) -> list[str] | None:
    with _unreadable(directory):
        return files.list_directory(directory)


def _text(files: ByteSource, path: str) -> str:
    with _unreadable(path):
        content = files.read(path)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason})") from error


@contextmanager
def _unreadable(path: str) -> Iterator[None]:
    """A file that cannot be read is bad input; a store that does not answer is not."""
    try:
        yield
    except StorageUnavailable:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
