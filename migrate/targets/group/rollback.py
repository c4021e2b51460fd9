"""Takes a change to a consumer group back, by its rollback file: "no offset" included.

Kafka's client can commit an offset but not remove one. Where a partition is to hold none again,
the empty group is deleted and everything else it holds, of all topics, is committed anew; where
none is, offsets are committed and no more. The way back has a rollback file of its own, written
first: between the deletion and the commit the offsets are on the disk and nowhere else. If a run
ends there, the next ``migrate rollback`` of either file finds them and finishes the work.
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
    PATIENCE,
    ChangeOutcome,
    Written,
    attempts,
    changed,
    confirm_written,
    in_order,
    partition_outcome,
    read_again,
    write,
    write_rollback_file,
)
from migrate.targets.group.rollback_decision import RollbackPreview
from migrate.targets.group.rollback_file import Offsets, RollbackFile

# Where rollback files are looked for beside the folder of the one that is named: where
# commit-group writes them by default.
_HERE = Path()


def look(config: KafkaConfig, path: Path, file: RollbackFile) -> RollbackPreview:
    """What restoring a rollback file would do now; nothing is changed.

    Args:
        config: librdkafka properties, ``bootstrap.servers`` among them.
        path: where the rollback file is; later ones are looked for beside it, and here.
        file: what it holds.

    Raises:
        BrokerError: no broker answered in time, or access was denied.
    """
    return _look(ConsumerGroups(config), path, file)


def _look(groups: ConsumerGroups, path: Path, file: RollbackFile) -> RollbackPreview:
    now = groups.view(file.group)
    run = rollback_file.earlier_run((path.parent, _HERE), file.cluster_id, now)
    wanted = rollback_decision.rollback_target(path, file, now, run)
    cluster = groups.snapshot(rollback_decision.topics_to_ask(file, now, wanted))
    return rollback_decision.rollback_preview(file, now, wanted, cluster)


def restore(
    config: KafkaConfig,
    path: Path,
    seen: RollbackPreview,
    rollback_path: Path,
    *,
    force: bool = False,
) -> ChangeOutcome:
    """Bring the group back to what it held before the change in a rollback file.

    Args:
        config: librdkafka properties, ``bootstrap.servers`` among them.
        path: the rollback file.
        seen: what ``look`` said, and was agreed to.
        rollback_path: where the rollback file of this change is written, before anything else.
        force: go back although the group has moved on since, or an offset is no longer one of its
            log; what belongs to no partition is left out.

    Raises:
        Refused: the group has members, has moved on, or is no longer as it was seen.
        BrokerError: as ``look``; nothing was changed.
        OSError: the new rollback file could not be written; nothing was changed.
    """
    groups = ConsumerGroups(config)
    found = _look(groups, path, seen.file)
    way = rollback_decision.plan_rollback(seen, found, force=force)
    if way.refusals:
        raise Refused(way.refusals)
    now = found.now
    if not way.places:
        return ChangeOutcome(now.name, (), None)
    write_rollback_file("rollback", groups, now, way.target, rollback_path)
    if way.deletes:
        written = _delete_and_commit(groups, now, way.target)
    else:
        todo = {place: way.target[place] for place in way.places}
        written = write(groups, now.name, todo, now.committed)
    written = confirm_written(groups, now.name, written)
    outcomes = (
        partition_outcome(place, way.target.get(place), now.committed.get(place), written)
        for place in way.places
    )
    return ChangeOutcome(now.name, in_order(outcomes), rollback_path)


def _delete_and_commit(groups: ConsumerGroups, before: GroupView, target: Offsets) -> Written:
    # What must be committed anew is committed as it is first: a permission that lacks would
    # otherwise show when the group is gone.
    kept = {place: before.committed[place] for place in target if place in before.committed}
    if kept:
        tried = write(groups, before.name, kept, before.committed)
        if tried.held is None or tried.failures:
            failure = next(iter(tried.failures.values()), None)
            return _nothing_written(before, target, failure, tried.held)
    failure, held = _delete(groups, before)
    if held is None or held.committed:
        return _nothing_written(before, target, failure, held)
    return write(groups, before.name, target, before={})


def _nothing_written(
    before: GroupView, target: Offsets, failure: CommitFailure | None, held: GroupView | None
) -> Written:
    """What failed first stands for every partition that was held, or was to be."""
    everything = before.committed.keys() | target.keys()
    return Written(dict.fromkeys(everything, failure) if failure is not None else {}, held)


def _delete(
    groups: ConsumerGroups, before: GroupView
) -> tuple[CommitFailure | None, GroupView | None]:
    """Delete the group, again where that may help; what was answered, and the group afterwards."""
    deadline = time.monotonic() + PATIENCE
    failure: CommitFailure | None = None
    held: GroupView | None = None
    for _ in attempts(deadline):
        failure = groups.delete(before.name)
        held = read_again(groups, before.name, deadline)
        if failure is None or not failure.transient or held is None or changed(before, held):
            break
    return failure, held
