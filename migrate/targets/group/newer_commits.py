"""Refuse a commit that would rewind a group; no I/O here.

``migrate`` writes no metadata by default, so an offset does not show which client committed it. The
rollback files in the searched folders show this. Without these files, every offset above the new
one counts as a commit by another client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from migrate.model.cluster_snapshot import GroupView
from migrate.model.option_names import option
from migrate.model.positions import TopicPartition
from migrate.model.wording import counted
from migrate.targets.group.rollback_file import RollbackFile, writers


def newer_commit_refusals(
    group: GroupView,
    next_offsets: Mapping[TopicPartition, int],
    changes: Iterable[RollbackFile] = (),
) -> Iterator[str]:
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
    yield (
        f"group {group.name} has newer commits: {counted(len(ahead), 'offset')} would be rewound "
        f"(the first is {topic}-{partition}: {group.committed[first].next_offset}, to rewind to "
        f"{next_offsets[first]}), and up to {counted(sum(ahead.values()), 'record')} would be "
        f"reprocessed; add {option('allow_moved_on', True)} to rewind the group"
    )
