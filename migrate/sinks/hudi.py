"""Hudi: a streaming query's sink skips the batches that the timeline has of its identifier.

A completed commit holds ``extraMetadata``, a map with ``_hudi_streaming_sink_checkpoint``: a JSON
object with a batch for each identifier. The newest commit that has the identifier counts, except
archived ones. The identifier is ``hoodie.datasource.write.streaming.checkpoint.identifier``; all
queries that do not set it share one.

The timeline: ``.hoodie/timeline/<requested>_<completed>.<action>`` in Avro (table version 8 on;
``hoodie.timeline.path`` names the folder), ``.hoodie/<time>.<action>`` in JSON before.

Source: HoodieStreamingSink.canSkipBatch, CommitUtils.getValidCheckpointForCurrentWriter,
InstantFileNameGeneratorV1, …V2, CommitMetadataSerDeV1, …V2 @ Hudi 1.1.1.
"""

from __future__ import annotations

import re

from migrate.sinks.avro import is_avro, read_map
from migrate.sinks.directory import MOST_FILES, Directory, UnreadableSink, number, parse, table
from migrate.sinks.remembered import FormatMemory, Remembered, WriterKind

LOG = ".hoodie"

_TIMELINE = "timeline"
_TIMELINE_PATH = re.compile(rb"^\s*hoodie\.timeline\.path\s*[=:]\s*([A-Za-z0-9_-]+)\s*$", re.M)
_WRITE = r"(?:commit|deltacommit|replacecommit)"
_COMPLETED = re.compile(rf"(\d{{8,20}})_\d{{8,20}}\.{_WRITE}")
_COMPLETED_BEFORE_8 = re.compile(rf"(\d{{8,20}})\.{_WRITE}")
_CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"


def read_log(directory: Directory) -> FormatMemory:
    names = directory.names(LOG)
    commits = _commits(names, "", _COMPLETED_BEFORE_8)
    folder = _TIMELINE
    if "hoodie.properties" in names:
        setting = _TIMELINE_PATH.search(directory.read(f"{LOG}/hoodie.properties"))
        folder = setting[1].decode() if setting else _TIMELINE
    if folder in names:
        commits += _commits(directory.names(f"{LOG}/{folder}"), f"{folder}/", _COMPLETED)
    commits.sort(reverse=True)
    batches: dict[str, int] = {}
    for _, path in commits[:MOST_FILES]:
        for identifier, batch in _batches(directory, f"{LOG}/{path}").items():
            batches.setdefault(identifier, batch)
    skipped = len(commits) - MOST_FILES
    unread = (f"the oldest {skipped} commits of {LOG}",) if skipped > 0 else ()
    remembered = (Remembered(WriterKind.HUDI, *item) for item in sorted(batches.items()))
    return FormatMemory("a Hudi table", tuple(remembered), unread)


def _commits(names: list[str], folder: str, pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return the times of the requests, and the paths."""
    return [(m[1], folder + name) for name in names if (m := pattern.fullmatch(name))]


def _batches(directory: Directory, path: str) -> dict[str, int]:
    """Return the batches of a commit by identifier."""
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
