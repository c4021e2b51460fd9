"""What a Spark checkpoint location says: where its query goes on, and where it started.

::

    commits/N       batch N is done; nothing in it is needed here
    offsets/N       v1, the query's metadata, then a line per source: where batch N ends
    sources/S/0     where source S starts batch 0; Kafka's begins with a zero byte

A batch without its commit is run again, so the query goes on where its newest *committed* batch
ended, and before the first one at the seeds. A query that was started by ``startingOffsets`` has
seeds too: Spark writes them before batch 0. Only the continuous trigger neither writes nor heeds
them.

A source whose line is ``-`` has had no offset; Kafka's has none only while it has no partition.
Sources of other kinds are passed over. Spark's own ``.crc`` files are not read.

Source: org.apache.spark.sql.execution.streaming.{HDFSMetadataLog, OffsetSeqLog, CommitLog},
org.apache.spark.sql.kafka010.{KafkaMicroBatchStream, KafkaSourceInitialOffsetWriter,
KafkaContinuousStream} @ Spark 4.0.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from migrate.position_files import NotOffsets, parse_json, topic_offsets
from migrate.position_set import (
    AmbiguousPositions,
    PositionSet,
    TopicPartition,
    UnreadableInput,
)

_VERSION = "v1"
_NO_OFFSET = "-"
# What KafkaSourceInitialOffsetWriter puts first, for the sake of Spark 2.1.
_KAFKA_SEED = b"\0"
_NUMBER = re.compile(r"0|[1-9][0-9]*")

_Offsets = dict[TopicPartition, int]


def committed_positions(label: str, directory: Path) -> PositionSet:
    """Where the query goes on when it is started again.

    Raises:
        UnreadableInput: it is no checkpoint location, or damaged, or of a version not known.
        AmbiguousPositions: two of its sources read one partition and stand at different places.
    """
    committed = _numbers(directory / "commits")
    if not committed:
        return starting_positions(label, directory)
    batch = committed[-1]
    sources = _read_offsets(directory / "offsets" / str(batch))
    if not sources:
        raise UnreadableInput(f"{directory}: its query reads no Kafka source")
    return PositionSet(label, _merge(directory, sources), f"after batch {batch}")


def starting_positions(label: str, directory: Path) -> PositionSet:
    """Where the query started, or will where it has not run yet.

    A partition that was added to a topic later is not among them.

    Raises:
        UnreadableInput: as for `committed_positions`, or it has no seed of a Kafka source.
        AmbiguousPositions: as for `committed_positions`.
    """
    if not directory.is_dir():
        raise UnreadableInput(f"{directory}: no such directory")
    seeds = [
        _read_seed(path)
        for number in _numbers(directory / "sources", of_directories=True)
        if (path := directory / "sources" / str(number) / "0").is_file() and _is_kafkas(path)
    ]
    if not seeds:
        raise UnreadableInput(
            f"{directory}: no committed batch and no seed of a Kafka source in it (sources/0/0); "
            "is it the checkpointLocation of a micro-batch query?"
            if not _numbers(directory / "commits")
            else f"{directory}: no seed of a Kafka source in it (sources/0/0): where it started "
            "cannot be told"
        )
    return PositionSet(label, _merge(directory, seeds), "before batch 0")


def _numbers(directory: Path, of_directories: bool = False) -> list[int]:
    """The numbered entries of a directory, in order; none where it is not there."""
    try:
        return sorted(
            int(entry.name)
            for entry in directory.iterdir()
            if _NUMBER.fullmatch(entry.name) and entry.is_dir() is of_directories
        )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UnreadableInput(f"{directory}: {error.strerror}") from error


def _read_offsets(path: Path) -> list[_Offsets]:
    """The offsets of the Kafka sources in an entry of the offset log."""
    # Not splitlines(): within JSON there may be what Unicode calls a line end and Spark doesn't.
    lines = _text(path, _bytes(path)).split("\n")
    _check_version(path, lines[0])
    if len(lines) < 2:
        raise UnreadableInput(f"{path}: cut short: it ends before its metadata")
    found = [_kafka_offsets(path, line) for line in map(str.strip, lines[2:]) if line != _NO_OFFSET]
    return [offsets for offsets in found if offsets is not None]


def _kafka_offsets(path: Path, line: str) -> _Offsets | None:
    """The offsets in a line, or None where the source is of another kind."""
    if not line.startswith("{"):
        return None  # such as the rate source's, a number
    try:
        value = parse_json(line)
        if not all(
            isinstance(inner, dict) and all(map(_NUMBER.fullmatch, inner))
            for inner in value.values()
        ):
            return None  # such as the file source's, {"logOffset":3}
        return _next_offsets(topic_offsets(value))
    except NotOffsets as error:
        raise UnreadableInput(f"{path}: {error}") from error


def _is_kafkas(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(1) == _KAFKA_SEED
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from error


def _read_seed(path: Path) -> _Offsets:
    version, _, offsets = _text(path, _bytes(path).removeprefix(_KAFKA_SEED)).partition("\n")
    _check_version(path, version)
    try:
        return _next_offsets(topic_offsets(parse_json(offsets)))
    except NotOffsets as error:
        raise UnreadableInput(f"{path}: {error}") from error


def _next_offsets(offsets: _Offsets) -> _Offsets:
    """Spark resolves its markers before it logs."""
    for (topic, partition), offset in offsets.items():
        if offset < 0:
            raise NotOffsets(f"{topic!r} partition {partition}: {offset} is not an offset")
    return offsets


def _check_version(path: Path, version: str) -> None:
    if version.strip() != _VERSION:
        raise UnreadableInput(
            f"{path}: log version {version.strip()[:20]!r} is not known here; "
            f"{_VERSION} is, of Spark 3 and 4"
        )


def _merge(directory: Path, sources: Iterable[_Offsets]) -> _Offsets:
    merged: _Offsets = {}
    for offsets in sources:
        for place, offset in offsets.items():
            if merged.setdefault(place, offset) != offset:
                raise AmbiguousPositions(
                    f"{directory}: two sources of the query read {place[0]}-{place[1]} and stand "
                    f"at {merged[place]} and {offset}"
                )
    return merged


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from error


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"{path}: not UTF-8 text ({error.reason})") from error
