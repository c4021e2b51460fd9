"""What taking a change to a consumer group back would do, and what stands in its way.

Time has passed since the rollback file was written: the group may have moved on, and an offset
whose records are gone by now, or whose topic is another one, is brought back only by force. All of
it is told from the file, the group and the cluster as they were read: ``undo`` reads, and writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from typing_extensions import assert_never

from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange
from migrate.model.positions import TopicPartition
from migrate.targets.group import rollback_file
from migrate.targets.group.commit import changed, write_obstacles
from migrate.targets.group.rollback_file import ChangeProgress, EarlierRun, Offsets, RollbackFile

FORCE = "--force"


class Doubt(str, Enum):
    """Why an offset of that time may be no offset of today."""

    GONE = "partition gone"
    RECREATED = "topic recreated"
    EXPIRED = "below log start"
    BEYOND_END = "beyond log end"


@dataclass(frozen=True, slots=True)
class RestoredOffset:
    """One partition whose offset changes; ``now`` and ``then`` are None where there is none.

    ``log`` is what the partition holds now, and None where it is gone, or nothing is brought back.
    """

    topic: str
    partition: int
    now: Committed | None
    then: Committed | None
    log: LogRange | None
    doubt: Doubt | None


@dataclass(frozen=True, slots=True)
class OffsetSource:
    """Where offsets are brought back from: the file, when it was written, and its topics' ids."""

    path: Path
    created_at: str
    topic_ids: Mapping[str, str]
    committed: Offsets


@dataclass(frozen=True, slots=True)
class RollbackTarget:
    """Every offset the group is to hold, and where those come from that the group has lost.

    Partitions that the change was not about keep what they hold now.
    """

    target: Offsets
    last_known: OffsetSource | None


@dataclass(frozen=True, slots=True)
class RollbackPreview:
    """What restoring would do, and what stands in its way.

    Attributes:
        file: the change that is taken back.
        progress: how far that change came.
        now: the group as it is.
        target: as in ``RollbackTarget``.
        partitions: what changes, in order.
        refusals: why it must not be done.
        unless_forced: why it must not be done unless forced: it would undo what somebody else did,
            or bring back what is no longer an offset of that log.
        warnings: what else must be known.
    """

    file: RollbackFile
    progress: ChangeProgress
    now: GroupView
    target: Offsets
    partitions: tuple[RestoredOffset, ...]
    refusals: tuple[str, ...]
    unless_forced: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def deletes(self) -> bool:
        """Whether the group is deleted, and then committed anew where it is to hold anything."""
        return _deletes(self.now, self.target)


def _deletes(now: GroupView, target: Offsets) -> bool:
    """Kafka's client can commit an offset, not remove one."""
    return not now.committed.keys() <= target.keys()


def rollback_target(
    path: Path, file: RollbackFile, now: GroupView, run: EarlierRun | None
) -> RollbackTarget:
    """What the group is to hold.

    Args:
        path: where ``file`` is.
        run: the last change to this group that a rollback file tells of, ``file`` itself included.
    """
    known = _last_known(path, file, now, run)
    before = file.before.committed
    last_known = known.committed if known is not None else {}
    others = {
        place: committed
        for place, committed in {**last_known, **now.committed}.items()
        if place not in file.touched
    }
    again = {place: before[place] for place in file.touched if place in before}
    return RollbackTarget({**others, **again}, known)


def _last_known(
    path: Path, file: RollbackFile, now: GroupView, run: EarlierRun | None
) -> OffsetSource | None:
    """What the group held where it has lost what this change was not about.

    A rollback that ended between deletion and commit knows it best. Otherwise, unless the whole
    group is gone, what is missing was taken by somebody else, or with its topic, and stays so.
    """
    interrupted = (
        ChangeProgress.IN_PART,
        ChangeProgress.MOVED_ON,
    )  # moved on: a consumer has committed since
    if run is not None and run.file.change == "rollback" and run.progress in interrupted:
        after = run.file.after.committed
        return OffsetSource(run.path, run.file.created_at, run.file.topic_ids, after)
    if now.committed:
        return None
    return OffsetSource(path, file.created_at, file.topic_ids, file.before.committed)


def topics_to_ask(file: RollbackFile, now: GroupView, wanted: RollbackTarget) -> set[str]:
    """The topics whose logs tell whether the offsets are still theirs.

    Kafka leaves out the offsets of a topic that this user may not DESCRIBE: they would pass for
    none. Asked for the topic itself, it says so.
    """
    places = rollback_file.differing(now.committed, wanted.target)
    return {topic for topic, _ in {*places, *file.touched}}


def rollback_preview(
    file: RollbackFile, now: GroupView, wanted: RollbackTarget, cluster: ClusterSnapshot
) -> RollbackPreview:
    """What restoring would do now.

    Args:
        now: the group as it is.
        wanted: what it is to hold: see ``rollback_target``.
        cluster: the topics of ``topics_to_ask``.
    """
    refusals = write_obstacles(now)
    if cluster.cluster_id != file.cluster_id:
        refusals.append(
            f"this is cluster {cluster.cluster_id}; the file is of cluster {file.cluster_id}"
        )
    partitions = _partitions(file, now, wanted, cluster)
    return RollbackPreview(
        file,
        rollback_file.change_progress(file, now),
        now,
        wanted.target,
        partitions,
        tuple(refusals),
        (*_moved_on(file, now), *_doubts(partitions)),
        (
            *_about_the_deletion(now, wanted.target),
            *_about_the_last_known(partitions, file, wanted.last_known),
        ),
    )


def _partitions(
    file: RollbackFile, now: GroupView, wanted: RollbackTarget, cluster: ClusterSnapshot
) -> tuple[RestoredOffset, ...]:
    held, target, known = now.committed, wanted.target, wanted.last_known

    def restored(place: TopicPartition) -> RestoredOffset:
        topic, partition = place
        then = target.get(place)
        if then is None:
            return RestoredOffset(topic, partition, held.get(place), None, None, None)
        log = cluster.topics.get(topic, {}).get(partition)
        ids = file.topic_ids if place in file.touched or known is None else known.topic_ids
        doubt = _doubt(then, log, ids.get(topic), cluster.topic_ids.get(topic))
        return RestoredOffset(topic, partition, held.get(place), then, log, doubt)

    return tuple(map(restored, rollback_file.differing(held, target)))


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """What is written to restore a group, or why nothing is.

    Attributes:
        refusals: why it must not be done; the group may have changed since it was agreed to.
        target: every offset the group is to hold; what belongs to no partition is left out.
        places: the partitions that are written; where the group is deleted, all that it is to
            hold.
        deletes: see ``RollbackPreview``.
    """

    refusals: tuple[str, ...]
    target: Offsets
    places: frozenset[TopicPartition]
    deletes: bool


def plan_rollback(seen: RollbackPreview, found: RollbackPreview, *, force: bool) -> RollbackPlan:
    """How to restore the group.

    Args:
        seen: what was agreed to.
        found: what is found just before it is done.
        force: see ``RollbackPreview.unless_forced``.
    """
    refusals = (
        *found.refusals,
        *changed(seen.now, found.now),
        *(() if force else found.unless_forced),
    )
    gone = {(one.topic, one.partition) for one in found.partitions if one.doubt is Doubt.GONE}
    target = {place: held for place, held in found.target.items() if place not in gone}
    places = {(one.topic, one.partition) for one in found.partitions} - gone
    if found.deletes:
        places |= target.keys()
    return RollbackPlan(refusals, target, frozenset(places), found.deletes)


def _doubt(
    then: Committed, log: LogRange | None, id_then: str | None, id_now: str | None
) -> Doubt | None:
    if log is None:
        return Doubt.GONE
    if id_then is not None and id_now is not None and id_then != id_now:
        return Doubt.RECREATED
    if then.next_offset < log.start:
        return Doubt.EXPIRED
    return Doubt.BEYOND_END if then.next_offset > log.end else None


def _doubts(partitions: tuple[RestoredOffset, ...]) -> tuple[str, ...]:
    return tuple(
        f"{one.topic}-{one.partition}: {_why(one.doubt, one.then.next_offset, one.log)}; add "
        f"{FORCE} to "
        + ("leave it out" if one.doubt is Doubt.GONE else "bring it back all the same")
        for one in partitions
        if one.doubt is not None and one.then is not None
    )


def _why(doubt: Doubt, then: int, log: LogRange | None) -> str:
    holds = f"the log now holds {log.start} to {log.end}" if log is not None else ""
    match doubt:
        case Doubt.GONE:
            return f"it held {then}, and the partition is gone"
        case Doubt.RECREATED:
            return f"it held {then} of a topic that was deleted and created again since; {holds}"
        case Doubt.EXPIRED:
            return f"it held {then}, whose records are gone: {holds}"
        case Doubt.BEYOND_END:
            return f"it held {then}, which is beyond the end: {holds}"
        case _:
            assert_never(doubt)


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


def _about_the_deletion(now: GroupView, target: Offsets) -> tuple[str, ...]:
    if not _deletes(now, target):
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


def _about_the_last_known(
    partitions: tuple[RestoredOffset, ...], file: RollbackFile, known: OffsetSource | None
) -> tuple[str, ...]:
    """Of what the change was not about, the group's own word is gone: a file's is taken."""
    others = [
        one
        for one in partitions
        if one.then is not None and (one.topic, one.partition) not in file.touched
    ]
    if known is None or not others:
        return ()
    first = f"{others[0].topic}-{others[0].partition}"
    return (
        f"the group has lost {len(others)} offsets that this change was not about (the first is "
        f"{first}); they come from {known.path}, of {known.created_at}: what was committed after "
        "that is not known",
    )
