"""The views: flat tables over checkpoints, their columns in a form that knows no Spark.

Names and meaning are those of ``migrate inspect --format json``. Every view ends with
``error_kind`` and ``error``: of a checkpoint that could not be read there is one row in each view,
with what its path tells and these two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class View(str, Enum):
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
    name: str
    type: ColumnType
    comment: str


def _string(name: str, comment: str) -> Column:
    return Column(name, ColumnType.STRING, comment)


def _int(name: str, comment: str) -> Column:
    return Column(name, ColumnType.INT, comment)


def _long(name: str, comment: str) -> Column:
    return Column(name, ColumnType.LONG, comment)


_CHECKPOINT = (
    _string("pointer", "directory that holds _metadata; never null"),
    _string("job_id", "job's id, 32 hex digits, where the job's directory is named by it"),
    _long("checkpoint_id", "number of the checkpoint"),
    _string("checkpoint_kind", "checkpoint, savepoint, or unknown (Flink up to 1.14)"),
)
_OPERATOR = (
    _string("operator_id", "operator's id, 32 hex digits as Flink prints it"),
    _string("name", "operator's name; null in metadata up to version 4"),
    _string("uid", "operator's uid; null in metadata up to version 4"),
    _string(
        "source_kind",
        "KafkaSource, FlinkKafkaConsumer, DynamicKafkaSource or HybridSource; null for an operator "
        "that is none of Flink's Kafka sources",
    ),
)
_ERROR = (
    _string("error_kind", "why the checkpoint could not be read, as one of a few kinds; else null"),
    _string("error", "why the checkpoint could not be read, in words; else null"),
)

VIEWS: Mapping[View, tuple[Column, ...]] = {
    View.POSITIONS: (
        *_CHECKPOINT,
        *_OPERATOR,
        _string("cluster", "Kafka cluster's id, of a DynamicKafkaSource; else null"),
        _string("topic", "Kafka topic"),
        _int("partition", "Kafka partition"),
        _string("state", "next, earliest, latest, committed, finished, unassigned or unresolved"),
        _long("next_offset", "offset of the next record to read; null where the state has none"),
        _long(
            "stopping_offset",
            "where a bounded source stops, as stored (-1 latest, -3 committed); null if unbounded",
        ),
        _int("subtask", "subtask whose reader holds the partition; null where none does"),
        _string("reason", "why the start is not known; null where it is"),
        *_ERROR,
    ),
    View.OPERATORS: (
        *_CHECKPOINT,
        *_OPERATOR,
        _int("parallelism", "operator's parallelism"),
        _int("max_parallelism", "operator's maximum parallelism"),
        Column("finished", ColumnType.BOOLEAN, "whether it had finished and kept no state"),
        Column("state_names", ColumnType.STRINGS, "names of its operator states, sorted"),
        _long("keyed_state_bytes", "bytes of keyed state"),
        _long("operator_state_bytes", "bytes of operator state"),
        _long("in_flight_bytes", "bytes of records in its channels (unaligned checkpoint)"),
        _long("raw_state_bytes", "the part of both states that is raw, in bytes"),
        Column("finished_subtasks", ColumnType.INTS, "subtasks that had finished, ascending"),
        *_ERROR,
    ),
    View.CHECKPOINTS: (
        *_CHECKPOINT,
        _string("job_directory", "directory that holds the job's chk-<n>; null for a savepoint"),
        _string("stop", "whether the job stopped with it: suspend, terminate, none or unknown"),
        _int("metadata_version", "version of _metadata"),
        Column(
            "written_at",
            ColumnType.TIMESTAMP,
            "when _metadata was written, or copied without its time; null where not kept",
        ),
        _long(
            "metadata_bytes",
            "size of _metadata; null where a newer checkpoint took the place of the one found",
        ),
        _int("operators", "number of operators"),
        _int("sources", "number of Kafka sources"),
        Column("topics", ColumnType.STRINGS, "Kafka topics that its sources read, sorted"),
        _long("positions", "number of positions: topic-partitions of each source"),
        _long("in_flight_bytes", "bytes of records in its channels (unaligned checkpoint)"),
        Column(
            "movable",
            ColumnType.BOOLEAN,
            "whether its positions can be moved as they are; null where it could not be read",
        ),
        Column("obstacles", ColumnType.STRINGS, "codes of what stands in the way, sorted"),
        _string("why_not", "the same in words; null where nothing does"),
        Column("to_check", ColumnType.STRINGS, "codes of what to check before it moves, sorted"),
        *_ERROR,
    ),
    View.FINDINGS: (
        *_CHECKPOINT,
        _string("code", "what was found, such as in-flight-records"),
        _string("severity", "blocker, warning or note"),
        _string("operator_id", "operator it is about; null for the checkpoint as a whole"),
        _string("message", "the finding in words"),
        *_ERROR,
    ),
}
