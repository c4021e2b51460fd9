"""A sink that a query of another time has written to, and that would skip a new query's batches.

A new query counts its batches from 0. A file sink skips every batch id up to the last in its
``_spark_metadata``, whichever query wrote it. A Delta table skips the batches that its log has of
the query's own id, and a new query has a new one; but code that writes to Delta in ``foreachBatch``
with ``txnAppId`` and ``txnVersion`` has an id of its own choosing. Nothing is said when a batch is
skipped, and its records are gone.

Source: org.apache.spark.sql.execution.streaming.{FileStreamSink, CompactibleFileStreamLog} @ Spark
4.0.0; the ``txn`` action of the Delta protocol, io.delta:delta-spark @ 4.0.0.
"""

from __future__ import annotations

import io
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrate.targets.spark_locations import Location

_FILE_SINK_LOG = "_spark_metadata"
_DELTA_LOG = "_delta_log"

_BATCH = re.compile(r"(\d+)(?:\.compact)?")
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\..+)?\.(parquet|json)")


class UnreadableSink(Exception):
    """A sink's log that cannot be read."""


@dataclass(frozen=True, slots=True)
class FileSink:
    """A directory that a file sink has written to; ``last_batch`` is the last it knows."""

    last_batch: int


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """A Delta table, and the last batch it has of each writer.

    Attributes:
        last_batches: by application id: a query's id, or a ``txnAppId``.
        unread: why some of its log could not be looked at; empty where all could.
        files_up_to: the last batch of a file sink that has written there too; None of none.
    """

    last_batches: Mapping[str, int]
    unread: str = ""
    files_up_to: int | None = None

    @property
    def named_writers(self) -> dict[str, int]:
        """Those that are no query's id, and so may be used again: a query's is a UUID."""
        return {name: last for name, last in self.last_batches.items() if not _is_uuid(name)}


def look_at_sink(location: Location) -> FileSink | DeltaTable | None:
    """What has been written to a sink before; None where nothing remembers any batch.

    Raises:
        UnreadableSink: its log is not as Spark or Delta write it.
        OSError: it cannot be looked at.
    """
    names = location.names()
    if names is None:
        raise UnreadableSink(f"{location.name} is no directory")
    last_file_batch = max(
        (int(match[1]) for match in _matches(_BATCH, _log(location, _FILE_SINK_LOG))), default=None
    )
    if _DELTA_LOG in names:
        return _delta_table(location, last_file_batch)
    return None if last_file_batch is None else FileSink(last_file_batch)


def _log(location: Location, path: str) -> list[str]:
    """The names in a log; none where it is not there."""
    names = location.names(path)
    if names is None:
        raise UnreadableSink(f"{path} in it is no directory")
    return sorted(names)


def _delta_table(location: Location, last_file_batch: int | None) -> DeltaTable:
    names = _log(location, _DELTA_LOG)
    checkpoints = [(int(match[1]), match[2], match[0]) for match in _matches(_CHECKPOINT, names)]
    newest = max((version for version, _, _ in checkpoints), default=-1)
    last_batches: dict[str, int] = {}
    unread = ""
    for version, kind, name in checkpoints:
        if version != newest:
            continue
        content = location.read(f"{_DELTA_LOG}/{name}")
        if kind == "json":
            last_batches |= _transactions(content, name)
        elif (found := _parquet_transactions(content, name)) is not None:
            last_batches |= found
        else:
            unread = f"pyarrow, which reads {name}, is not installed: pip install pyarrow"
    for match in _matches(_COMMIT, names):
        if int(match[1]) > newest:
            last_batches |= _transactions(location.read(f"{_DELTA_LOG}/{match[0]}"), match[0])
    return DeltaTable(last_batches, unread, last_file_batch)


def _matches(pattern: re.Pattern[str], names: list[str]) -> Iterator[re.Match[str]]:
    return (match for name in names if (match := pattern.fullmatch(name)))


def _transactions(content: bytes, name: str) -> dict[str, int]:
    """The ``txn`` actions of a file with one action a line, in its order."""
    found: dict[str, int] = {}
    try:
        for line in content.splitlines():
            action = json.loads(line).get("txn") if line.strip() else None
            if action is not None:
                found[str(action["appId"])] = int(action["version"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableSink(f"{_DELTA_LOG}/{name}: not a commit of Delta's: {error}") from error
    return found


def _parquet_transactions(content: bytes, name: str) -> dict[str, int] | None:
    """The same of a checkpoint in Parquet; None where pyarrow is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content), columns=["txn"])
        rows = table.column("txn").to_pylist() if table.column_names else []
        return {row["appId"]: row["version"] for row in rows if row is not None and row["appId"]}
    except (pyarrow.ArrowException, KeyError, TypeError) as error:
        raise UnreadableSink(
            f"{_DELTA_LOG}/{name}: not a checkpoint of Delta's: {error}"
        ) from error


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
