"""Roll back a change to a consumer group with its rollback file.

The rollback first commits the offsets to restore. It then removes the offsets that the group did
not have before the change (OffsetDelete, Kafka 2.4 and newer). This order ensures that nothing is
removed before all target offsets are committed. Offsets in topics that this Kafka user cannot see
do not change. Kafka itself removes a group without offsets within
``offsets.retention.check.interval.ms``, 10 minutes by default.

Before anything changes, the rollback writes its own rollback file.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from migrate.kafka.config import KafkaConfig
from migrate.kafka.groups import CommitFailure, ConsumerGroups
from migrate.model.cluster_snapshot import GroupView
from migrate.model.errors import Refused
from migrate.model.positions import TopicPartition
from migrate.targets.group import rollback_decision
from migrate.targets.group.commit import (
    RETRY_SECONDS,
    ChangeOutcome,
    CommitAttempt,
    attempts,
    check_unchanged,
    in_order,
    later_failures,
    partition_outcome,
    read_again,
    read_settled,
    write,
    write_rollback_file,
)
from migrate.targets.group.rollback_decision import RollbackPreview
from migrate.targets.group.rollback_file import Offsets, RollbackFile


def read_preview(
    config: KafkaConfig, file: RollbackFile, history: Sequence[tuple[Path, RollbackFile]] = ()
) -> RollbackPreview:
    """Read the group, and return a preview of a rollback; nothing is changed.

    ``history`` lists the changes to the group according to rollback files, newest first.

    Raises:
        Refused: the file was written for a different cluster.
        BrokerError: no broker answered in time, or access was denied.
    """
    return _read_preview(ConsumerGroups(config), file, history)


def _read_preview(
    groups: ConsumerGroups, file: RollbackFile, history: Sequence[tuple[Path, RollbackFile]]
) -> RollbackPreview:
    now = groups.view(file.group)
    target = rollback_decision.rollback_target(file, now)
    cluster = groups.snapshot(rollback_decision.topics_to_ask(file, now, target))
    return rollback_decision.rollback_preview(file, now, target, cluster, history)


def restore(
    config: KafkaConfig,
    approved: RollbackPreview,
    rollback_path: Path,
    *,
    force: bool = False,
) -> ChangeOutcome:
    """Undo a change by restoring the offsets that the group had before it.

    The rollback file of this rollback is written to ``rollback_path``. With ``force``, the group is
    rolled back even if it has newer commits or an offset might no longer be valid (``Doubt``).
    Offsets of deleted partitions are omitted.

    Raises:
        Refused: as in ``read_preview``; the group is active, or it has changed since the preview;
            without ``force``, there is a reason that ``force`` would override; or a file already
            exists at ``rollback_path``. Nothing was changed.
        BrokerError: as in ``read_preview``; nothing was changed.
        OSError: the new rollback file could not be written; nothing was changed.
    """
    groups = ConsumerGroups(config)
    current = _read_preview(groups, approved.file, approved.history)
    if refusals := rollback_decision.rollback_refusals(approved, current, force=force):
        raise Refused(refusals)
    now = current.now
    target, partitions = rollback_decision.offsets_to_write(current)
    if not partitions:
        return ChangeOutcome(now.name, (), None)
    write_rollback_file("rollback", groups, now, target, rollback_path)
    check_unchanged(groups, now, rollback_path)
    written = {partition: target[partition] for partition in partitions if partition in target}
    removed = partitions - target.keys()
    if removed and (denied := groups.removal_denied(now.name)) is not None:
        attempt = CommitAttempt(dict.fromkeys(partitions, denied), now)
    else:
        attempt = _write_and_remove(groups, now, written, removed)
    attempt = read_settled(groups, now.name, attempt)
    outcomes = (
        partition_outcome(partition, target.get(partition), now.committed.get(partition), attempt)
        for partition in partitions
    )
    return ChangeOutcome(now.name, in_order(outcomes), rollback_path)


def _write_and_remove(
    groups: ConsumerGroups, now: GroupView, written: Offsets, removed: Collection[TopicPartition]
) -> CommitAttempt:
    """Commit ``written`` and, if the group then has all of these offsets, remove ``removed``."""
    attempt = write(groups, now.name, written, now.committed)
    view = attempt.group
    if not removed or view is None:
        return attempt
    if all(view.committed.get(partition) == offset for partition, offset in written.items()):
        return _remove(groups, now, view, removed)
    if not attempt.failures:
        return attempt
    # Nothing is removed, because a commit failed. Report the removals as failed for the same cause.
    cause = next(iter(attempt.failures.values()))
    return replace(attempt, failures={**dict.fromkeys(removed, cause), **attempt.failures})


def _remove(
    groups: ConsumerGroups,
    before: GroupView,
    now: GroupView,
    partitions: Collection[TopicPartition],
) -> CommitAttempt:
    """Remove offsets, retry after temporary errors, and read the group back.

    An offset that differs from ``before`` is not removed, because another client has committed this
    offset in the meantime.
    """
    deadline = time.monotonic() + RETRY_SECONDS
    failures: dict[TopicPartition, CommitFailure] = {}
    pending, view = set(partitions), now
    for _ in attempts(deadline):
        pending = {key for key in pending if view.committed.get(key) == before.committed.get(key)}
        failed = groups.remove(before.name, pending)
        failures = later_failures(failures, pending, failed)
        read = read_again(groups, before.name, deadline)
        if read is None:
            return CommitAttempt(failures, None)
        pending, view = {key for key in failed if failed[key].transient}, read
        if not pending:
            break
    return CommitAttempt(failures, view)
