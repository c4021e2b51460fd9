"""Hudi sinks skip batches up to the last batch that was committed with the same identifier.

The table's timeline stores the last batch for each identifier. A completed commit contains the
``extraMetadata`` map. In this map, the ``_hudi_streaming_sink_checkpoint`` key contains a JSON
object with a batch for each identifier. The newest commit with the identifier counts. Archived
commits do not count. The identifier is the
``hoodie.datasource.write.streaming.checkpoint.identifier`` option. All queries without this option
share one identifier.

From table version 8, a file of the timeline is
``.hoodie/timeline/<requested>_<completed>.<action>``, in Avro; the ``hoodie.timeline.path``
property can specify a different folder. In older tables, a file is ``.hoodie/<time>.<action>``, in
JSON.

Source: HoodieStreamingSink.canSkipBatch, CommitUtils.getValidCheckpointForCurrentWriter,
InstantFileNameGeneratorV1, …V2, CommitMetadataSerDeV1, …V2 @ Hudi 1.1.1.
"""

from __future__ import annotations

import re

from migrate.sinks.avro import is_avro, read_map
from migrate.sinks.directory import MOST_FILES, Directory, check_type, parse_object, to_integer
from migrate.sinks.remembered import Remembered, SinkMemory, WriterKind

LOG = ".hoodie"

_TIMELINE = "timeline"
_TIMELINE_PATH = re.compile(rb"^\s*hoodie\.timeline\.path\s*[=:]\s*([A-Za-z0-9_-]+)\s*$", re.M)
_WRITE = r"(?:commit|deltacommit|replacecommit)"
_COMPLETED = re.compile(rf"(\d{{8,20}})_\d{{8,20}}\.{_WRITE}")
_COMPLETED_BEFORE_8 = re.compile(rf"(\d{{8,20}})\.{_WRITE}")
_CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"


def read_log(directory: Directory) -> SinkMemory:
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
    return SinkMemory(("a Hudi table",), tuple(remembered), unread)


def _commits(names: list[str], folder: str, pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return a (request time, path) pair for each completed commit."""
    return [(m[1], folder + name) for name in names if (m := pattern.fullmatch(name))]


def _batches(directory: Directory, path: str) -> dict[str, int]:
    """Return the batch number of each identifier in a commit."""
    what = f"{path} is not a Hudi commit"
    content = directory.read(path)
    if not content.strip():
        return {}
    if is_avro(content):
        extra = read_map(content, "extraMetadata", what)
    else:
        extra = check_type(parse_object(content, what).get("extraMetadata") or {}, dict, what)
    checkpoint = extra.get(_CHECKPOINT_KEY)
    if not checkpoint:
        return {}
    batches = parse_object(check_type(checkpoint, str, what).encode(), what)
    return {identifier: to_integer(batch, what) for identifier, batch in batches.items()}
