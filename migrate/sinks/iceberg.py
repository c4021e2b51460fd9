"""An Iceberg sink searches the snapshots of the table for the last commit that it made itself.

The table metadata is the ``metadata/<n>-<uuid>.metadata.json`` or ``metadata/v<n>.metadata.json``
file with the highest number. It lists the snapshots. Each snapshot has a parent and a ``summary``:

- Spark's streaming sink writes ``spark.sql.streaming.queryId``, and the batch as
  ``spark.sql.streaming.epochId``. The sink skips batches up to the batch in the query's newest
  snapshot.
- Flink's sinks write ``flink.job-id``, ``flink.operator-id``, and
  ``flink.max-committed-checkpoint-id``. IcebergSink and DynamicIcebergSink drop checkpoints up to
  the ID in the newest snapshot with the same job and operator, even in a job that was not restored
  (apache/iceberg#18098, #10892). The older FlinkSink does so only in a restored job.

To find its newest snapshot, a sink follows the parents from the head of the branch to which it
writes.

Source: SparkWrite.BaseStreamingWrite, SinkUtil.getMaxCommittedCheckpointId, IcebergCommitter,
IcebergFilesCommitter @ Iceberg 1.10.0; the table specification, table metadata.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from migrate.sinks.directory import (
    LARGEST,
    Directory,
    UnreadableSink,
    check_type,
    parse_object,
    to_integer,
)
from migrate.sinks.remembered import Remembered, SinkMemory, WriterKind

LOG = "metadata"

_METADATA = re.compile(r"v?(\d{1,19})(?:-.+)?(?:\.gz)?\.metadata\.json(?:\.gz)?")
_GZIP = b"\x1f\x8b"

_Writer = tuple[WriterKind, str]


def read_log(directory: Directory) -> SinkMemory | None:
    """Read the newest metadata of a table; return None if there is no metadata."""
    files = directory.numbered(LOG, _METADATA)
    if not files:
        return None
    newest = max(version for version, _ in files)
    last: dict[_Writer, int] = {}
    # After a failed concurrent commit, several files may have the highest number.
    for name in sorted(name for version, name in files if version == newest):
        what = f"{LOG}/{name} is not Iceberg table metadata"
        for writer, last_number in _read_table(_read(directory, name), what):
            last[writer] = max(last_number, last.get(writer, last_number))
    remembered = (Remembered(*writer, last_number) for writer, last_number in sorted(last.items()))
    return SinkMemory(("an Iceberg table",), tuple(remembered))


def _read(directory: Directory, name: str) -> bytes:
    content = directory.read(f"{LOG}/{name}")
    if not content.startswith(_GZIP):
        return content
    try:
        plain = zlib.decompressobj(wbits=31).decompress(content, LARGEST + 1)
    except zlib.error as error:
        raise UnreadableSink(f"{LOG}/{name}: {error}") from error
    if len(plain) > LARGEST:
        raise UnreadableSink(
            f"{LOG}/{name} was not read, because it is larger than {LARGEST >> 20} MiB"
        )
    return plain


def _read_table(content: bytes, what: str) -> Iterator[tuple[_Writer, int]]:
    """Yield each writer's last number on each branch of a table."""
    metadata = parse_object(content, what)
    snapshots = {
        to_integer(check_type(snapshot, dict, what).get("snapshot-id"), what): snapshot
        for snapshot in check_type(metadata.get("snapshots") or [], list, what)
    }
    refs = check_type(metadata.get("refs") or {}, dict, what)
    heads = {
        name: check_type(ref, dict, what).get("snapshot-id")
        for name, ref in refs.items()
        if check_type(ref, dict, what).get("type", "branch") == "branch"
    }
    heads.setdefault("main", metadata.get("current-snapshot-id"))
    for branch, head in heads.items():
        yield from _last_numbers(_summaries_from(head, snapshots, what), branch, what).items()


def _summaries_from(
    head: object, snapshots: Mapping[int, dict[str, Any]], what: str
) -> Iterator[dict[str, Any]]:
    """Yield the summaries of a snapshot and its ancestors; stop if the parents form a cycle."""
    seen: set[object] = set()
    while isinstance(head, int) and head in snapshots and head not in seen:
        seen.add(head)
        yield check_type(snapshots[head].get("summary") or {}, dict, what)
        head = snapshots[head].get("parent-snapshot-id")


def _last_numbers(
    summaries: Iterable[dict[str, Any]], branch: str, what: str
) -> dict[_Writer, int]:
    """Return each writer's last number on a branch; ``summaries`` are ordered newest first."""
    last: dict[_Writer, int] = {}
    on = "" if branch == "main" else f", branch {branch}"
    for summary in summaries:
        query, batch = summary.get("spark.sql.streaming.queryId"), "spark.sql.streaming.epochId"
        if query is not None:
            last.setdefault((WriterKind.QUERY, str(query)), to_integer(summary.get(batch), what))
        job, checkpoint = summary.get("flink.job-id"), "flink.max-committed-checkpoint-id"
        if job is not None and checkpoint in summary:
            operator = summary.get("flink.operator-id", "any")
            name = f"job {job}, operator {operator}{on}"
            last.setdefault((WriterKind.FLINK_JOB, name), to_integer(summary[checkpoint], what))
    return last
