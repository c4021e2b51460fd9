"""The pending transactions of a KafkaSink, and their outcome on the brokers.

A checkpoint contains the transactions that the job has not committed yet. The job commits them only
after the checkpoint is complete, and it may fail before it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from decoder import PendingTransaction
from migrate.inputs.plan_input import PlanInput
from migrate.model.catalog import ABORTED_TRANSACTION, OPEN_TRANSACTION
from migrate.model.cluster_snapshot import ClusterSnapshot, TxnOutcome
from migrate.model.finding import Code, Finding
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.policies import Policies
from migrate.model.wording import counted

_ByOutcome = Mapping[TxnOutcome, Sequence[PendingTransaction]]


def resolve_transactions(
    findings: Iterable[Finding],
    plan_input: PlanInput,
    snapshot: ClusterSnapshot | None,
    policies: Policies,
    *,
    restored: bool = False,
) -> tuple[list[Finding], list[Message], list[str]]:
    """Replace findings about pending transactions with the outcomes of the transactions.

    Return the remaining findings, the refusals, and notes about committed transactions.

    ``restored`` is True if the move restores the Flink job. A restored job commits its pending
    transactions. If the brokers have aborted a transaction, the job logs an error and continues
    without it.

    Source: KafkaCommitter.commit, TransactionAborter (which aborts only the transactions of later
    checkpoints) @ connector 3.4.0-1.20.
    """
    remaining: list[Finding] = []
    refusals: list[Message] = []
    notes: list[str] = []
    for finding in findings:
        if finding.code is not Code.PENDING_TRANSACTIONS:
            remaining.append(finding)
            continue
        pending = plan_input.pending.get(finding.operator_id or "", ())
        by_outcome = _group_by_outcome(pending, snapshot)
        refusal = _lost_refusal(by_outcome, restored=restored)
        if refusal is not None and not policies.allow_in_flight:
            refusals.append(refusal.about(finding.operator))
        elif refusal is not None:
            remaining.append(replace(finding, message=refusal.what))
        elif pending and len(by_outcome[TxnOutcome.COMMITTED]) == len(pending):
            notes.append(
                f"{_named(pending)} of {finding.operator} is committed according to the brokers' "
                "transaction log, although it is pending in the checkpoint"
            )
        elif restored:
            what = f"{_named(pending)} of a KafkaSink" if pending else "the pending data of a sink"
            message = finding.when_restored or (
                f"{what} may not be committed yet; the restored job commits it, unless the "
                "brokers abort it first"
            )
            remaining.append(replace(finding, message=message))
        elif pending:
            why = _why_unknown(by_outcome[TxnOutcome.UNKNOWN], snapshot)
            remaining.append(replace(finding, message=f"{finding.message}; {why}"))
        else:
            remaining.append(finding)
    return remaining, refusals, notes


def _group_by_outcome(
    pending: Iterable[PendingTransaction], snapshot: ClusterSnapshot | None
) -> _ByOutcome:
    outcomes = snapshot.transactions if snapshot is not None else {}
    by_outcome: dict[TxnOutcome, list[PendingTransaction]] = {outcome: [] for outcome in TxnOutcome}
    for transaction in pending:
        by_outcome[outcomes.get(transaction, TxnOutcome.UNKNOWN)].append(transaction)
    return by_outcome


def _lost_refusal(by_outcome: _ByOutcome, *, restored: bool) -> Message | None:
    """Return the refusal of transactions with output that is or will be lost, or None."""
    if by_outcome[TxnOutcome.OPEN] and not restored:
        return OPEN_TRANSACTION(transactions=_named(by_outcome[TxnOutcome.OPEN]))
    if by_outcome[TxnOutcome.ABORTED]:
        return ABORTED_TRANSACTION(transactions=_named(by_outcome[TxnOutcome.ABORTED]))
    return None


def _why_unknown(unknown: Sequence[PendingTransaction], snapshot: ClusterSnapshot | None) -> str:
    if snapshot is None:
        return f"add {option('bootstrap_servers', 'HOST:PORT')} to query the sink's brokers"
    if snapshot.transactions_error:
        return f"the brokers did not report its outcome ({snapshot.transactions_error})"
    return f"these brokers have no record of {_named(unknown)}"


def _named(transactions: Iterable[PendingTransaction]) -> str:
    ids = sorted(transaction.transactional_id for transaction in transactions)
    if len(ids) == 1:
        return f"transaction {ids[0]!r}"
    return f"each of {counted(len(ids), 'transaction')} (the first is {ids[0]!r})"
