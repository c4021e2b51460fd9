"""Where each partition of the target began, by all that was seen of it: pure.

A check after the start sees what is left by then. A group that others have committed for, and a log
whose start has passed the seed, look the same whether records were skipped or not. So what was seen
in between decides: members of the group while our commit still stood, or a look at the log start
after the first batch was committed. Where neither was seen, the outcome cannot be told.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from migrate.model.positions import TopicPartition
from migrate.model.wording import counted
from migrate.planning.verify import StartOutcome, Verification, VerifiedPartition
from migrate.report.cut_over import PartitionReport

_LOST = (StartOutcome.LOST, StartOutcome.EXPIRED)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of the target besides the verification.

    Attributes:
        after: whether the target has begun.
        is_committed: whether the query has committed its first batch; always False for a group,
            which is judged partition by partition.
        log_starts: the log starts now.
        reached: the next offsets after the newest committed batch.
        ours: the partitions of a group that still hold our commit; None for a query.
    """

    after: bool
    is_committed: bool
    log_starts: Mapping[TopicPartition, int]
    reached: Mapping[TopicPartition, int]
    ours: Container[TopicPartition] | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a verification comes to with all that was seen.

    Attributes:
        rows: the partitions of the record, with their outcomes.
        verified: whether every partition began, or will begin, at the plan.
        text: the outcomes, in words.
        unknown, lost, repeated: the partitions whose start cannot be told, and the records lost
            and repeated in the others.
    """

    rows: Sequence[PartitionReport]
    verified: bool
    text: str
    unknown: int
    lost: int
    repeated: int


def judge(rows: Sequence[PartitionReport], verification: Verification, seen: Seen) -> Judgement:
    """Judge each partition.

    Args:
        rows: the partitions of the record.
        verification: what the target shows by itself.
        seen: what else was seen.
    """
    known = {(row.topic, row.partition): row for row in rows}
    judged: dict[TopicPartition, PartitionReport] = dict(known)
    partitions, reasons = [], list[str]()
    for partition in verification.partitions:
        place = (partition.topic, partition.partition)
        row = known.get(place)
        final, reason = _outcome(row, partition, seen, verification.first_batches_gone)
        partitions.append(final)
        if reason is not None and reason not in reasons:
            reasons.append(reason)
        if row is not None:
            judged[place] = _updated(row, partition, final, reason, seen)
    # What a log without its first batches does not show is judged by partition.
    whole = replace(verification, partitions=tuple(partitions), first_batches_gone=False)
    unknown = sum(partition.outcome is StartOutcome.UNKNOWN for partition in partitions)
    lost = sum(partition.records for partition in partitions if partition.outcome in _LOST)
    repeated = sum(
        partition.records for partition in partitions if partition.outcome is StartOutcome.REPEATED
    )
    text = ", ".join(f"{count} {outcome.value}" for outcome, count in whole.counts.items())
    if not unknown or lost or repeated:
        text += f"; lost {lost}, repeated {repeated}"
    if unknown:
        why = "; ".join(reasons[:3])
        began = "began" if seen.after else "will begin"
        text += f"; where {counted(unknown, 'partition')} {began} cannot be told: {why}"
    text += _plan_text(verification)
    return Judgement(tuple(judged.values()), whole.verified, text, unknown, lost, repeated)


def _plan_text(verification: Verification) -> str:
    """Return how the plan compares with the savepoint; empty where it is the same."""
    plan = verification.plan
    if plan is None:
        return ""
    if plan.differences:
        return f"; the plan is not what the savepoint holds: {plan.differences[0]}"
    if plan.not_compared:
        return f"; the plan was not compared with the savepoint: {plan.not_compared}"
    return ""


def _outcome(
    row: PartitionReport | None, partition: VerifiedPartition, seen: Seen, first_batches_gone: bool
) -> tuple[VerifiedPartition, str | None]:
    """Return the outcome of a partition, and why it cannot be told where it cannot."""
    place = (partition.topic, partition.partition)
    if partition.outcome is StartOutcome.UNKNOWN:
        new = "" if seen.after else "; go back (--back), and run this again to plan it, too"
        return partition, f"{place[0]}-{place[1]} is not in the plan, or has no offset there{new}"
    if not seen.after or row is None or row.planned is None:
        return partition, None
    by_others = seen.ours is not None and place not in seen.ours
    if by_others and not row.members_seen and not row.began_right:
        return _cannot_tell(partition), _unseen(row)
    if partition.outcome not in (StartOutcome.OK, StartOutcome.MOVED_ON):
        return partition, None
    if not row.began_right:
        if first_batches_gone:
            return _cannot_tell(partition), "the log of the query has lost its first batches"
        log_start = seen.log_starts.get(place)
        if log_start is not None and log_start > row.planned:
            return _cannot_tell(partition), _expired(row, log_start)
    return replace(partition, outcome=StartOutcome.OK, records=0), None


def _expired(row: PartitionReport, log_start: int) -> str:
    was = "" if row.log_start_seen is None else f", and was {row.log_start_seen} before"
    return (
        f"the log start of {row.topic}-{row.partition} is {log_start}{was}: it is not known "
        f"whether the records from offset {row.planned} on were read before they expired"
    )


def _unseen(row: PartitionReport) -> str:
    first = ""
    if row.first_commit is not None:
        first = (
            f"; of {row.topic}-{row.partition} the plan is {row.planned}, and the first commit by "
            f"others that was seen is {row.first_commit}"
        )
    return (
        "others have committed for the group, and no member was seen to read this while our commit "
        f"still stood, so records may have been skipped or repeated{first}"
    )


def _cannot_tell(partition: VerifiedPartition) -> VerifiedPartition:
    return replace(partition, outcome=StartOutcome.UNKNOWN, records=0)


def _updated(
    row: PartitionReport,
    partition: VerifiedPartition,
    final: VerifiedPartition,
    reason: str | None,
    seen: Seen,
) -> PartitionReport:
    place = (row.topic, row.partition)
    begins = seen.is_committed if seen.ours is None else place not in seen.ours
    began = seen.after and begins and final.outcome is StartOutcome.OK
    return row.model_copy(
        update={
            "started": partition.started,
            "outcome": final.outcome,
            "reason": reason,
            "lost": final.records if final.outcome in _LOST else 0,
            "repeated": final.records if final.outcome is StartOutcome.REPEATED else 0,
            "reached": seen.reached.get(place),
            "log_start_seen": seen.log_starts.get(place, row.log_start_seen),
            "began_right": row.began_right or began,
        }
    )
