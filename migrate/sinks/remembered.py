"""The last number that a sink stores for each writer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# Hudi's identifier for queries that do not set one. Source: DataSourceWriteOptions @ Hudi 1.1.1.
DEFAULT_IDENTIFIER = "default_single_writer"


class WriterKind(str, Enum):
    """The kind of a writer.

    The kind determines the meaning of the writer's number and of its name in the sink.

    Attributes:
        FILES: batches of any query that writes to a file sink; the writer has no name.
        QUERY: batches of a streaming query; the name is the query's ID. A new query has a new ID.
        TXN_APP: versions of a Delta application; the name is a ``txnAppId`` or a query ID.
        HUDI: batches of a streaming query; the name is Hudi's checkpoint identifier.
        FLINK_JOB: checkpoint IDs of a Flink job; the name is the job ID with the operator or
            subtask.
        COMMIT_USER: commit identifiers of Paimon; the name is a user, which each writer generates.
    """

    FILES = "files"
    QUERY = "query"
    TXN_APP = "txn app"
    HUDI = "hudi"
    FLINK_JOB = "flink job"
    COMMIT_USER = "commit user"


@dataclass(frozen=True, slots=True)
class Remembered:
    """The last number of a writer; the sink may skip the writer's numbers up to ``last``."""

    kind: WriterKind
    name: str
    last: int


@dataclass(frozen=True, slots=True)
class SinkMemory:
    """The numbers stored by a sink, or by the log for one of its formats.

    Attributes:
        formats: the names of the sink's formats, such as ``a Delta table``; empty if unknown.
        empty: True if the directory is empty or missing.
    """

    formats: tuple[str, ...]
    remembered: tuple[Remembered, ...]
    unread: tuple[str, ...] = ()
    empty: bool = False

    def last_numbers(self, kind: WriterKind) -> dict[str, int]:
        """Return the last number of each writer of one kind, by the writer's name."""
        return {number.name: number.last for number in self.remembered if number.kind is kind}
