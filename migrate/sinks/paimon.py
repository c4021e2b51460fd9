"""Paimon snapshots contain a commit user (an ID for the writer) and a commit identifier.

``snapshot/snapshot-<n>`` is JSON with ``commitUser`` and ``commitIdentifier``. For a batch writer
and for Spark's streaming sink, the identifier is Long.MAX_VALUE. For a Flink job, it is the
checkpoint ID. A writer that starts without state has a new user, which is a UUID with or without a
prefix. A restored Flink job keeps its user, and skips the checkpoints that this user has already
committed. No other kind of writer keeps its user. Therefore, the sink never skips writes from a new
query or from a Flink job that starts without state.

Source: Snapshot, FileStoreCommitImpl.filterCommitted, CommitterOperator.initializeState,
CoreOptions.createCommitUser, PaimonSink, BatchWriteBuilder @ Paimon 1.3.1.
"""

from __future__ import annotations

import re

from migrate.sinks.directory import Directory, check_type, parse_object, to_integer
from migrate.sinks.remembered import Remembered, SinkMemory, WriterKind

LOG = "snapshot"

_SNAPSHOT = re.compile(r"snapshot-(\d{1,19})")
# The maximum number of snapshots to read, newest first.
_MOST = 100


def read_log(directory: Directory) -> SinkMemory | None:
    """Read the newest snapshots; return None if there are no snapshots."""
    snapshots = directory.numbered(LOG, _SNAPSHOT)
    if not snapshots:
        return None
    last: dict[str, int] = {}
    for _, name in sorted(snapshots, reverse=True)[:_MOST]:
        what = f"{LOG}/{name} is not a Paimon snapshot"
        snapshot = parse_object(directory.read(f"{LOG}/{name}"), what)
        user = check_type(snapshot.get("commitUser"), str, what)
        last.setdefault(user, to_integer(snapshot.get("commitIdentifier"), what))
    remembered = (Remembered(WriterKind.COMMIT_USER, *item) for item in sorted(last.items()))
    return SinkMemory(("a Paimon table",), tuple(remembered))
