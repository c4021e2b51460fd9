"""What is remembered, and of whom."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# The identifier of a query that sets none: DataSourceWriteOptions @ Hudi 1.1.1.
DEFAULT_IDENTIFIER = "default_single_writer"


class WriterKind(Enum):
    """Whose number it is, and by which name the writer is known to the sink.

    Attributes:
        FILES: batches of a file sink, whichever query wrote them; without a name.
        QUERY: batches of a streaming query, by the query's own id: a new query has a new one.
        TXN_APP: batches of an application id of Delta, a ``txnAppId`` or a query's id.
        HUDI: batches of a streaming query, by Hudi's checkpoint identifier.
        FLINK_JOB: checkpoints of a Flink job, by its job id and its operator or subtask.
        COMMIT_USER: commits to Paimon, by a user that each writer makes up anew.
    """

    FILES = "files"
    QUERY = "query"
    TXN_APP = "txn app"
    HUDI = "hudi"
    FLINK_JOB = "flink job"
    COMMIT_USER = "commit user"


@dataclass(frozen=True, slots=True)
class Remembered:
    """The last number that a sink has of one writer: it skips numbers up to that one, from it."""

    kind: WriterKind
    name: str
    last: int


@dataclass(frozen=True, slots=True)
class Found:
    """What one format's log says: ``unread`` tells what of it was not looked at, and why."""

    format: str
    remembered: tuple[Remembered, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SinkMemory:
    """What a sink remembers.

    Attributes:
        formats: what it is, such as ``a Delta table``; nothing where its kind is not known.
        unread: what of its logs was not looked at, and why.
        empty: there is nothing in it, or it is not there.
    """

    formats: tuple[str, ...]
    remembered: tuple[Remembered, ...]
    unread: tuple[str, ...]
    empty: bool

    def of(self, kind: WriterKind) -> dict[str, int]:
        """The last number of each writer of a kind, by name."""
        return {one.name: one.last for one in self.remembered if one.kind is kind}
