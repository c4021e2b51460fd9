"""A consumer group: commits offsets for it, and tells what became of each.

Nothing is taken on trust: the group is read again just before, what it held is on the disk before
anything is changed, each partition's own error is looked at, and what counts in the end is what
the group holds when it is read once more.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

from migrate.kafka.config import KafkaConfig
from migrate.kafka.groups import CommitFailure, ConsumerGroups
from migrate.model.cluster_snapshot import BrokerError, Committed, GroupView
from migrate.model.errors import Refused
from migrate.model.positions import TopicPartition
from migrate.model.wording import counted, join_some
from migrate.storage.json_models import write_file
from migrate.targets.group import rollback_file
from migrate.targets.group.rollback_file import Offsets

# How long to go on, in seconds, where a commit fails for what may go away by itself: a broker that
# restarts, or a group whose coordinator moves, is back within. No new attempt starts later; one
# that has started may take three requests more (REQUEST_TIMEOUT of ``broker`` each).
PATIENCE = 60.0
# How long after a commit the one of another run may still come, in seconds: it was sent before ours
# could be seen.
_SETTLED_AFTER = 0.5
# The pauses between attempts, in seconds: each twice as long as the last, from the first to the
# longest.
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0


class Result(str, Enum):
    """What became of one partition's offset."""

    COMMITTED = "committed"  # written, and read back
    UNCHANGED = "unchanged"  # held what was wanted before, and holds it now
    FAILED = "failed"  # not written: it holds what it held before
    DIFFERS = "differs"  # something else was there when it was read back
    UNKNOWN = "unknown"  # it could not be read back


class Applied(str, Enum):
    """What became of a change as a whole."""

    ALL = "applied"
    NOTHING_TO_DO = "nothing to do"
    NOTHING = "nothing was changed"
    PARTLY = "applied in part"
    UNVERIFIED = "not verified"


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """What became of one partition: ``now`` is what it holds in the end, where that is known.

    ``target`` is None for a partition that is to hold no offset.
    """

    topic: str
    partition: int
    result: Result
    target: Committed | None
    now: Committed | None
    failure: CommitFailure | None = None


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What became of a change, partition by partition.

    ``rollback_path`` is None where there was nothing to do: then no file was written.
    """

    group: str
    partitions: tuple[PartitionOutcome, ...]
    rollback_path: Path | None

    @property
    def applied(self) -> Applied:
        results = {outcome.result for outcome in self.partitions}
        if results <= {Result.UNCHANGED} and self.rollback_path is None:
            return Applied.NOTHING_TO_DO
        if results <= {Result.COMMITTED, Result.UNCHANGED}:
            return Applied.ALL
        if Result.UNKNOWN in results:
            return Applied.UNVERIFIED
        if results <= {Result.FAILED, Result.UNCHANGED}:
            return Applied.NOTHING
        return Applied.PARTLY


def commit(
    config: KafkaConfig,
    group: str,
    wanted: Offsets,
    before: GroupView,
    rollback_path: Path,
    *,
    mark: bool = False,
) -> ChangeOutcome:
    """Commit offsets for a group without members.

    What holds its wanted offset already is left alone; where all do, nothing is written at all.
    With ``mark`` an offset is left alone only where its metadata is the wanted one too.

    Args:
        config: librdkafka properties, ``bootstrap.servers`` among them.
        wanted: the offsets to commit; what else the group holds stays as it is.
        before: the group as it was when this was decided on.
        rollback_path: where the rollback file is written, before anything is changed.
        mark: whether the metadata matters, which shows whose commit it is.

    Raises:
        Refused: the group has members, is no consumer group, or is no longer as ``before``.
        BrokerError: the group could not be read; nothing was written.
        FileExistsError: there is a file at ``rollback_path``; nothing was committed.
        OSError: the rollback file could not be written; nothing was committed.
    """
    groups = ConsumerGroups(config)
    now = groups.view(group)
    change = pending_commit(wanted, before, now, mark=mark)
    if not change.todo:
        return ChangeOutcome(group, in_order(change.unchanged), None)
    if change.refusals:
        raise Refused(change.refusals)
    write_rollback_file("commit", groups, now, {**now.committed, **change.todo}, rollback_path)
    _check_unchanged(groups, now, rollback_path)
    written = confirm_written(groups, group, write(groups, group, change.todo, now.committed))
    outcomes = [
        partition_outcome(place, committed, now.committed.get(place), written)
        for place, committed in change.todo.items()
    ]
    return ChangeOutcome(group, in_order([*change.unchanged, *outcomes]), rollback_path)


@dataclass(frozen=True, slots=True)
class Change:
    """What of the wanted offsets is to be committed, what is there already, and why it must not
    be."""

    todo: Offsets
    unchanged: tuple[PartitionOutcome, ...]
    refusals: tuple[str, ...]


def pending_commit(
    wanted: Offsets, before: GroupView, now: GroupView, *, mark: bool = False
) -> Change:
    """Return what is to be committed for a group, which must have no members then.

    Args:
        wanted: the offsets that the group is to hold.
        before: the group as it was when this was decided on.
        now: the group as it is.
        mark: whether the metadata must be the wanted one, too.
    """
    todo = {
        place: committed
        for place, committed in wanted.items()
        if now.next_offset(*place) != committed.next_offset
        or (mark and now.committed[place].metadata != committed.metadata)
    }
    unchanged = (
        PartitionOutcome(*place, Result.UNCHANGED, committed, now.committed[place])
        for place, committed in wanted.items()
        if place not in todo
    )
    refusals = (*write_obstacles(now), *changed(before, now)) if todo else ()
    return Change(todo, tuple(unchanged), refusals)


def write_rollback_file(
    change: Literal["commit", "rollback"],
    groups: ConsumerGroups,
    now: GroupView,
    after: Offsets,
    path: Path,
) -> None:
    """Write the rollback file of a change; raises as ``commit`` does."""
    file = rollback_file.rollback_file(
        change,
        groups.cluster_id(),
        groups.bootstrap_servers,
        now,
        after,
        groups.topic_ids(rollback_file.topics(now.committed, after)),
    )
    write_file(file, path)


def _check_unchanged(groups: ConsumerGroups, now: GroupView, path: Path) -> None:
    """The last look before a commit: another run may have committed while the file was written.

    Raises:
        Refused: one has; the rollback file is removed, as nothing was changed.
        BrokerError: the group could not be read; the same.
    """
    try:
        if refusals := changed(now, groups.view(now.name)):
            raise Refused(refusals)
    except (BrokerError, Refused):
        path.unlink()
        raise


def write_obstacles(group: GroupView) -> list[str]:
    """Why offsets cannot be committed for this group, as it is; empty where they can."""
    if group.members:
        who = join_some((f"{member.client_id} on {member.host}" for member in group.members), 5)
        count = counted(len(group.members), "member")
        them = "it" if len(group.members) == 1 else "them"
        return [f"group {group.name} has {count} ({who}); stop {them} first"]
    if group.exists and group.type == "streams":
        return [
            f"group {group.name} is a streams group: what its Kafka Streams application has stored "
            "would not fit other offsets; name another"
        ]
    if group.exists and group.type == "unknown":
        return [
            f"group {group.name} is no consumer group (a share group or a streams group?); name "
            "another"
        ]
    return []


def changed(before: GroupView, now: GroupView) -> list[str]:
    """Why what was decided on no longer holds; empty where the group holds what it held then."""
    places = rollback_file.differing(before.committed, now.committed)
    if not places:
        return []
    topic, partition = places[0]
    was, now_is = before.next_offset(topic, partition), now.next_offset(topic, partition)
    return [
        f"group {now.name} has changed since it was looked at: {len(places)} of its offsets (the "
        f"first is {topic}-{partition}: {_show(was)} then, {_show(now_is)} now); something still "
        "commits for it: stop that first"
    ]


def _show(next_offset: int | None) -> str:
    return "none" if next_offset is None else str(next_offset)


@dataclass(frozen=True, slots=True)
class Written:
    """What was answered, and the group as it was read afterwards: None where it could not be."""

    failures: Mapping[TopicPartition, CommitFailure]
    held: GroupView | None


def write(groups: ConsumerGroups, group: str, wanted: Offsets, before: Offsets) -> Written:
    """Commit, again where that may help, and read what came of it.

    Before each further attempt the group is read: what has arrived although its answer was lost is
    not written again, and what somebody else has written since is not overwritten.
    """
    deadline = time.monotonic() + PATIENCE
    todo = dict(wanted)
    failures: dict[TopicPartition, CommitFailure] = {}
    held: GroupView | None = None
    for _ in attempts(deadline):
        failures = {place: failures[place] for place in failures if place not in todo}
        failures |= groups.commit(group, todo)
        held = read_again(groups, group, deadline)
        if held is None:
            break
        todo = _worth_another_attempt(wanted, failures, before, held.committed)
        if not todo:
            break
    return Written(failures, held)


def confirm_written(groups: ConsumerGroups, group: str, written: Written) -> Written:
    """Looked at once more: another run that had looked before this one committed may have committed
    since. It has looked again just before, so that it does so within a moment or not at all."""
    if written.held is None:
        return written
    time.sleep(_SETTLED_AFTER)
    held = read_again(groups, group, time.monotonic())
    return Written(written.failures, held if held is not None else written.held)


def _worth_another_attempt(
    wanted: Offsets,
    failures: Mapping[TopicPartition, CommitFailure],
    before: Offsets,
    held: Offsets,
) -> dict[TopicPartition, Committed]:
    """What failed for what may go away by itself, and holds what it held before."""
    return {
        place: wanted[place]
        for place, failure in failures.items()
        if failure.transient and held.get(place) == before.get(place)
    }


def read_again(groups: ConsumerGroups, group: str, deadline: float) -> GroupView | None:
    """The group as it is now; asked at least once, and until the deadline; None without answer."""
    for _ in attempts(deadline):
        with contextlib.suppress(BrokerError):
            return groups.view(group)
    return None


def attempts(deadline: float) -> Iterator[None]:
    """Once at once, and again after ever longer pauses, as long as none ends past the deadline.

    Args:
        deadline: in seconds of the monotonic clock.
    """
    yield
    pause = _FIRST_PAUSE
    while time.monotonic() + pause <= deadline:
        time.sleep(pause)
        yield
        pause = min(2 * pause, _LONGEST_PAUSE)


def partition_outcome(
    place: TopicPartition, wanted: Committed | None, before: Committed | None, written: Written
) -> PartitionOutcome:
    """What became of one partition, by what it held before and what it holds now."""
    failure = written.failures.get(place)
    if written.held is None:
        return PartitionOutcome(*place, Result.UNKNOWN, wanted, None, failure)
    now = written.held.committed.get(place)
    if now == wanted:
        result = Result.COMMITTED if now != before else Result.UNCHANGED
        return PartitionOutcome(*place, result, wanted, now)
    result = Result.FAILED if now == before and failure is not None else Result.DIFFERS
    return PartitionOutcome(*place, result, wanted, now, failure)


def in_order(outcomes: Iterable[PartitionOutcome]) -> tuple[PartitionOutcome, ...]:
    return tuple(sorted(outcomes, key=lambda outcome: (outcome.topic, outcome.partition)))
