"""Refuse a commit that would rewind a group; no I/O here.

``migrate`` writes no metadata by default, so an offset does not show which client committed it. The
rollback files in the searched folders show this. Without these files, every offset above the new
one counts as a commit by another client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from migrate.model.catalog import GROUP_HAS_NEWER_COMMITS
from migrate.model.cluster_snapshot import GroupView
from migrate.model.message import Message
from migrate.model.positions import TopicPartition
from migrate.targets.group.rollback_file import RollbackFile, writers


def newer_commit_refusals(
    group: GroupView,
    next_offsets: Mapping[TopicPartition, int],
    changes: Iterable[RollbackFile] = (),
) -> Iterator[Message]:
    """Yield a refusal if a commit of ``next_offsets`` would rewind commits by other clients.

    Args:
        group: the current state of the group.
        next_offsets: the offsets to commit.
        changes: the changes to the group according to rollback files, newest first. An offset that
            one of these changes wrote may be rewound, because no consumer has committed since then.
    """
    ours = {
        partition
        for partition, change in writers(changes, group).items()
        if partition in change.changed_partitions
    }
    ahead = {
        partition: committed.next_offset - next_offset
        for partition, next_offset in next_offsets.items()
        if partition not in ours
        and (committed := group.committed.get(partition)) is not None
        and committed.next_offset > next_offset
    }
    if not ahead:
        return
    topic, partition = first = min(ahead)
    yield GROUP_HAS_NEWER_COMMITS(
        group=group.name,
        count=len(ahead),
        partition=f"{topic}-{partition}",
        current=group.committed[first].next_offset,
        next_offset=next_offsets[first],
        records=sum(ahead.values()),
    )
