"""Entries in a Spark checkpoint location: their files, versions, and offsets.

``offsets/N`` contains a line with the version, a line of JSON metadata, and a line for each source.
In version 1, a source's line is its offset, and the lines are in the order of the query's plan.
Spark 4.2 can write version 2. In version 2, a source's line is ``<source>:<offset>``, and
``<source>`` is a number or the source's name in the query. The offset ``-`` stands for a source
without an offset, such as a Kafka source without partitions. Offsets of non-Kafka sources are not
parsed.

Hadoop's ``.crc`` files are ignored. Spark also ignores them, because it opens the entries with
Hadoop's FileContext (FilterFs.open @ Hadoop 3.4.1).

Source: org.apache.spark.sql.execution.streaming.checkpointing.{HDFSMetadataLog, OffsetSeqLog,
CommitLog}, org.apache.spark.sql.kafka010.KafkaSourceInitialOffsetWriter @ Spark 4.2.0, and their
predecessors @ 3.5.1, 4.0.0, and 4.1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from decoder import ByteSource
from decoder.kafka.split import is_legal_topic
from decoder.storage import StorageUnavailable, join
from migrate.inputs.offsets_json import NotOffsets, parse_json, topic_offsets
from migrate.model.catalog import (
    CANNOT_READ_FILE,
    CONTROL_BATCH,
    LOG_ENTRY_DAMAGED,
    LOG_ENTRY_EMPTY,
    LOG_VERSION_UNKNOWN,
)
from migrate.model.errors import InputError
from migrate.model.positions import TopicPartition

# The versions of a file, and the releases that write each version.
_OFFSET_LOGS = {"v1": "Spark 2.1 and newer", "v2": "Spark 4.2"}
_COMMIT_LOGS = {
    "v1": "Spark 2.1 and newer",
    "v2": "Spark 4.0",
    "v3": "Spark 4.2",
}
_SEEDS = {"v1": "Spark 2.1 and newer"}

# OffsetSeqMetadataV2 @ Spark 4.2.0. This release reads control batches but does not write them.
_CONTROL_BATCH = '"controlBatchInfo"'

# The first byte of a Kafka seed (KafkaSourceInitialOffsetWriter).
_KAFKA_SEED = b"\0"
_NUMBER = re.compile(r"0|[1-9][0-9]*")

Offsets = dict[TopicPartition, int]


class EmptyEntry(InputError):
    """An empty entry, which is being written or was left by a crash of the object store."""


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """An entry in the offset log; ``str`` returns the text of the entry.

    ``metadata`` is JSON, or empty for an epoch of the continuous trigger. ``offsets`` contains the
    text of each source's offset, by the source's number or name.
    """

    version: str
    metadata: str
    offsets: Mapping[str, str]

    def __str__(self) -> str:
        lines = [
            offset if self.version == "v1" else f"{source}:{offset}"
            for source, offset in self.offsets.items()
        ]
        return "\n".join([self.version, self.metadata, *lines])


def offsets_path(directory: str, batch: int) -> str:
    """Return the path of a batch's end offsets."""
    return join(directory, "offsets", str(batch))


def commit_path(directory: str, batch: int) -> str:
    """Return the path of the file that marks a batch as complete."""
    return join(directory, "commits", str(batch))


def seed_path(directory: str, source: str) -> str:
    """Return the path of a source's seed; ``source`` is the source's number or name."""
    return join(directory, "sources", source, "0")


def read_offsets(files: ByteSource, path: str) -> dict[str, Offsets]:
    """Return each Kafka source's offsets in an offset log file, by the source's number or name."""
    entry = read_entry(files, path)
    if _CONTROL_BATCH in entry.metadata:
        raise InputError(CONTROL_BATCH(path=path))
    return entry_offsets(entry, path)


def entry_offsets(entry: OffsetEntry, path: str) -> dict[str, Offsets]:
    """Return each Kafka source's offsets in an entry, by the source's number or name.

    Raises:
        InputError: an offset is damaged; ``path`` is the entry's name in messages.
    """
    return {
        source: offsets
        for source, text in entry.offsets.items()
        if (offsets := _parse_kafka_offsets(path, text)) is not None
    }


def read_entry(files: ByteSource, path: str) -> OffsetEntry:
    """Read an entry in the offset log.

    Raises:
        InputError: the entry is damaged, empty (``EmptyEntry``), or has an unknown version.
    """
    # Do not use splitlines(), because it also splits at Unicode line separators. The JSON may
    # contain these characters, and they do not end a line in Spark.
    version, *lines = [line.strip() for line in _read_log(files, path).split("\n")]
    _check_version(path, version, _OFFSET_LOGS)
    if not lines:
        raise InputError(LOG_ENTRY_DAMAGED(path=path, problem="it ends before its metadata"))
    metadata, *sources = lines
    if version == "v1":
        return OffsetEntry(version, metadata, dict(zip(map(str, count()), sources, strict=False)))
    offsets = {}
    for line in sources:
        name, colon, offset = line.partition(":")
        if not name or not colon:
            problem = f"the line {line[:40]!r} is not <source>:<offset>"
            raise InputError(LOG_ENTRY_DAMAGED(path=path, problem=problem))
        offsets[name] = offset
    return OffsetEntry(version, metadata, offsets)


def read_commit(files: ByteSource, path: str) -> tuple[str, str]:
    """Read the version and the JSON of a commit.

    Raises:
        InputError: the commit is empty (``EmptyEntry``), or it has an unknown version.
    """
    version, _, metadata = _read_log(files, path).partition("\n")
    _check_version(path, version, _COMMIT_LOGS)
    return version.strip(), metadata.rstrip("\n")


def _parse_kafka_offsets(path: str, line: str) -> Offsets | None:
    """Parse the offsets of a Kafka source; return None for the offset of any other source.

    A different connector may write the same format, but with numbers as strings or with illegal
    topic names. All other offsets in this format are treated as Kafka offsets.

    Raises:
        InputError: the line is damaged.
    """
    if not line.startswith("{"):
        return None  # such as a number, for the rate source; or `-`, for no offset yet
    with input_errors(path):
        value = parse_json(line)
        if not all(
            isinstance(inner, dict) and all(map(_NUMBER.fullmatch, inner))
            for inner in value.values()
        ):
            return None  # such as {"logOffset":3}, for the file source
        numbers = [number for inner in value.values() for number in inner.values()]
        if numbers and all(isinstance(number, str) for number in numbers):
            return None  # such as {"project#hub":{"0":"12345"}}, for a DataHub source
        if not all(map(is_legal_topic, value)):
            return None
        return _refuse_markers(topic_offsets(value))


def read_seed(files: ByteSource, path: str) -> Offsets | None:
    """Read the seed of a Kafka source; return None for any other source."""
    with input_errors(path):
        if files.read_range(path, 0, 1) != _KAFKA_SEED:
            return None
    version, _, offsets = read_text(files, path).removeprefix("\0").partition("\n")
    _check_version(path, version, _SEEDS)
    with input_errors(path):
        return _refuse_markers(topic_offsets(parse_json(offsets)))


def _refuse_markers(offsets: Offsets) -> Offsets:
    """Return the offsets; refuse markers, because Spark resolves them before it writes its logs."""
    for (topic, partition), offset in offsets.items():
        if offset < 0:
            raise NotOffsets(f"{topic!r} partition {partition}: {offset} is not an offset")
    return offsets


def _check_version(path: str, line: str, known: Mapping[str, str]) -> None:
    version = line.strip()
    if version not in known:
        names = [f"{name} ({sparks})" for name, sparks in known.items()]
        raise InputError(LOG_VERSION_UNKNOWN(path=path, version=version[:20], known=names))


def entry_numbers(files: ByteSource, directory: str) -> list[int]:
    """Return a directory's entry numbers, sorted; empty if the directory is missing."""
    names = list_directory(files, directory) or []
    return sorted(int(name) for name in names if _NUMBER.fullmatch(name))


def list_directory(files: ByteSource, directory: str) -> list[str] | None:
    """Return the names in a directory, or None for a missing directory."""
    with input_errors(directory):
        return files.list_directory(directory)


def _read_log(files: ByteSource, path: str) -> str:
    """Read an entry in the offset log or the commit log.

    Raises:
        EmptyEntry: the entry is empty. Spark fails on such an entry ("Incomplete log file").
    """
    text = read_text(files, path)
    if not text:
        raise EmptyEntry(LOG_ENTRY_EMPTY(path=path))
    return text


def read_text(files: ByteSource, path: str) -> str:
    """Read a file as UTF-8."""
    with input_errors(path):
        return files.read(path).decode()


@contextmanager
def input_errors(path: str) -> Iterator[None]:
    """Turn errors from reading and parsing a file into InputErrors, except StorageUnavailable."""
    try:
        yield
    except StorageUnavailable:
        raise
    except NotOffsets as error:
        raise InputError(LOG_ENTRY_DAMAGED(path=path, problem=str(error))) from error
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 text ({error.reason})"
        raise InputError(LOG_ENTRY_DAMAGED(path=path, problem=problem)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(CANNOT_READ_FILE(path=path, reason=reason)) from error
