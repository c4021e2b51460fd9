"""The pending transactions of a KafkaSink, and their outcome on the brokers.

A checkpoint or savepoint contains the transactions that the job has not committed yet. The job
commits them only after the checkpoint is complete, and may fail before the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from decoder import PendingTransaction
from migrate.inputs.plan_input import PlanInput
from migrate.model.cluster_snapshot import ClusterSnapshot, Outcome
from migrate.model.finding import Code, Finding
from migrate.model.policies import Policies
from migrate.model.wording import counted
from migrate.planning.plan import Refusal

_ByOutcome = Mapping[Outcome, Sequence[PendingTransaction]]


class ResolvedFindings(NamedTuple):
    """The findings that remain, the refusals, and notes about transactions that are committed."""

    findings: list[Finding]
    refusals: list[Refusal]
    notes: list[str]


def transactions_to_ask(plan_input: PlanInput) -> Iterator[PendingTransaction]:
    """Yield the pending transactions of the input."""
    for pending in plan_input.pending.values():
        yield from pending


def resolve_transactions(
    findings: Iterable[Finding],
    plan_input: PlanInput,
    snapshot: ClusterSnapshot | None,
    policies: Policies,
    *,
    restored: bool = False,
) -> ResolvedFindings:
    """Replace findings about pending transactions by their outcome on the brokers.

    ``restored``: whether the move restores the Flink job, which then commits those of its pending
    transactions that are not committed yet. If the brokers have aborted a transaction, the job logs
    an error and continues without it.

    Source: KafkaCommitter.commit, TransactionAborter (which aborts only the transactions of later
    checkpoints) @ connector 3.4.0-1.20.
    """
    resolved = ResolvedFindings([], [], [])
    for finding in findings:
        if finding.code is not Code.PENDING_TRANSACTIONS:
            resolved.findings.append(finding)
            continue
        pending = plan_input.pending.get(finding.operator_id or "", ())
        by_outcome = _group_by_outcome(pending, snapshot)
        lost = _refuse_aborted(by_outcome) if restored else _refuse_lost(by_outcome)
        if lost is not None and not policies.allow_in_flight:
            what = f"operator {finding.operator_id}: {lost.what}"
            resolved.refusals.append(replace(lost, what=what))
        elif lost is not None:
            resolved.findings.append(replace(finding, message=lost.what))
        elif pending and len(by_outcome[Outcome.COMMITTED]) == len(pending):
            resolved.notes.append(
                f"committed, by the brokers' transaction log: {_named(pending)}, which "
                f"operator {finding.operator_id} had yet to commit"
            )
        elif restored:
            what = f"{_named(pending)} of a KafkaSink" if pending else "what a sink keeps"
            message = (
                f"{what} may not be committed yet: the job commits it when it is restored, unless "
                "the brokers have aborted it by then"
            )
            resolved.findings.append(replace(finding, message=message))
        else:
            message = finding.message
            if pending:
                message += f"; {_why_unknown(by_outcome[Outcome.UNKNOWN], snapshot)}"
            resolved.findings.append(replace(finding, message=message))
    return resolved


def _group_by_outcome(
    pending: Iterable[PendingTransaction], snapshot: ClusterSnapshot | None
) -> _ByOutcome:
    outcomes = snapshot.transactions if snapshot is not None else {}
    by_outcome: dict[Outcome, list[PendingTransaction]] = {outcome: [] for outcome in Outcome}
    for transaction in pending:
        by_outcome[outcomes.get(transaction, Outcome.UNKNOWN)].append(transaction)
    return by_outcome


def _refuse_lost(by_outcome: _ByOutcome) -> Refusal | None:
    """Return the refusal of open or aborted transactions, or None if there are none."""
    if not by_outcome[Outcome.OPEN]:
        return _refuse_aborted(by_outcome)
    return Refusal(
        f"{_named(by_outcome[Outcome.OPEN])} of a KafkaSink is still open on the brokers: what it "
        "holds of the job's output is lost when it times out",
        "restore the job from here once, let it commit, and stop it again with a savepoint; or "
        "add --allow-in-flight to lose it",
    )


def _refuse_aborted(by_outcome: _ByOutcome) -> Refusal | None:
    if not by_outcome[Outcome.ABORTED]:
        return None
    return Refusal(
        f"{_named(by_outcome[Outcome.ABORTED])} of a KafkaSink was aborted on the brokers: what it "
        "held of the job's output is lost, and going on from here reads none of it again",
        "move from an older checkpoint, which repeats what was committed since; or add "
        "--allow-in-flight to go on without it",
    )


def _why_unknown(unknown: Sequence[PendingTransaction], snapshot: ClusterSnapshot | None) -> str:
    if snapshot is None:
        return "add -b HOST:PORT to ask the sink's brokers"
    if snapshot.transactions_error:
        return f"the brokers do not say what became of it ({snapshot.transactions_error})"
    return f"these brokers do not know {_named(unknown)}"


def _named(transactions: Iterable[PendingTransaction]) -> str:
    ids = sorted(transaction.transactional_id for transaction in transactions)
    if len(ids) == 1:
        return f"transaction {ids[0]!r}"
    return f"each of {counted(len(ids), 'transaction')} (the first is {ids[0]!r})"
