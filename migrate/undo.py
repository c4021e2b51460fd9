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

from migrate import restoration
from migrate.broker import ConsumerGroups, Failure
from migrate.kafka_config import KafkaConfig
from migrate.restoration import Doubt, Restoration
from migrate.rollback_file import Offsets
from migrate.snapshot import GroupView
from migrate.targets.consumer_group import (
    PATIENCE,
    GroupRefused,
    Outcome,
    Written,
    attempts,
    changed,
    in_order,
    keep_for_rollback,
    partition_outcome,
    read_again,
    write,
)


def look(config: KafkaConfig, path: Path) -> Restoration:
    """What restoring a rollback file would do now: see ``restoration.look``."""
    return restoration.look(ConsumerGroups(config), path)


def restore(
    config: KafkaConfig,
    path: Path,
    seen: Restoration,
    rollback_path: Path,
    *,
    force: bool = False,
) -> Outcome:
    """Bring the group back to what it held before the change in a rollback file.

    Args:
        config: librdkafka properties, ``bootstrap.servers`` among them.
        path: the rollback file.
        seen: what ``look`` said, and was agreed to.
        rollback_path: where the rollback file of this change is written, before anything else.
        force: go back although the group has moved on since, or an offset is no longer one of its
            log; what belongs to no partition is left out.

    Raises:
        GroupRefused: the group has members, has moved on, or is no longer as it was seen.
        RollbackFileError, BrokerError: as ``look``; nothing was changed.
        OSError: the new rollback file could not be written; nothing was changed.
    """
    groups = ConsumerGroups(config)
    found = restoration.look(groups, path)
    refusals = [*found.refusals, *changed(seen.now, found.now)]
    if not force:
        refusals += found.unless_forced
    if refusals:
        raise GroupRefused(refusals)
    gone = {(one.topic, one.partition) for one in found.partitions if one.doubt is Doubt.GONE}
    now = found.now
    target = {place: held for place, held in found.target.items() if place not in gone}
    places = {(one.topic, one.partition) for one in found.partitions} - gone
    if not places:
        return Outcome(now.name, (), None)
    keep_for_rollback("rollback", groups, now, target, rollback_path)
    if found.deletes:
        places |= target.keys()
        written = _delete_and_commit(groups, now, target)
    else:
        written = write(groups, now.name, {p: target[p] for p in places}, now.committed)
    outcomes = (
        partition_outcome(place, target.get(place), now.committed.get(place), written)
        for place in places
    )
    return Outcome(now.name, in_order(outcomes), rollback_path)


def _delete_and_commit(groups: ConsumerGroups, before: GroupView, target: Offsets) -> Written:
    def nothing(failure: Failure | None, held: GroupView | None) -> Written:
        everything = before.committed.keys() | target.keys()
        return Written(dict.fromkeys(everything, failure) if failure is not None else {}, held)

    # What must be committed anew is committed as it is first: a permission that lacks would
    # otherwise show when the group is gone.
    kept = {place: before.committed[place] for place in target if place in before.committed}
    if kept:
        tried = write(groups, before.name, kept, before.committed)
        if tried.held is None or tried.failures:
            return nothing(next(iter(tried.failures.values()), None), tried.held)
    failure, held = _delete(groups, before)
    if held is None or held.committed:
        return nothing(failure, held)
    return write(groups, before.name, target, before={})


def _delete(groups: ConsumerGroups, before: GroupView) -> tuple[Failure | None, GroupView | None]:
    """Delete the group, again where that may help; what was answered, and the group afterwards."""
    deadline = time.monotonic() + PATIENCE
    failure: Failure | None = None
    held: GroupView | None = None
    for _ in attempts(deadline):
        failure = groups.delete(before.name)
        held = read_again(groups, before.name, deadline)
        if failure is None or not failure.transient or held is None or changed(before, held):
            break
    return failure, held
