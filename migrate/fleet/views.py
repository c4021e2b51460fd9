"""The views: flat tables over checkpoints, each column with its name, its type and its value.

Names and meaning are those of ``migrate inspect --format json``. Every view begins with what tells
the checkpoint, and ends with ``error_kind`` and ``error``: of a checkpoint that could not be read
there is one row in each view, with what its path tells and these two. No Spark is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

_LAST_INSTANT = 253_402_300_799_999  # the end of the year 9999
_LONG_MAX = (1 << 63) - 1


class View(str, Enum):
    """The tables: what a row is about."""

    POSITIONS = "positions"
    OPERATORS = "operators"
    CHECKPOINTS = "checkpoints"
    FINDINGS = "findings"


class ColumnType(Enum):
    """What a column holds; every one of them may be None but where the comment says never."""

    STRING = "string"
    INT = "int"  # 32 bits
    LONG = "long"  # 64 bits
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"  # milliseconds of the epoch, an int
    STRINGS = "strings"  # a tuple of str
    INTS = "ints"  # a tuple of int


@dataclass(frozen=True, slots=True)
class Column:
    """``value`` makes a row's of what the row is about."""

    name: str
    type: ColumnType
    comment: str
    value: Callable[[Any], Any]


def _string(name: str, comment: str, value: Callable[[Any], str | None]) -> Column:
    return Column(name, ColumnType.STRING, comment, value)


def _int(name: str, comment: str, value: Callable[[Any], int | None]) -> Column:
    return Column(name, ColumnType.INT, comment, value)


def _long(name: str, comment: str, value: Callable[[Any], int | None]) -> Column:
    return Column(name, ColumnType.LONG, comment, value)


def _size(name: str, comment: str, value: Callable[[Any], int]) -> Column:
    """A sum of sizes that a hostile checkpoint claims may be more than a long holds."""
    return _long(name, comment, lambda it: min(value(it), _LONG_MAX))


def _instant(milliseconds: int | None) -> int | None:
    """A file may claim any time; those that no date is written for are none."""
    if milliseconds is None or not 0 <= milliseconds <= _LAST_INSTANT:
        return None
    return milliseconds


HEAD = (  # of Whole
    _string(
        "pointer", "directory that holds _metadata; never null", lambda it: it.checkpoint.pointer
    ),
    _string(
        "job_id",
        "job's id, 32 hex digits, where the job's directory is named by it",
        lambda it: it.candidate.job_id,
    ),
    _long("checkpoint_id", "number of the checkpoint", lambda it: it.checkpoint.checkpoint_id),
    _string(
        "checkpoint_kind",
        "checkpoint, savepoint, or unknown (Flink up to 1.14)",
        lambda it: it.checkpoint.type.kind.value,
    ),
)
ERROR = (  # of a Failure
    _string(
        "error_kind",
        "why the checkpoint could not be read, as one of a few kinds; else null",
        lambda it: it.kind,
    ),
    _string(
        "error", "why the checkpoint could not be read, in words; else null", lambda it: it.message
    ),
)
_OPERATOR_ID = ("operator_id", "operator's id, 32 hex digits as Flink prints it")
_NAME = ("name", "operator's name; null in metadata up to version 4")
_UID = ("uid", "operator's uid; null in metadata up to version 4")
_SOURCE_KIND = (
    "source_kind",
    "KafkaSource, FlinkKafkaConsumer, DynamicKafkaSource, HybridSource or BeamKafkaIO; null for an "
    "operator that is none of them",
)
_IN_FLIGHT = ("in_flight_bytes", "bytes of records in its channels (unaligned checkpoint)")

_POSITIONS = (  # of Held
    _string(*_OPERATOR_ID, lambda it: it.source.operator_id),
    _string(*_NAME, lambda it: it.source.name),
    _string(*_UID, lambda it: it.source.uid),
    _string(*_SOURCE_KIND, lambda it: it.source.kind.value),
    _string(
        "cluster",
        "Kafka cluster's id, of a DynamicKafkaSource; else null",
        lambda it: it.position.cluster,
    ),
    _string("topic", "Kafka topic", lambda it: it.position.topic),
    _int("partition", "Kafka partition", lambda it: it.position.partition),
    _string(
        "state",
        "next, earliest, latest, committed, finished, unassigned or unresolved",
        lambda it: it.position.state.value,
    ),
    _long(
        "next_offset",
        "offset of the next record to read; null where the state has none",
        lambda it: it.position.next_offset,
    ),
    _long(
        "stopping_offset",
        "where a bounded source stops, as stored (-1 latest, -3 committed); null if unbounded",
        lambda it: it.position.stopping_offset,
    ),
    _int(
        "subtask",
        "subtask whose reader holds the partition; null where none does",
        lambda it: it.position.subtask,
    ),
    _string(
        "reason",
        "why the start is not known; null where it is",
        lambda it: it.position.reason or None,
    ),
)
_OPERATORS = (  # of Run
    _string(*_OPERATOR_ID, lambda it: it.operator.operator_id),
    _string(*_NAME, lambda it: it.operator.name),
    _string(*_UID, lambda it: it.operator.uid),
    _string(*_SOURCE_KIND, lambda it: it.source_kind),
    _int("parallelism", "operator's parallelism", lambda it: it.operator.parallelism),
    _int(
        "max_parallelism", "operator's maximum parallelism", lambda it: it.operator.max_parallelism
    ),
    Column(
        "finished",
        ColumnType.BOOLEAN,
        "whether it had finished and kept no state",
        lambda it: it.operator.finished,
    ),
    Column(
        "state_names",
        ColumnType.STRINGS,
        "names of its operator states, sorted",
        lambda it: it.operator.state_names,
    ),
    _size("keyed_state_bytes", "bytes of keyed state", lambda it: it.operator.keyed_state_bytes),
    _size(
        "operator_state_bytes",
        "bytes of operator state",
        lambda it: it.operator.operator_state_bytes,
    ),
    _size(*_IN_FLIGHT, lambda it: it.operator.in_flight_bytes),
    _size(
        "raw_state_bytes",
        "the part of both states that is raw, in bytes",
        lambda it: it.operator.raw_state_bytes,
    ),
    Column(
        "finished_subtasks",
        ColumnType.INTS,
        "subtasks that had finished, ascending",
        lambda it: it.operator.finished_subtasks,
    ),
)
_CHECKPOINTS = (  # of Whole
    _string(
        "job_directory",
        "directory that holds the job's chk-<n>; null for a savepoint",
        lambda it: it.candidate.job_directory,
    ),
    _string(
        "stop",
        "whether the job stopped with it: suspend, terminate, none or unknown",
        lambda it: it.checkpoint.type.stop.value,
    ),
    _int("metadata_version", "version of _metadata", lambda it: it.checkpoint.metadata_version),
    Column(
        "written_at",
        ColumnType.TIMESTAMP,
        "when _metadata was written, or copied without its time; null where not kept",
        lambda it: _instant(it.checkpoint.written_at),
    ),
    _long(
        "metadata_bytes",
        "size of _metadata; null where a newer checkpoint took the place of the one found",
        lambda it: (
            it.candidate.metadata_bytes if it.checkpoint.pointer == it.candidate.pointer else None
        ),
    ),
    _int("operators", "number of operators", lambda it: len(it.checkpoint.operators)),
    _int("sources", "number of Kafka sources", lambda it: len(it.extraction.sources)),
    Column(
        "topics",
        ColumnType.STRINGS,
        "Kafka topics that its sources read, sorted",
        lambda it: tuple(sorted(it.topics)),
    ),
    _long(
        "positions",
        "number of positions: topic-partitions of each source",
        lambda it: sum(len(source.positions) for source in it.extraction.sources),
    ),
    _size(*_IN_FLIGHT, lambda it: sum(each.in_flight_bytes for each in it.checkpoint.operators)),
    Column(
        "movable",
        ColumnType.BOOLEAN,
        "whether its positions can be moved as they are; null where it could not be read",
        lambda it: not it.obstacles,
    ),
    Column(
        "obstacles",
        ColumnType.STRINGS,
        "codes of what stands in the way, sorted",
        lambda it: tuple(sorted({obstacle.code for obstacle in it.obstacles})),
    ),
    _string(
        "why_not",
        "the same in words; null where nothing does",
        lambda it: "; ".join(obstacle.message for obstacle in it.obstacles) or None,
    ),
    Column(
        "to_check",
        ColumnType.STRINGS,
        "codes of what to check before it moves, sorted",
        lambda it: tuple(sorted({finding.code.value for finding in it.to_check})),
    ),
)
_FINDINGS = (  # of a Finding
    _string("code", "what was found, such as in-flight-records", lambda it: it.code.value),
    _string("severity", "blocker, warning or note", lambda it: it.severity.value),
    _string(
        "operator_id",
        "operator it is about; null for the checkpoint as a whole",
        lambda it: it.operator_id,
    ),
    _string("message", "the finding in words", lambda it: it.message),
)
# Every view begins with HEAD, and ends with ERROR.
OWN: Mapping[View, tuple[Column, ...]] = {
    View.POSITIONS: _POSITIONS,
    View.OPERATORS: _OPERATORS,
    View.CHECKPOINTS: _CHECKPOINTS,
    View.FINDINGS: _FINDINGS,
}

VIEWS: Mapping[View, tuple[Column, ...]] = {
    view: (*HEAD, *own, *ERROR) for view, own in OWN.items()
}
# What the positions of a scan have more where a broker was asked.
LAG = (  # of a Lag
    _long(
        "log_start",
        "partition's log start offset; null where the broker does not have it",
        lambda it: it.log_start,
    ),
    _long(
        "log_end",
        "partition's log end offset; null where the broker does not have it",
        lambda it: it.log_end,
    ),
    _long(
        "lag",
        "log end minus next offset, an upper bound of the records left; null where not known",
        lambda it: it.records,
    ),
    _string(
        "obstacle",
        "why it cannot be read on: expired, beyond-end, topic-gone or partition-gone; else null",
        lambda it: it.obstacle,
    ),
)
