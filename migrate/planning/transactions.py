"""The pending transactions of a KafkaSink, and their outcome on the brokers.

A checkpoint contains the transactions that the job has not committed yet. The job commits them only
after the checkpoint is complete, and it may fail before that commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from decoder import PendingTransaction
from migrate.inputs.plan_input import PlanInput
from migrate.model.catalog import ABORTED_TRANSACTION, OPEN_TRANSACTION
from migrate.model.cluster_snapshot import ClusterSnapshot, TxnOutcome
from migrate.model.finding import Code, Finding
from migrate.model.finding_catalog import (
    TRANSACTIONS_ABORTED,
    TRANSACTIONS_NOT_QUERIED,
    TRANSACTIONS_NOT_REPORTED,
    TRANSACTIONS_OPEN,
    TRANSACTIONS_UNKNOWN,
)
from migrate.model.message import Message, MessageTemplate
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
        lost = _lost_transactions(by_outcome, restored=restored)
        if lost is not None:
            refusal, finding_if_allowed, transactions = lost
            facts = {"transactions": _named(transactions)}
            if policies.allow_in_flight:
                remaining.append(replace(finding, message=finding_if_allowed(**facts)))
            else:
                refusals.append(refusal(**facts).about(finding.operator))
        elif pending and len(by_outcome[TxnOutcome.COMMITTED]) == len(pending):
            notes.append(
                f"{_named(pending)} of {finding.operator} is committed according to the brokers' "
                "transaction log, although it is pending in the checkpoint"
            )
        elif restored:
            message = finding.when_restored or finding.message
            remaining.append(replace(finding, message=message))
        elif pending:
            message = _with_reason(finding.message, by_outcome[TxnOutcome.UNKNOWN], snapshot)
            remaining.append(replace(finding, message=message))
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


def _lost_transactions(
    by_outcome: _ByOutcome, *, restored: bool
) -> tuple[MessageTemplate, MessageTemplate, Sequence[PendingTransaction]] | None:
    """Return two messages, and the transactions whose output is or will be lost.

    The first message is the refusal. The second one is the finding that is reported instead if the
    policies allow the loss. Return None if no output is lost.
    """
    if (lost := by_outcome[TxnOutcome.OPEN]) and not restored:
        return OPEN_TRANSACTION, TRANSACTIONS_OPEN, lost
    if lost := by_outcome[TxnOutcome.ABORTED]:
        return ABORTED_TRANSACTION, TRANSACTIONS_ABORTED, lost
    return None


def _with_reason(
    message: Message, unknown: Sequence[PendingTransaction], snapshot: ClusterSnapshot | None
) -> Message:
    """Return a finding's message with the reason that the outcome is unknown."""
    if snapshot is None:
        return TRANSACTIONS_NOT_QUERIED(finding=message)
    if snapshot.transactions_error:
        return TRANSACTIONS_NOT_REPORTED(finding=message, error=snapshot.transactions_error)
    return TRANSACTIONS_UNKNOWN(finding=message, transactions=_named(unknown))


def _named(transactions: Iterable[PendingTransaction]) -> str:
    ids = sorted(transaction.transactional_id for transaction in transactions)
    if len(ids) == 1:
        return f"transaction {ids[0]!r}"
    return f"each of {counted(len(ids), 'transaction')} (the first is {ids[0]!r})"
