"""Commit offsets for a consumer group, and determine the outcome for each partition.

The group is reread just before the commit, and a rollback file is written before anything changes.
After the commit, the error of each partition is checked, and the group is read back.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Literal

from migrate.kafka.config import KafkaConfig
from migrate.kafka.groups import CommitFailure, ConsumerGroups
from migrate.model.catalog import (
    GROUP_ACTIVE,
    GROUP_CHANGED,
    GROUP_LEADER_EPOCH_CHANGED,
    GROUP_METADATA_CHANGED,
    NOT_A_CONSUMER_GROUP,
    STREAMS_GROUP,
)
from migrate.model.cluster_snapshot import BrokerError, Committed, GroupView
from migrate.model.errors import Refused
from migrate.model.log import log
from migrate.model.message import Message
from migrate.model.offset_metadata import holds_offset
from migrate.model.option_names import can_set, option
from migrate.model.positions import PartitionRow, TopicPartition
from migrate.storage.json_models import write_file
from migrate.storage.new_file import MAKE_WRITABLE, already_there
from migrate.targets.group import rollback_file
from migrate.targets.group.rollback_file import Offsets

# The number of seconds to retry after a temporary error, such as a broker restart or a move of the
# group coordinator. No attempt starts after that time, but the last attempt may end later.
RETRY_SECONDS = 60.0
# A different run that has not seen this commit may still commit up to this number of seconds later.
_SETTLE_SECONDS = 0.5
# The first and the longest pause between attempts, in seconds.
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0


class Result(str, Enum):
    """The outcome of one partition."""

    COMMITTED = "committed"  # the new offset was written and read back
    UNCHANGED = "unchanged"  # the group already had the new offset and still has it
    FAILED = "failed"  # the new offset was not written, and the old one is unchanged
    DIFFERS = "differs"  # the group has no offset, or an offset other than the new one
    # The group could not be read back; or the offset is unchanged, but the broker may still execute
    # a request whose answer was lost.
    UNKNOWN = "unknown"


class Applied(str, Enum):
    """The outcome of a change as a whole."""

    ALL = "applied"
    NOTHING_TO_DO = "nothing to do"
    NOTHING = "nothing was changed"
    PARTLY = "applied in part"
    UNVERIFIED = "not verified"


@dataclass(frozen=True, slots=True)
class PartitionOutcome(PartitionRow):
    """The outcome for one partition.

    Attributes:
        target: the offset to commit; None if the partition should have no committed offset.
        now: the offset that was read back; None if there is no offset, or if the group could not be
            read back.
        failure: the error from the commit; None if there was no error, or if the target was read
            back.
    """

    result: Result
    target: Committed | None
    now: Committed | None
    failure: CommitFailure | None = None


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """The outcome of a change to a group.

    Attributes:
        rollback_path: the rollback file; None if there was nothing to do.
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
    target: Offsets,
    before: GroupView,
    rollback_path: Path,
    *,
    cut_over: str | None = None,
    from_cluster_id: str | None = None,
) -> ChangeOutcome:
    """Commit offsets for an empty group.

    The group's offsets for partitions outside ``target`` do not change. Nothing is written for a
    partition that already has its target (``holds_offset``).

    Args:
        config: the librdkafka properties.
        group: the group.
        target: the offsets to commit.
        before: the state of the group when the offsets were planned.
        rollback_path: the rollback file to write.
        cut_over: the ID of the cut-over that makes the commit, or None. A cut-over writes its
            rollback file even if the group already has all offsets, because the file shows that the
            cut-over has run.
        from_cluster_id: as in ``RollbackFile``.

    Raises:
        Refused: the group has members, is not a consumer group, or has changed since ``before``;
            or a file already exists at ``rollback_path``. Nothing was committed.
        BrokerError: the group could not be read; nothing was written.
        OSError: the rollback file could not be written; nothing was committed.
    """
    groups = ConsumerGroups(config)
    now = groups.view(group)
    pending = pending_commit(target, before, now)
    if not pending.offsets and cut_over is None:
        return ChangeOutcome(group, in_order(pending.unchanged), None)
    if pending.refusals:
        raise Refused(pending.refusals)
    after = {**now.committed, **pending.offsets}
    write_rollback_file(
        "commit",
        groups,
        now,
        after,
        rollback_path,
        unchanged=target.keys() - pending.offsets.keys(),
        cut_over=cut_over,
        from_cluster_id=from_cluster_id,
    )
    check_unchanged(groups, now, rollback_path)
    attempt = read_settled(groups, group, write(groups, group, pending.offsets, now.committed))
    outcomes = [
        partition_outcome(partition, committed, now.committed.get(partition), attempt)
        for partition, committed in pending.offsets.items()
    ]
    return ChangeOutcome(group, in_order([*pending.unchanged, *outcomes]), rollback_path)


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """The offsets that have not been committed yet."""

    offsets: Offsets
    unchanged: tuple[PartitionOutcome, ...]
    refusals: tuple[Message, ...]


def pending_commit(target: Offsets, before: GroupView, now: GroupView) -> PendingCommit:
    """Compare a commit's target with the group's current state (``now``); see ``commit``."""
    offsets = {
        partition: committed
        for partition, committed in target.items()
        if not holds_offset(now.committed.get(partition), committed)
    }
    unchanged = (
        PartitionOutcome(*partition, Result.UNCHANGED, committed, now.committed[partition])
        for partition, committed in target.items()
        if partition not in offsets
    )
    refusals = (*commit_refusals(now), *change_refusals(before, now)) if offsets else ()
    return PendingCommit(offsets, tuple(unchanged), refusals)


def write_rollback_file(
    change: Literal["commit", "rollback"],
    groups: ConsumerGroups,
    now: GroupView,
    after: Offsets,
    path: Path,
    *,
    unchanged: Iterable[TopicPartition] = (),
    cut_over: str | None = None,
    from_cluster_id: str | None = None,
) -> None:
    """Write the rollback file of a change; for the arguments, see ``RollbackFile``.

    Raises:
        Refused, BrokerError, OSError: as in ``commit``.
    """
    file = rollback_file.rollback_file(
        change,
        groups.cluster_id(),
        groups.bootstrap_servers,
        now,
        after,
        groups.topic_ids({topic for topic, _ in now.committed.keys() | after.keys()}),
        unchanged=unchanged,
        cut_over=cut_over,
        from_cluster_id=from_cluster_id,
    )
    log.info(f"saving current offsets to {path}")
    try:
        write_file(file, path)
    except FileExistsError as error:
        raise already_there(path) from error
    except OSError as error:
        remedy = MAKE_WRITABLE
        if can_set("rollback_file"):
            remedy = f"choose a file on a different disk with {option('rollback_file')}"
        problem = f"the rollback file cannot be written: {error.strerror}; {remedy}"
        raise OSError(error.errno, problem, str(path)) from error


def check_unchanged(groups: ConsumerGroups, now: GroupView, path: Path) -> None:
    """Check that no client has committed offsets while the rollback file was being written.

    Raises:
        Refused: the group's offsets have changed; the rollback file is removed.
        BrokerError: the group could not be read; the rollback file is removed.
    """
    try:
        if refusals := change_refusals(now, groups.view(now.name)):
            raise Refused(refusals)
    except (BrokerError, Refused):
        path.unlink()
        raise


def commit_refusals(group: GroupView, *, restores: bool = False) -> list[Message]:
    """Return the reason, if any, that offsets cannot currently be committed for this group.

    Args:
        group: the current state of the group.
        restores: True if the group previously had the offsets. Restoring them is safe even for a
            Kafka Streams application, because they match its state.
    """
    if group.exists and group.type == "streams" and not restores:
        return [STREAMS_GROUP(group=group.name)]
    if group.members:
        members = [f"{member.client_id} on {member.host}" for member in group.members]
        return [GROUP_ACTIVE(group=group.name, count=len(members), members=members)]
    if group.exists and group.type == "unknown":
        return [NOT_A_CONSUMER_GROUP(group=group.name)]
    return []


def change_refusals(before: GroupView, now: GroupView) -> list[Message]:
    """Return a refusal if the group's offsets have changed."""
    partitions = rollback_file.differing_partitions(before.committed, now.committed)
    if not partitions:
        return []
    topic, partition = first = partitions[0]
    old, new = before.committed.get(first), now.committed.get(first)
    change = partial(
        GROUP_CHANGED, old=old.next_offset if old else None, new=new.next_offset if new else None
    )
    if old is not None and new is not None and old.next_offset == new.next_offset:
        same_metadata = old.metadata == new.metadata
        template = GROUP_LEADER_EPOCH_CHANGED if same_metadata else GROUP_METADATA_CHANGED
        change = partial(template, offset=new.next_offset)
    return [change(group=now.name, count=len(partitions), partition=f"{topic}-{partition}")]


@dataclass(frozen=True, slots=True)
class CommitAttempt:
    """The result of a commit request.

    Attributes:
        group: the group, as read back; None if the group could not be read.
    """

    failures: Mapping[TopicPartition, CommitFailure]
    group: GroupView | None


def write(groups: ConsumerGroups, group: str, target: Offsets, before: Offsets) -> CommitAttempt:
    """Commit offsets, retry after temporary errors, and read the group back.

    The group is read before each retry. If an offset was committed and only the broker's answer was
    lost, the offset is not committed again. If another client has committed an offset in the
    meantime, this offset is not overwritten.
    """
    deadline = time.monotonic() + RETRY_SECONDS
    pending = dict(target)
    failures: dict[TopicPartition, CommitFailure] = {}
    view: GroupView | None = None
    for _ in attempts(deadline):
        failures = later_failures(failures, pending, groups.commit(group, pending))
        view = read_again(groups, group, deadline)
        if view is None:
            break
        pending = _offsets_to_retry(target, failures, before, view.committed)
        if not pending:
            break
    return CommitAttempt(failures, view)


def later_failures(
    earlier: Mapping[TopicPartition, CommitFailure],
    pending: Collection[TopicPartition],
    failed: Mapping[TopicPartition, CommitFailure],
) -> dict[TopicPartition, CommitFailure]:
    """Add the failures of a retry for the ``pending`` partitions to the earlier failures.

    If the answer to an earlier request for a partition was lost, the partition's later failures
    also record this, because the broker may still execute the earlier request.
    """
    kept = {
        partition: failure for partition, failure in earlier.items() if partition not in pending
    }
    return kept | {
        partition: replace(failure, answer_lost=True)
        if partition in earlier and earlier[partition].answer_lost
        else failure
        for partition, failure in failed.items()
    }


def read_settled(groups: ConsumerGroups, group: str, attempt: CommitAttempt) -> CommitAttempt:
    """Reread the group, because another run may have committed just after this one.

    Another run checks the group just before it commits, and does not commit if it sees the offsets
    from this run. Its commit therefore arrives shortly after this one, or not at all.
    """
    if attempt.group is None:
        return attempt
    time.sleep(_SETTLE_SECONDS)
    view = read_again(groups, group, time.monotonic())
    return CommitAttempt(attempt.failures, view if view is not None else attempt.group)


def _offsets_to_retry(
    target: Offsets,
    failures: Mapping[TopicPartition, CommitFailure],
    before: Offsets,
    now: Offsets,
) -> dict[TopicPartition, Committed]:
    """Return the offsets that failed with a temporary error and are unchanged since ``before``."""
    return {
        partition: target[partition]
        for partition, failure in failures.items()
        if failure.transient and now.get(partition) == before.get(partition)
    }


def read_again(groups: ConsumerGroups, group: str, deadline: float) -> GroupView | None:
    """Read the group, with retries until the deadline; return None if no broker answers."""
    for _ in attempts(deadline):
        with contextlib.suppress(BrokerError):
            return groups.view(group)
    return None


def attempts(deadline: float) -> Iterator[None]:
    """Yield immediately, and then with increasing delays until the deadline.

    Args:
        deadline: the time by which a pause must end, in seconds on the monotonic clock.
    """
    yield
    pause = _FIRST_PAUSE
    while time.monotonic() + pause <= deadline:
        time.sleep(pause)
        yield
        pause = min(2 * pause, _LONGEST_PAUSE)


def partition_outcome(
    partition: TopicPartition,
    target: Committed | None,
    before: Committed | None,
    attempt: CommitAttempt,
) -> PartitionOutcome:
    failure = attempt.failures.get(partition)
    if attempt.group is None:
        return PartitionOutcome(*partition, Result.UNKNOWN, target, None, failure)
    now = attempt.group.committed.get(partition)
    if now == target:
        result = Result.COMMITTED if now != before else Result.UNCHANGED
        return PartitionOutcome(*partition, result, target, now)
    if now != before or failure is None:
        result = Result.DIFFERS
    else:
        result = Result.UNKNOWN if failure.answer_lost else Result.FAILED
    return PartitionOutcome(*partition, result, target, now, failure)


def in_order(outcomes: Iterable[PartitionOutcome]) -> tuple[PartitionOutcome, ...]:
    return tuple(sorted(outcomes, key=lambda outcome: outcome.topic_partition))
