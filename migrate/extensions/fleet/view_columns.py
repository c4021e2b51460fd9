"""Define the views: flat tables of checkpoints with a name, type, and value for each column.

The values, and most of the names, are the same as in ``migrate inspect --format json``. Every view
starts with the columns that identify the checkpoint (``IDENTITY``), and ends with ``ERROR``. A
checkpoint that could not be read has one row in each view. The row contains the error, and the
facts from the checkpoint's path and size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from operator import attrgetter
from typing import Any

from migrate.model.column_types import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    ArrayOf,
    Column,
    ColumnType,
    Leaf,
)

_LAST_INSTANT = 253_402_300_799_999  # the end of the year 9999
_LONG_MAX = (1 << 63) - 1


class CheckpointView(str, Enum):
    """The tables, named after the content of their rows."""

    POSITIONS = "positions"
    OPERATORS = "operators"
    CHECKPOINTS = "checkpoints"
    FINDINGS = "findings"


# The values are milliseconds since the epoch. Arrow stores them in microseconds.
TIMESTAMP = Leaf("TIMESTAMP", lambda milliseconds: milliseconds * 1000)


@dataclass(frozen=True, slots=True)
class ViewColumn(Column):
    """A column in a view; ``value`` computes the cell from the item that a row describes."""

    comment: str
    value: Callable[[Any], Any]


def _column(
    type: ColumnType, name: str, comment: str, value: str | Callable[[Any], Any] = ""
) -> ViewColumn:
    """Return a column.

    ``value`` is a function, or the path of an attribute. The default is the attribute that has the
    same name as the column.
    """
    return ViewColumn(name, type, comment, value if callable(value) else attrgetter(value or name))


_string = partial(_column, STRING)
_strings = partial(_column, ArrayOf(STRING))
_int = partial(_column, INT)
_long = partial(_column, BIGINT)
_boolean = partial(_column, BOOLEAN)


def _size(name: str, comment: str, sum_sizes: Callable[[Any], int] | None = None) -> ViewColumn:
    """Return a column for a sum of sizes.

    The sum is capped at ``_LONG_MAX``, because the sizes in metadata can add up to more than this.
    """
    size = sum_sizes or attrgetter(name)
    return _long(name, comment, lambda item: min(size(item), _LONG_MAX))


def _valid_instant(milliseconds: int | None) -> int | None:
    """Return a time, or None if the time is missing or not in the years 1970 to 9999."""
    if milliseconds is None or not 0 <= milliseconds <= _LAST_INSTANT:
        return None
    return milliseconds


IDENTITY = (  # values of a CheckpointRow
    _string("pointer", "directory that contains _metadata; never null", "checkpoint.pointer"),
    _string(
        "job_id",
        "job's ID, 32 hex digits, if the name of the job's directory is the ID",
        "candidate.job_id",
    ),
    _long("checkpoint_id", "number of the checkpoint", "checkpoint.checkpoint_id"),
    _string(
        "checkpoint_kind",
        "checkpoint, savepoint, or unknown (Flink 1.15 and earlier)",
        "checkpoint.type.kind.value",
    ),
)
ERROR = (  # values of a Failure
    _string(
        "error_kind",
        "kind of the error if the checkpoint is unreadable; else null",
        "kind",
    ),
    _string("error", "error message if the checkpoint is unreadable; else null", "message"),
)
NAMES = (  # values of a Source or an Operator
    _string("operator_id", "operator's ID, 32 hex digits as Flink prints it"),
    _string("name", "operator's name; null in metadata version 4 and earlier"),
    _string("uid", "operator's uid; null in metadata version 4 and earlier"),
)
SOURCE = (  # values of a Source; for an operator, ``view_rows`` adds the kind of its source
    *NAMES,
    _string(
        "source_kind",
        "KafkaSource, FlinkKafkaConsumer, DynamicKafkaSource, HybridSource, or BeamKafkaIO; null "
        "for other operators",
        "kind.value",
    ),
)
POSITION = (  # values of a Position
    _string("cluster", "ID of the Kafka cluster in a DynamicKafkaSource; else null"),
    _string("topic", "Kafka topic"),
    _int("partition", "Kafka partition"),
    _string(
        "state",
        "next, earliest, latest, committed, finished, unassigned, or unresolved",
        "state.value",
    ),
    _long("next_offset", "offset of the next record to read; null if the state has no offset"),
    _long(
        "stopping_offset",
        "stored stopping offset of a bounded source (-1 latest, -3 committed); null if unbounded",
    ),
    _int("subtask", "subtask whose reader has the partition; null if no reader has it"),
    _string(
        "reason",
        "reason for an unknown start; else null",
        lambda position: position.reason or None,
    ),
)
_IN_FLIGHT = ("in_flight_bytes", "bytes of in-flight records (unaligned checkpoint)")
OPERATOR = (  # values of an Operator
    _int("parallelism", "operator's parallelism"),
    _int("max_parallelism", "operator's maximum parallelism"),
    _boolean("finished", "true if the operator had finished and stored no state"),
    _strings("state_names", "sorted names of the operator states"),
    _size("keyed_state_bytes", "bytes of keyed state"),
    _size("operator_state_bytes", "bytes of operator state"),
    _size(*_IN_FLIGHT),
    _size("raw_state_bytes", "bytes of raw state, in keyed_state_bytes or operator_state_bytes"),
    _column(ArrayOf(INT), "finished_subtasks", "finished subtasks, ascending"),
)
CHECKPOINT_DETAILS = (  # values of a CheckpointRow
    _string(
        "job_directory",
        "directory that contains the job's chk-<n>; null for a savepoint",
        "candidate.job_directory",
    ),
    _string(
        "stop",
        "kind of the job's stop with the savepoint: suspend, terminate, none, or unknown",
        "checkpoint.type.stop.value",
    ),
    _int("metadata_version", "version of _metadata", "checkpoint.metadata_version"),
    _column(
        TIMESTAMP,
        "written_at",
        "modification time of _metadata, or of its copy; null if not stored",
        lambda row: _valid_instant(row.checkpoint.written_at),
    ),
    _long(
        "metadata_bytes",
        "size of _metadata; null if a newer checkpoint replaced the discovered one",
        lambda row: (
            row.candidate.metadata_bytes
            if row.checkpoint.pointer == row.candidate.pointer
            else None
        ),
    ),
    _int("operators", "number of operators", lambda row: len(row.checkpoint.operators)),
    _int("sources", "number of Kafka sources", lambda row: len(row.extraction.sources)),
    _strings(
        "topics",
        "sorted Kafka topics of the sources",
        lambda row: tuple(sorted({t for source in row.extraction.sources for t in source.topics})),
    ),
    _long(
        "positions",
        "number of positions (topic-partitions of each source)",
        lambda row: sum(len(source.positions) for source in row.extraction.sources),
    ),
    _size(
        *_IN_FLIGHT,
        lambda row: sum(operator.in_flight_bytes for operator in row.checkpoint.operators),
    ),
    _boolean(
        "movable",
        "true if no obstacle to a move was found; null if the checkpoint is unreadable",
        lambda row: not row.obstacles,
    ),
    _strings(
        "obstacles",
        "sorted codes of the obstacles",
        lambda row: tuple(sorted({obstacle.code for obstacle in row.obstacles})),
    ),
    _string(
        "why_not",
        "descriptions of the obstacles; null without obstacles",
        lambda row: "; ".join(obstacle.message for obstacle in row.obstacles) or None,
    ),
    _strings(
        "to_check",
        "sorted codes of the findings to check before a move",
        lambda row: tuple(sorted({finding.code.value for finding in row.to_check})),
    ),
)
FINDING = (  # values of a Finding
    _string("code", "code of the finding, such as in-flight-records", "code.value"),
    _string("severity", "blocker, warning, or note", "severity.value"),
    _string("operator_id", "operator of the finding; null for the checkpoint as a whole"),
    # A plain string, because Spark cannot unpickle a ``Message``.
    _string("message", "description of the finding", lambda finding: str(finding.message)),
)
# The columns of each view between IDENTITY and ERROR.
BODY: Mapping[CheckpointView, tuple[ViewColumn, ...]] = {
    CheckpointView.POSITIONS: (*SOURCE, *POSITION),
    CheckpointView.OPERATORS: (*SOURCE, *OPERATOR),
    CheckpointView.CHECKPOINTS: CHECKPOINT_DETAILS,
    CheckpointView.FINDINGS: FINDING,
}

VIEWS: Mapping[CheckpointView, tuple[ViewColumn, ...]] = {
    view: (*IDENTITY, *columns, *ERROR) for view, columns in BODY.items()
}
# Columns after ERROR in the table of positions, if the scan queries a broker.
LAG = (  # values of a Lag
    _long("log_start", "partition's log start offset; null if the broker lacks the partition"),
    _long("log_end", "partition's log end offset; null if the broker lacks the partition"),
    _long(
        "lag",
        "log end offset minus next offset, an upper bound of the lag in records; null if unknown",
        "records",
    ),
    _string(
        "obstacle",
        "obstacle to a resume here: expired, beyond-end, topic-gone, partition-gone, or "
        "unreachable; else null",
    ),
    _string("unknown", "reason why the broker did not answer for the partition; else null"),
)
