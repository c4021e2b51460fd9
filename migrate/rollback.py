"""Takes a change to a consumer group back, by its rollback file: "no offset" included.

Kafka's client can commit an offset but not remove one. Where a partition is to hold none again,
the empty group is deleted and everything else it holds, of all topics, is committed anew; where
none is, offsets are committed and no more. The way back has a rollback file of its own, written
first: between the deletion and the commit the offsets are on the disk and nowhere else. If a run
ends there, the next ``migrate rollback`` of either file finds them and finishes the work.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate import rollback_file
from migrate.broker import ConsumerGroups, Failure
from migrate.kafka_config import KafkaConfig
from migrate.rollback_file import Fate, RollbackFile
from migrate.snapshot import Committed, GroupView
from migrate.targets.consumer_group import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    PATIENCE,
    GroupRefused,
    Outcome,
    Written,
    changed,
    in_order,
    not_writable,
    partition_outcome,
    read_again,
    write,
)

TopicPartition = tuple[str, int]

FORCE = "--force"


@dataclass(frozen=True, slots=True)
class Restored:
    """One partition whose offset changes; None where it holds, or is to hold, none."""

    topic: str
    partition: int
    now: Committed | None
    then: Committed | None


@dataclass(frozen=True, slots=True)
class Restoration:
    """What restoring would do, and what stands in its way.

    Attributes:
        file: the change that is taken back.
        fate: how far that change came.
        now: the group as it is.
        target: every offset the group is to hold; partitions that the change was not about keep
            what they hold now.
        refusals: why it must not be done.
        moved_on: why it must not be done unless forced: it would undo what somebody else did.
        warnings: what else must be known.
    """

    file: RollbackFile
    fate: Fate
    now: GroupView
    target: Mapping[TopicPartition, Committed]
    refusals: tuple[str, ...]
    moved_on: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def partitions(self) -> tuple[Restored, ...]:
        """What changes, in order."""
        held = self.now.committed
        return tuple(
            Restored(*place, held.get(place), self.target.get(place))
            for place in sorted(held.keys() | self.target.keys())
            if held.get(place) != self.target.get(place)
        )

    @property
    def deletes(self) -> bool:
        """Whether the group is deleted, and then committed anew where it is to hold anything."""
        return not self.now.committed.keys() <= self.target.keys()


def look(config: KafkaConfig, path: Path) -> Restoration:
    """What restoring a rollback file would do now; nothing is changed.

    Raises:
        RollbackFileError: it is no rollback file of this version.
        BrokerError: no broker answered in time, or access was denied.
    """
    return _look(ConsumerGroups(config), path)


def _look(groups: ConsumerGroups, path: Path) -> Restoration:
    file = rollback_file.read(path)
    now = groups.view(file.group)
    cluster_id = groups.cluster_id()
    refusals = not_writable(now)
    if cluster_id != file.cluster_id:
        refusals.append(f"this is cluster {cluster_id}; the file is of cluster {file.cluster_id}")
    target = _target(file, now, _last_known(path, file, now))
    return Restoration(
        file,
        rollback_file.fate(file, now),
        now,
        target,
        tuple(refusals),
        _moved_on(file, now),
        _warnings(now, target),
    )


def _last_known(
    path: Path, file: RollbackFile, now: GroupView
) -> Mapping[TopicPartition, Committed]:
    """What the group held where it has lost what this change was not about.

    A rollback that ended between deletion and commit knows it best. Otherwise, unless the whole
    group is gone, what is missing was taken by somebody else, or with its topic, and stays so.
    """
    run = rollback_file.earlier_run(path.parent, file.cluster_id, now)
    interrupted = (Fate.IN_PART, Fate.MOVED_ON)  # moved on: a consumer has committed since
    if run is not None and run.file.change == "rollback" and run.fate in interrupted:
        return run.file.after.committed
    return file.before.committed if not now.committed else {}


def _target(
    file: RollbackFile, now: GroupView, last_known: Mapping[TopicPartition, Committed]
) -> dict[TopicPartition, Committed]:
    before = file.before.committed
    others = {
        place: committed
        for place, committed in {**last_known, **now.committed}.items()
        if place not in file.touched
    }
    return {**others, **{place: before[place] for place in file.touched if place in before}}


def _moved_on(file: RollbackFile, now: GroupView) -> tuple[str, ...]:
    places = rollback_file.moved_on(file, now)
    if not places:
        return ()
    topic, partition = places[0]
    return (
        f"group {file.group} has moved on since: {len(places)} of its offsets are neither what it "
        f"held before nor what was written (the first is {topic}-{partition}: "
        f"{now.next_offset(topic, partition)}); add {FORCE} to go back all the same",
    )


def _warnings(now: GroupView, target: Mapping[TopicPartition, Committed]) -> tuple[str, ...]:
    if now.committed.keys() <= target.keys():
        return ()
    anew = (
        f" and its {len(target)} offsets committed anew: no consumer may start meanwhile"
        if target
        else ""
    )
    return (
        f"group {now.name} will be deleted{anew}. Offsets it holds of topics that this user may "
        "not DESCRIBE cannot be seen, and will be lost",
    )


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
        path: the rollback file; best in the folder it was written to, beside those that came later.
        seen: what ``look`` said, and was agreed to.
        rollback_path: where the rollback file of this change is written, before anything else.
        force: go back although the group has moved on since.

    Raises:
        GroupRefused: the group has members, has moved on, or is no longer as it was seen.
        RollbackFileError, BrokerError: as ``look``; nothing was changed.
        OSError: the new rollback file could not be written; nothing was changed.
    """
    groups = ConsumerGroups(config)
    found = _look(groups, path)
    refusals = [*found.refusals, *changed(seen.now, found.now)]
    if not force:
        refusals += found.moved_on
    if refusals:
        raise GroupRefused(refusals)
    now, target = found.now, dict(found.target)
    places = {(restored.topic, restored.partition) for restored in found.partitions}
    if not places:
        return Outcome(now.name, (), None)
    file = rollback_file.rollback_file(
        "rollback", groups.cluster_id(), groups.bootstrap_servers, now, target
    )
    rollback_file.write(file, rollback_path)
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


def _delete_and_commit(
    groups: ConsumerGroups, before: GroupView, target: Mapping[TopicPartition, Committed]
) -> Written:
    failure, held = _delete(groups, before)
    if held is None or held.committed:
        everything = before.committed.keys() | target.keys()
        return Written(dict.fromkeys(everything, failure) if failure is not None else {}, held)
    return write(groups, before.name, target, before={})


def _delete(groups: ConsumerGroups, before: GroupView) -> tuple[Failure | None, GroupView | None]:
    """Delete the group, again where that may help; what was answered, and the group afterwards."""
    deadline = time.monotonic() + PATIENCE
    pause = FIRST_PAUSE
    while True:
        failure = groups.delete(before.name)
        held = read_again(groups, before.name, deadline)
        if (
            failure is None
            or not failure.transient
            or held is None
            or changed(before, held)
            or time.monotonic() + pause > deadline
        ):
            return failure, held
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
