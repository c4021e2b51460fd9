"""Hudi: a streaming query's sink skips the batches that the timeline has of its identifier.

A completed commit holds ``extraMetadata``, a map with ``_hudi_streaming_sink_checkpoint``: a JSON
object of one batch by identifier. The newest commit that has the identifier counts. The identifier
is ``hoodie.datasource.write.streaming.checkpoint.identifier``; of a query that sets none it is one
for all. What is archived counts no more.

The timeline: ``.hoodie/timeline/<requested>_<completed>.<action>`` in Avro (table version 8 on;
``hoodie.timeline.path`` names the folder), ``.hoodie/<time>.<action>`` in JSON before.

Source: HoodieStreamingSink.canSkipBatch, CommitUtils.getValidCheckpointForCurrentWriter,
InstantFileNameGeneratorV1, …V2, CommitMetadataSerDeV1, …V2 @ Hudi 1.1.1.
"""

from __future__ import annotations

import re

from migrate.sinks.avro import is_avro, read_map
from migrate.sinks.directory import MOST_FILES, Directory, UnreadableSink, number, parse, table
from migrate.sinks.remembered import Found, Remembered, WriterKind

LOG = ".hoodie"

_TIMELINE = "timeline"
_TIMELINE_PATH = re.compile(rb"^\s*hoodie\.timeline\.path\s*[=:]\s*([A-Za-z0-9_-]+)\s*$", re.M)
_WRITE = r"(?:commit|deltacommit|replacecommit)"
_COMPLETED = re.compile(rf"(\d{{8,20}})_\d{{8,20}}\.{_WRITE}")
_COMPLETED_BEFORE_8 = re.compile(rf"(\d{{8,20}})\.{_WRITE}")
_CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"


def look(directory: Directory) -> Found:
    names = directory.names(LOG)
    commits = _commits(names, "", _COMPLETED_BEFORE_8)
    folder = _TIMELINE
    if "hoodie.properties" in names:
        given = _TIMELINE_PATH.search(directory.read(f"{LOG}/hoodie.properties"))
        folder = given[1].decode() if given else _TIMELINE
    if folder in names:
        commits += _commits(directory.names(f"{LOG}/{folder}"), f"{folder}/", _COMPLETED)
    commits.sort(reverse=True)
    batches: dict[str, int] = {}
    for _, path in commits[:MOST_FILES]:
        for identifier, batch in _batches(directory, f"{LOG}/{path}").items():
            batches.setdefault(identifier, batch)
    passed_over = commits[MOST_FILES:]
    unread = (f"the oldest {len(passed_over)} commits of {LOG}",) if passed_over else ()
    remembered = (Remembered(WriterKind.HUDI, *one) for one in sorted(batches.items()))
    return Found("a Hudi table", tuple(remembered), unread)


def _commits(names: list[str], folder: str, pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """When each was requested, and its path."""
    return [(m[1], folder + name) for name in names if (m := pattern.fullmatch(name))]


def _batches(directory: Directory, path: str) -> dict[str, int]:
    """What one commit says: batch by identifier."""
    what = f"{path}: not a commit of Hudi's"
    content = directory.read(path)
    if not content.strip():
        return {}
    if is_avro(content):
        extra = read_map(content, "extraMetadata", what)
    else:
        extra = table(table(parse(content, what), what).get("extraMetadata") or {}, what)
    checkpoint = extra.get(_CHECKPOINT_KEY)
    if not checkpoint:
        return {}
    if not isinstance(checkpoint, str):
        raise UnreadableSink(f"{what}: {_CHECKPOINT_KEY} is no text")
    batches = table(parse(checkpoint.encode(), what), what)
    return {identifier: number(batch, what) for identifier, batch in batches.items()}
