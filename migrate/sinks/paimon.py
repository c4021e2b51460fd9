"""Paimon: each snapshot holds the user that committed it, and the user's number for the commit.

``snapshot/snapshot-<n>`` is JSON with ``commitUser`` and ``commitIdentifier``. The number of a
batch writer, and of Spark's streaming sink, is the largest long; a Flink job's is the checkpoint's
id. The user is a new UUID, with or without a prefix, if a writer starts without state; only a
restored Flink job has its old one, and skips what it has committed. So nothing is skipped for a new
query, or for a job without state.

Source: Snapshot, FileStoreCommitImpl.filterCommitted, CommitterOperator.initializeState,
CoreOptions.createCommitUser, PaimonSink, BatchWriteBuilder @ Paimon 1.3.1.
"""

from __future__ import annotations

import re

from migrate.sinks.directory import Directory, UnreadableSink, number, parse, short, table
from migrate.sinks.remembered import FormatMemory, Remembered, WriterKind

LOG = "snapshot"

_SNAPSHOT = re.compile(r"snapshot-(\d{1,19})")
# The newest snapshots: nothing depends on all of them.
_MOST = 100


def read_log(directory: Directory) -> FormatMemory | None:
    """Read the snapshots; None if there are none."""
    snapshots = directory.numbered(LOG, _SNAPSHOT)
    if not snapshots:
        return None
    last: dict[str, int] = {}
    for _, name in sorted(snapshots, reverse=True)[:_MOST]:
        what = f"{LOG}/{name}: not a snapshot of Paimon's"
        snapshot = table(parse(directory.read(f"{LOG}/{name}"), what), what)
        user = snapshot.get("commitUser")
        if not isinstance(user, str):
            raise UnreadableSink(f"{what}: {short(repr(user))} is no commitUser")
        last.setdefault(user, number(snapshot.get("commitIdentifier"), what))
    remembered = (Remembered(WriterKind.COMMIT_USER, *item) for item in sorted(last.items()))
    return FormatMemory("a Paimon table", tuple(remembered))
