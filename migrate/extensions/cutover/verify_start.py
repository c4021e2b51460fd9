"""Verify the target's start offset in each partition.

In two cases, the target no longer shows a partition's start offset:

* Other clients have committed for the group, and no run saw a member with the partition before the
  first of these commits.
* The query's log has lost its first batches, or the log start offset is above the planned offset.
  This matters only if ``verify`` finds ``ok`` or ``moved on``.

In these cases, the outcome is unknown unless an earlier verification found that the partition
started at the planned offset.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.decide import check_restart_is_ruled_out, restart_not_checked
from migrate.extensions.cutover.downtime import with_lag
from migrate.extensions.cutover.facts import Facts, GroupFacts
from migrate.extensions.cutover.record import now
from migrate.extensions.cutover.report import LagReport, PartitionReport, VerificationReport
from migrate.extensions.cutover.target_state import Started, last_query_batch, started_work
from migrate.inputs.ask_broker import ask_logs
from migrate.inputs.spark_log import committed_positions
from migrate.model.errors import CutOverStopped
from migrate.model.option_names import option
from migrate.model.positions import Logs, TopicPartition, log_of
from migrate.model.wording import counted, join_some
from migrate.moves.options import kafka
from migrate.moves.verify import verify
from migrate.planning.verify import StartOutcome, Verification, VerifiedPartition

_LOST = (StartOutcome.LOST, StartOutcome.EXPIRED)
_REPEATED = (StartOutcome.REPEATED,)
_MOST_NAMED = 3


def verify_target(context: CutOverContext, facts: Facts) -> str:
    """Check the target's actual start offsets or, before the start, its future start offsets.

    Raises:
        CutOverStopped: the target does not start as planned, its start offsets are unknown, or the
            plan differs from the savepoint.
        Refused, FlinkRestError: the job may have been restarted (``check_restart_is_ruled_out``).
        MigrateError, DecodeError: as in ``migrate.verify``, ``ask_logs``, and
            ``committed_positions``.
    """
    has_begun = started_work(facts)[0] is Started.YES
    record, plan = context.record, facts.plan
    assert plan is not None  # this step needs a saved plan
    verification = verify(
        f"plan:{record.plan_path}", facts.target_name, **context.file.connections()
    )
    logs = ask_logs(kafka(context.file.target_kafka_arguments()).config(), plan.topics)
    committed_by_others, reached = set[TopicPartition](), dict[TopicPartition, int]()
    if isinstance(facts.target, GroupFacts):
        planned = plan.next_offsets
        committed_by_others = planned.keys() - facts.target.partitions_as_written(
            record.model.id, planned
        )
    elif has_begun:
        reached = committed_positions("", context.query_directory, context.files).next_offsets
    evidence = Evidence(
        has_begun=has_begun,
        query_has_committed=last_query_batch(facts) is not None,
        log_starts={
            (topic, partition): log.start
            for topic, partitions in logs.items()
            for partition, log in partitions.items()
        },
        committed_by_others=committed_by_others,
        reached=reached,
    )
    result = verify_start(record.model.partitions, verification, evidence)
    now_at = reached
    if isinstance(facts.target, GroupFacts):
        now_at = {key: row.next_offset for key, row in facts.target.view.committed.items()}
    lag = lag_of({key: now_at.get(key, start) for key, start in plan.next_offsets.items()}, logs)
    at = now()
    report = result.report.model_copy(update={"at": at, "lag": lag})
    others = [report for report in record.model.verifications if report.when != result.report.when]
    samples = [LagReport(at=at, lag=lag)] if lag is not None else []
    record.change(
        verifications=[*others, report],
        partitions=list(result.rows),
        lags=with_lag(record.model, *samples),
    )
    if not result.report.verified:
        template = catalog.TARGET_NOT_VERIFIED
        if report.lost or report.repeated:
            template = catalog.TARGET_START_DIFFERS
        elif report.unknown:
            template = catalog.TARGET_START_UNKNOWN
        raise CutOverStopped(
            template(target=facts.target_name, result=result.text, page=record.page)
        )
    # Write the record before this check, because the target may not show the start offsets later.
    check_restart_is_ruled_out(facts)
    if reason := restart_not_checked(facts):
        return f"{result.text}; it is unknown whether the Flink job was restarted, because {reason}"
    return result.text


def lag_of(positions: Mapping[TopicPartition, int], logs: Logs) -> int | None:
    """Return the lag of these positions, or None if a partition is missing on the broker."""
    lag = 0
    for partition, next_offset in positions.items():
        log = log_of(logs, *partition)
        if log is None:
            return None
        # The query may be beyond these log end offsets, because it may have read newer records.
        lag += max(log.end - next_offset, 0)
    return lag


# -- the outcome of each partition; no I/O ---------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence about the target, in addition to the verification.

    Attributes:
        has_begun: True if a query or consumers have started from the target.
        query_has_committed: True if the query has committed a batch after the priming.
        log_starts: the current log start offsets.
        committed_by_others: the group's partitions for which other clients have committed.
        reached: the next offsets after the query's newest committed batch.
    """

    has_begun: bool
    query_has_committed: bool
    log_starts: Mapping[TopicPartition, int]
    committed_by_others: Container[TopicPartition] = ()
    reached: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StartResult:
    """The record's partitions with their outcomes, the totals, and the formatted output of both."""

    rows: Sequence[PartitionReport]
    report: VerificationReport
    text: str


def verify_start(
    rows: Sequence[PartitionReport], verification: Verification, evidence: Evidence
) -> StartResult:
    """Judge each partition in the verification, and add the outcomes to the record's ``rows``."""
    by_partition = {(row.topic, row.partition): row for row in rows}
    partitions, reasons = list[VerifiedPartition](), dict[str, None]()
    for observed in verification.partitions:
        row = by_partition.get(observed.topic_partition)
        reason = _unknown_reason(row, observed, evidence, verification.first_batches_gone)
        has_known_start = evidence.has_begun and row is not None and row.planned is not None
        final = observed
        if reason is not None:
            final = replace(observed, outcome=StartOutcome.UNKNOWN, records=0)
            reasons[reason] = None
        elif has_known_start and observed.outcome is StartOutcome.MOVED_ON:
            final = replace(observed, outcome=StartOutcome.OK, records=0)
        partitions.append(final)
        if row is not None:
            by_partition[observed.topic_partition] = _updated(row, final, reason, evidence)
    # ``_unknown_reason`` has already judged the partitions that have no evidence.
    whole = replace(
        verification,
        partitions=tuple(partitions),
        first_batches_gone=False,
        passed_by_log_start=(),
    )
    report = VerificationReport(
        when="after" if evidence.has_begun else "before",
        verified=whole.verified,
        partitions=len(partitions),
        unknown=sum(partition.outcome is StartOutcome.UNKNOWN for partition in partitions),
        lost=sum(_records(partition, _LOST) for partition in partitions),
        repeated=sum(_records(partition, _REPEATED) for partition in partitions),
    )
    text = ", ".join(f"{count} {outcome.value}" for outcome, count in whole.counts.items())
    if not report.unknown or report.lost or report.repeated:
        text += f"; lost {report.lost}, repeated {report.repeated}"
    if report.unknown:
        start = "actual" if evidence.has_begun else "future"
        unknown = counted(report.unknown, "partition")
        why = "; ".join([*reasons][:3])
        text += f"; the {start} start offset of {unknown} is unknown: {why}"
    if verification.more_topics:
        topics = join_some(verification.more_topics, _MOST_NAMED)
        text += f"; not compared: {topics}, which the query also reads"
    plan = verification.plan
    if plan is not None and plan.differences:
        text += f"; the plan differs from the savepoint: {plan.differences[0]}"
    elif plan is not None and plan.not_compared:
        text += f"; the plan was not compared with the savepoint: {plan.not_compared}"
    return StartResult(tuple(by_partition.values()), report, text)


def _records(partition: VerifiedPartition, outcomes: Sequence[StartOutcome]) -> int:
    return partition.records if partition.outcome in outcomes else 0


def _unknown_reason(
    row: PartitionReport | None,
    observed: VerifiedPartition,
    evidence: Evidence,
    first_batches_gone: bool,
) -> str | None:
    """Return the reason that a partition's start offset is unknown, or None."""
    name = f"{observed.topic}-{observed.partition}"
    if observed.outcome is StartOutcome.UNKNOWN:
        new = ""
        if not evidence.has_begun:
            new = f"; to plan it, roll back ({option('back', True)}) and rerun the command"
        return f"{name} is not in the plan, or has no planned offset{new}"
    if not evidence.has_begun or row is None or row.planned is None or row.began_right:
        return None
    if observed.topic_partition in evidence.committed_by_others and not row.members_seen:
        first = ""
        if row.first_commit is not None:
            first = (
                f"; the planned offset of {name} is {row.planned}, but the first observed commit "
                f"is {row.first_commit}"
            )
        return (
            "other clients committed for the group before a member was seen with this "
            f"partition, so records may have been skipped or duplicated{first}"
        )
    if observed.outcome not in (StartOutcome.OK, StartOutcome.MOVED_ON):
        return None
    if first_batches_gone:
        return "the query's log no longer contains its first batches"
    log_start = evidence.log_starts.get(observed.topic_partition, row.planned)
    if log_start > row.planned:
        was = "" if row.log_start_seen is None else f", and was {row.log_start_seen} before"
        return (
            f"the log start offset of {name} is {log_start}{was}; the records from offset "
            f"{row.planned} may have expired before they were read"
        )
    return None


def _updated(
    row: PartitionReport, final: VerifiedPartition, reason: str | None, evidence: Evidence
) -> PartitionReport:
    key = (row.topic, row.partition)
    has_commit = evidence.query_has_committed or key in evidence.committed_by_others
    began = evidence.has_begun and has_commit and final.outcome is StartOutcome.OK
    return row.model_copy(
        update={
            "started": final.started,
            "outcome": final.outcome,
            "reason": reason,
            "lost": _records(final, _LOST),
            "repeated": _records(final, _REPEATED),
            "reached": evidence.reached.get(key),
            "log_start_seen": evidence.log_starts.get(key, row.log_start_seen),
            "began_right": row.began_right or began,
        }
    )
