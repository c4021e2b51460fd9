"""Roll back a change to a consumer group by its rollback file.

If a partition had no committed offset before the change, the rollback must remove its offset.
confluent-kafka cannot remove an offset. So, in this case, the rollback deletes the group, which
must have no members, and commits all other offsets of the group again.

The rollback first writes a rollback file of its own, because between the deletion and the commit
Kafka does not have the offsets. If a run ends between deletion and commit, the next
``migrate rollback`` finds the offsets and completes the rollback, whether it gets the original file
or the new one.
"""

from __future__ import annotations

import time
from pathlib import Path

from migrate.kafka.config import KafkaConfig
from migrate.kafka.groups import CommitFailure, ConsumerGroups
from migrate.model.cluster_snapshot import GroupView
from migrate.model.errors import Refused
from migrate.targets.group import rollback_decision, rollback_file
from migrate.targets.group.commit import (
    RETRY_SECONDS,
    ChangeOutcome,
    CommitAttempt,
    attempts,
    change_refusals,
    in_order,
    partition_outcome,
    read_again,
    read_settled,
    write,
    write_rollback_file,
)
from migrate.targets.group.rollback_decision import RollbackPreview
from migrate.targets.group.rollback_file import Offsets, RollbackFile

# commit-group writes rollback files here by default.
_WORKING_DIRECTORY = Path()


def read_preview(config: KafkaConfig, path: Path, file: RollbackFile) -> RollbackPreview:
    """Read the group and return what a rollback would do now; change nothing.

    Later rollback files are searched for in the directory of ``path`` and in the working directory.

    Raises:
        Refused: the file is of another cluster.
        BrokerError: no broker answered in time, or access was denied.
    """
    return _read_preview(ConsumerGroups(config), path, file)


def _read_preview(groups: ConsumerGroups, path: Path, file: RollbackFile) -> RollbackPreview:
    now = groups.view(file.group)
    folders = path.parent, _WORKING_DIRECTORY
    newest_change = rollback_file.newest_change(folders, file.cluster_id, now)
    target = rollback_decision.rollback_target(path, file, now, newest_change)
    cluster = groups.snapshot(rollback_decision.topics_to_ask(file, now, target))
    return rollback_decision.rollback_preview(file, now, target, cluster)


def restore(
    config: KafkaConfig,
    path: Path,
    approved: RollbackPreview,
    rollback_path: Path,
    *,
    force: bool = False,
) -> ChangeOutcome:
    """Undo a change: bring its partitions back to the offsets that the group held before.

    The rollback file of this rollback is written to ``rollback_path``. With ``force`` the group is
    rolled back although it has moved on since, or an offset might be invalid today (``Doubt``).
    Offsets of partitions that are gone are left out.

    Raises:
        Refused: as for ``read_preview``; the group has members, or has changed since the preview;
            there is a reason that only ``force`` overrides; or there is already a file at
            ``rollback_path``. Nothing was changed.
        BrokerError: as for ``read_preview``; nothing was changed.
        OSError: the new rollback file could not be written; nothing was changed.
    """
    groups = ConsumerGroups(config)
    current = _read_preview(groups, path, approved.file)
    if refusals := rollback_decision.rollback_refusals(approved, current, force=force):
        raise Refused(refusals)
    now = current.now
    target, partitions = rollback_decision.offsets_to_write(current)
    if not partitions:
        return ChangeOutcome(now.name, (), None)
    write_rollback_file("rollback", groups, now, target, rollback_path)
    if current.deletes:
        attempt = _delete_and_commit(groups, now, target)
    else:
        offsets = {partition: target[partition] for partition in partitions}
        attempt = write(groups, now.name, offsets, now.committed)
    attempt = read_settled(groups, now.name, attempt)
    outcomes = (
        partition_outcome(partition, target.get(partition), now.committed.get(partition), attempt)
        for partition in partitions
    )
    return ChangeOutcome(now.name, in_order(outcomes), rollback_path)


def _delete_and_commit(groups: ConsumerGroups, before: GroupView, target: Offsets) -> CommitAttempt:
    # First commit the group's current offsets unchanged, as a trial. Otherwise a missing permission
    # would show only after the group was deleted.
    kept = {
        partition: before.committed[partition]
        for partition in target
        if partition in before.committed
    }
    if kept:
        trial = write(groups, before.name, kept, before.committed)
        if trial.group is None or trial.failures:
            failure = next(iter(trial.failures.values()), None)
            return _nothing_written(before, target, failure, trial.group)
    failure, now = _delete(groups, before)
    if now is None or now.committed:
        return _nothing_written(before, target, failure, now)
    return write(groups, before.name, target, before={})


def _nothing_written(
    before: GroupView, target: Offsets, failure: CommitFailure | None, now: GroupView | None
) -> CommitAttempt:
    """Return an attempt with one failure for all partitions of the group and the target."""
    everything = before.committed.keys() | target.keys()
    return CommitAttempt(dict.fromkeys(everything, failure) if failure is not None else {}, now)


def _delete(
    groups: ConsumerGroups, before: GroupView
) -> tuple[CommitFailure | None, GroupView | None]:
    """Delete the group, and retry after temporary errors.

    Returns:
        The error of the last attempt or None; the group after it, or None if it cannot be read.
    """
    deadline = time.monotonic() + RETRY_SECONDS
    failure: CommitFailure | None = None
    now: GroupView | None = None
    for _ in attempts(deadline):
        failure = groups.delete(before.name)
        now = read_again(groups, before.name, deadline)
        if failure is None or not failure.transient or now is None or change_refusals(before, now):
            break
    return failure, now
