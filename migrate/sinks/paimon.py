"""Paimon: each snapshot names the user that committed it, and its number for the commit.

``snapshot/snapshot-<n>`` is JSON with ``commitUser`` and ``commitIdentifier``. A batch writer's
number, Spark's streaming sink's too, is the largest there is; a Flink job's is the checkpoint's id.
The user is a new UUID, alone or behind a prefix, wherever a writer starts without state; only a
Flink job that is restored has its old one, and asks for what it has committed. So a new query, or
a job without state, has nothing skipped.

Source: Snapshot, FileStoreCommitImpl.filterCommitted, CommitterOperator.initializeState,
CoreOptions.createCommitUser, PaimonSink, BatchWriteBuilder @ Paimon 1.3.1.
"""

from __future__ import annotations

import re

from migrate.sinks.directory import Directory, UnreadableSink, number, parse, short, table
from migrate.sinks.remembered import Found, Remembered, WriterKind

LOG = "snapshot"

_SNAPSHOT = re.compile(r"snapshot-(\d{1,19})")
# The newest: nothing depends on all of them.
_MOST = 100


def look(directory: Directory) -> Found | None:
    """None where there is no snapshot of Paimon's."""
    found = [(int(m[1]), name) for name in directory.names(LOG) if (m := _SNAPSHOT.fullmatch(name))]
    if not found:
        return None
    last: dict[str, int] = {}
    for _, name in sorted(found, reverse=True)[:_MOST]:
        what = f"{LOG}/{name}: not a snapshot of Paimon's"
        snapshot = table(parse(directory.read(f"{LOG}/{name}"), what), what)
        user = snapshot.get("commitUser")
        if not isinstance(user, str):
            raise UnreadableSink(f"{what}: {short(repr(user))} is no commitUser")
        last.setdefault(user, number(snapshot.get("commitIdentifier"), what))
    remembered = (Remembered(WriterKind.COMMIT_USER, *one) for one in sorted(last.items()))
    return Found("a Paimon table", tuple(remembered))
