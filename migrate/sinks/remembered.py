"""Numbers that sinks remember, by writer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# The identifier of a query without one: DataSourceWriteOptions @ Hudi 1.1.1.
DEFAULT_IDENTIFIER = "default_single_writer"


class WriterKind(str, Enum):
    """The kind of a writer, and what its name in the sink is.

    Attributes:
        FILES: batches of a file sink, of any query; without a name.
        QUERY: batches of a streaming query, by the query's own id: a new query has a new one.
        TXN_APP: batches of an application id of Delta: a ``txnAppId``, or a query's id.
        HUDI: batches of a streaming query, by Hudi's checkpoint identifier.
        FLINK_JOB: checkpoints of a Flink job, by its job id and its operator or subtask.
        COMMIT_USER: commits to Paimon, by a user that each writer generates.
    """

    FILES = "files"
    QUERY = "query"
    TXN_APP = "txn app"
    HUDI = "hudi"
    FLINK_JOB = "flink job"
    COMMIT_USER = "commit user"


@dataclass(frozen=True, slots=True)
class Remembered:
    """The last number of a writer: the sink skips its numbers up to this one."""

    kind: WriterKind
    name: str
    last: int


@dataclass(frozen=True, slots=True)
class FormatMemory:
    """The content of one format's log.

    Attributes:
        format: such as ``a Delta table``.
        unread: parts of the log that were not read, each with the reason.
    """

    format: str
    remembered: tuple[Remembered, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SinkMemory:
    """The numbers that a sink remembers.

    Attributes:
        formats: such as ``a Delta table``; empty for an unknown kind.
        unread: parts of its logs that were not read, each with the reason.
        empty: whether the directory is empty or missing.
    """

    formats: tuple[str, ...]
    remembered: tuple[Remembered, ...]
    unread: tuple[str, ...]
    empty: bool

    def of(self, kind: WriterKind) -> dict[str, int]:
        """Return the last number of each writer of a kind, by name."""
        return {number.name: number.last for number in self.remembered if number.kind is kind}
