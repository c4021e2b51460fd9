"""A preview of a rollback of a consumer group, and the reasons against it; no I/O here.

After the rollback file was written, the group may have received newer commits, an offset may have
been deleted from its partition's log, or a topic may have been recreated. In these cases, a
rollback is refused unless it is forced. The decision depends only on the rollback file, the group,
and the cluster, all of which ``rollback`` has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from migrate.model.catalog import (
    COMMITS_AFTER_CHANGE,
    EARLIER_OFFSET_BEYOND_END,
    EARLIER_OFFSET_EXPIRED,
    EARLIER_PARTITION_GONE,
    EARLIER_TOPIC_RECREATED,
    LATER_CHANGE,
    ROLLBACK_FOR_OTHER_CLUSTER,
)
from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange
from migrate.model.errors import Refused
from migrate.model.message import Message
from migrate.model.positions import PartitionRow, TopicPartition, log_of
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import GROUP_OFFSETS_LOST
from migrate.model.wording import counted
from migrate.targets.group import rollback_file
from migrate.targets.group.commit import change_refusals, commit_refusals
from migrate.targets.group.rollback_file import ChangeProgress, Offsets, RollbackFile


class Doubt(str, Enum):
    """The reason that an offset in the rollback file might no longer be valid."""

    GONE = "partition gone"
    RECREATED = "topic recreated"
    EXPIRED = "below log start"
    BEYOND_END = "beyond log end"


_DOUBT_TEMPLATES = {
    Doubt.RECREATED: EARLIER_TOPIC_RECREATED,
    Doubt.EXPIRED: EARLIER_OFFSET_EXPIRED,
    Doubt.BEYOND_END: EARLIER_OFFSET_BEYOND_END,
}


@dataclass(frozen=True, slots=True)
class RestoredOffset(PartitionRow):
    """A partition whose offset the rollback changes.

    Attributes:
        now: the group's committed offset, or None.
        target: the offset to restore; None if the group should have no offset.
        log: the current log of the partition; None if the partition was deleted, or if ``target``
            is None.
        doubt: the reason that ``target`` might no longer be valid, or None.
    """

    now: Committed | None
    target: Committed | None
    log: LogRange | None
    doubt: Doubt | None

    @property
    def omitted(self) -> bool:
        """True if even a rollback with ``force`` cannot restore the offset."""
        return self.doubt is Doubt.GONE


@dataclass(frozen=True, slots=True)
class RollbackPreview:
    """The changes that a rollback would currently make.

    Attributes:
        file: the change to roll back.
        history: the changes to the group according to rollback files, newest first.
        progress: the progress of the change in ``file``.
        now: the current state of the group.
        target: every offset that the group should have after the rollback.
        partitions: the offsets that change, in order.
        lost: if the progress is ``IN_PART``, the partitions whose offsets the group has lost since
            the change, provided that no other offset differs from the result of the change.
        refusals: the reasons not to roll back.
        unless_forced: further reasons to refuse, which ``force`` overrides: the rollback would undo
            a commit by another client or restore an offset that might no longer be valid.
        warnings: the warnings for the user.
    """

    file: RollbackFile
    history: Sequence[tuple[Path, RollbackFile]]
    progress: ChangeProgress
    now: GroupView
    target: Offsets
    partitions: tuple[RestoredOffset, ...]
    lost: tuple[TopicPartition, ...]
    refusals: tuple[Message, ...]
    unless_forced: tuple[Message, ...]
    warnings: tuple[str, ...]


def rollback_target(file: RollbackFile, now: GroupView) -> Offsets:
    """Return every offset that the group should have after the rollback.

    Partitions that the change did not affect keep their offsets. If the group has no offsets at
    all, the group was deleted, or its offsets expired. In that case, the partitions that the change
    did not affect get their offsets from before the change. If the group has some offsets, another
    client has removed the missing offsets or their topic.
    """
    before = file.before.committed
    others = now.committed or before
    restored = file.changed_partitions & before.keys()
    return {
        **{key: others[key] for key in others if key not in file.changed_partitions},
        **{key: before[key] for key in restored},
    }


def topics_to_ask(file: RollbackFile, now: GroupView, target: Offsets) -> set[str]:
    """Return the topics whose logs show whether the offsets are still valid.

    If this user is not allowed to DESCRIBE a topic, Kafka answers as if the group had no offsets in
    that topic. A request about the topic itself returns the error, so every topic of the change is
    returned.
    """
    partitions = rollback_file.differing_partitions(now.committed, target)
    return {topic for topic, _ in {*partitions, *file.changed_partitions}}


def rollback_preview(
    file: RollbackFile,
    now: GroupView,
    target: Offsets,
    cluster: ClusterSnapshot,
    history: Sequence[tuple[Path, RollbackFile]] = (),
) -> RollbackPreview:
    """Return a preview of a rollback in the current state.

    Args:
        file: the change to roll back.
        now: the current state of the group.
        target: the result of ``rollback_target``.
        cluster: a snapshot of the topics that ``topics_to_ask`` returns.
        history: the changes to the group according to rollback files, newest first.

    Raises:
        Refused: the file was written for a different cluster.
    """
    if cluster.cluster_id != file.cluster_id:
        raise Refused(
            ROLLBACK_FOR_OTHER_CLUSTER(
                cluster=cluster.cluster_id, saved=file.cluster_id, servers=file.bootstrap_servers
            )
        )
    partitions = _restored_offsets(file, now, target, cluster)
    progress = rollback_file.change_progress(file, now)
    return RollbackPreview(
        file,
        history,
        progress,
        now,
        target,
        partitions,
        _lost_since(file, now, cluster) if progress is ChangeProgress.IN_PART else (),
        tuple(commit_refusals(now, restores=True)),
        tuple(_forceable_refusals(file, now, cluster, partitions, history)),
        tuple(_warnings(file, partitions)),
    )


def _lost_since(
    file: RollbackFile, now: GroupView, cluster: ClusterSnapshot
) -> tuple[TopicPartition, ...]:
    """Return the partitions whose offsets the group has lost since the change.

    Return nothing if another offset also differs from the result of the change. A commit removes no
    offset, so an offset from before the change was lost. If there was none, the offset of the
    change was lost only if the topic was deleted or recreated; otherwise, the commit may have
    failed.
    """
    before, after, held = file.before.committed, file.after.committed, now.committed
    differing = sorted(
        partition
        for partition in file.changed_partitions
        if held.get(partition) != after.get(partition)
    )

    def lost(topic: str, number: int) -> bool:
        same_topic = cluster.topic_ids.get(topic) == file.topic_ids.get(topic)
        is_kept = log_of(cluster.topics, topic, number) is not None and same_topic
        return (topic, number) not in held and ((topic, number) in before or not is_kept)

    return tuple(differing) if all(lost(*partition) for partition in differing) else ()


def _restored_offsets(
    file: RollbackFile, now: GroupView, target: Offsets, cluster: ClusterSnapshot
) -> tuple[RestoredOffset, ...]:
    restored = []
    for topic, number in rollback_file.differing_partitions(now.committed, target):
        partition = topic, number
        current, offset = now.committed.get(partition), target.get(partition)
        log, doubt = None, None
        if offset is not None:
            log = cluster.topics.get(topic, {}).get(number)
            doubt = _doubt(offset, log, file.topic_ids.get(topic), cluster.topic_ids.get(topic))
        restored.append(RestoredOffset(topic, number, current, offset, log, doubt))
    return tuple(restored)


def rollback_refusals(
    approved: RollbackPreview, current: RollbackPreview, *, force: bool
) -> tuple[Message, ...]:
    """Return the reasons not to roll back, including changes since the approved preview.

    Args:
        approved: the preview that the user has approved.
        current: the preview just before the rollback.
        force: True to ignore the reasons in ``RollbackPreview.unless_forced``.
    """
    return (
        *current.refusals,
        *change_refusals(approved.now, current.now),
        *(() if force else current.unless_forced),
    )


def offsets_to_write(preview: RollbackPreview) -> tuple[Offsets, set[TopicPartition]]:
    """Return the offsets that a rollback writes.

    Returns:
        Every offset that the group should have, except those of deleted partitions; and the
        partitions that change.
    """
    gone = {restored.topic_partition for restored in preview.partitions if restored.omitted}
    partitions = {restored.topic_partition for restored in preview.partitions} - gone
    target = {
        partition: offset for partition, offset in preview.target.items() if partition not in gone
    }
    return target, partitions


def _doubt(
    target: Committed, log: LogRange | None, id_then: str | None, id_now: str | None
) -> Doubt | None:
    if log is None:
        return Doubt.GONE
    if id_then is not None and id_now is not None and id_then != id_now:
        return Doubt.RECREATED
    if target.next_offset < log.start:
        return Doubt.EXPIRED
    return Doubt.BEYOND_END if target.next_offset > log.end else None


def _forceable_refusals(
    file: RollbackFile,
    now: GroupView,
    cluster: ClusterSnapshot,
    partitions: Iterable[RestoredOffset],
    history: Sequence[tuple[Path, RollbackFile]],
) -> Iterator[Message]:
    """Yield the items of ``RollbackPreview.unless_forced``."""
    later = [change for _, change in history if change.created_at > file.created_at]
    ours = rollback_file.last_writers(later, now)
    newer = rollback_file.moved_on_partitions(file, now)
    # A later change may have committed the same offset again, from a different earlier offset.
    again = [
        restored.topic_partition
        for restored in partitions
        if (change := ours.get(restored.topic_partition)) is not None
        and change.before.committed.get(restored.topic_partition) != restored.target
    ]
    if by_us := [key for key in dict.fromkeys([*newer, *again]) if key in ours]:
        newest = next(path for path, change in history if change is ours[by_us[0]])
        yield LATER_CHANGE(**_newer_commits(file, now, cluster, by_us), newest=newest)
    if by_others := [key for key in newer if key not in ours]:
        yield COMMITS_AFTER_CHANGE(**_newer_commits(file, now, cluster, by_others))
    for restored in partitions:
        name, target, log = restored.name, restored.target, restored.log
        if restored.doubt is None or target is None:
            continue
        if log is None:
            yield EARLIER_PARTITION_GONE(partition=name, offset=target.next_offset)
        else:
            template = _DOUBT_TEMPLATES[restored.doubt]
            yield template(partition=name, offset=target.next_offset, start=log.start, end=log.end)


def _newer_commits(
    file: RollbackFile,
    now: GroupView,
    cluster: ClusterSnapshot,
    partitions: Sequence[TopicPartition],
) -> dict[str, Any]:
    """Return the facts of a refusal: the newer commits, and the cost of a forced rollback."""
    topic, number = first = partitions[0]
    return {
        "group": file.group,
        "count": len(partitions),
        "partition": f"{topic}-{number}",
        "current": now.committed[first].next_offset,
        "cost": _cost_of_force(file.before.committed, now.committed, cluster, partitions),
    }


def _cost_of_force(
    before: Offsets,
    committed: Offsets,
    cluster: ClusterSnapshot,
    partitions: Iterable[TopicPartition],
) -> str:
    """Return a clause about the effect on consumers if newer commits are rolled back.

    A restored offset makes consumers reprocess or skip records. If a partition had no offset before
    the change, the rollback removes its newer offset, and consumers apply ``auto.offset.reset``.
    """
    distances = [
        committed[key].next_offset - before[key].next_offset for key in partitions if key in before
    ]
    removed = [key for key in partitions if key not in before]
    parts = []
    if reprocessed := sum(distance for distance in distances if distance > 0):
        parts.append(f"consumers reprocess up to {counted(reprocessed, 'record')}")
    if skipped := -sum(distance for distance in distances if distance < 0):
        parts.append(f"consumers skip up to {counted(skipped, 'record')}")
    if removed:
        logs = [log_of(cluster.topics, *key) for key in removed]
        below = sum(
            max(0, committed[key].next_offset - log.start)
            for key, log in zip(removed, logs, strict=True)
            if log is not None
        )
        up_to = (
            "the records from the log start"
            if None in logs
            else f"up to {counted(below, 'record')}"
        )
        from_start = (
            f"consumers with auto.offset.reset=earliest reprocess {up_to}, and "
            if below or None in logs
            else ""
        )
        parts.append(
            f"the group loses {counted(len(removed), 'offset')}, so {from_start}"
            "consumers with auto.offset.reset=latest skip the records that arrive before they "
            "restart"
        )
    return "; ".join(parts) or "only metadata or leader epochs change"


def _warnings(file: RollbackFile, partitions: Iterable[RestoredOffset]) -> Iterator[WarningText]:
    """Warn about offsets that the change did not affect, but that the group has lost since then."""
    lost = [
        restored
        for restored in partitions
        if restored.target is not None and restored.topic_partition not in file.changed_partitions
    ]
    if lost:
        yield WarningText(
            GROUP_OFFSETS_LOST(count=len(lost), partition=lost[0].name, time=file.created_at)
        )
