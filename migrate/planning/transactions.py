"""What the brokers say of the transactions that a KafkaSink had yet to commit.

A checkpoint holds them as they were before the commit, that of a stop too: the job commits after it
is complete, and may have died in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from decoder import PendingTransaction
from migrate.inputs.flink.extract import Code, Finding, PlanInput
from migrate.model.cluster_snapshot import ClusterSnapshot, Fate
from migrate.model.policies import Policies
from migrate.model.wording import counted
from migrate.planning.plan import Refusal


class Answers(NamedTuple):
    """The findings that are left, with what was answered; what is refused; what is in order."""

    findings: list[Finding]
    refusals: list[Refusal]
    notes: list[str]


def transactions_to_ask(found: PlanInput) -> Iterator[PendingTransaction]:
    """The transactions of which a broker may tell what became."""
    for pending in found.pending.values():
        yield from pending


def answered(
    findings: Iterable[Finding],
    found: PlanInput,
    snapshot: ClusterSnapshot | None,
    policies: Policies,
) -> Answers:
    """Put what the brokers say in the place of what the checkpoint cannot tell."""
    answers = Answers([], [], [])
    for finding in findings:
        pending = found.pending.get(finding.operator_id or "")
        if finding.code is not Code.PENDING_TRANSACTIONS or not pending:
            answers.findings.append(finding)
            continue
        if snapshot is None:
            message = f"{finding.message}; the sink's brokers tell it, with --bootstrap-servers"
            answers.findings.append(replace(finding, message=message))
            continue
        lost = _lost(pending, snapshot)
        if lost is not None and not policies.allow_in_flight:
            where = f"operator {finding.operator_id}: "
            answers.refusals.append(Refusal(where + lost.what, lost.way_out))
        elif lost is not None:
            answers.findings.append(replace(finding, message=lost.what))
        elif all(snapshot.transactions.get(one) is Fate.COMMITTED for one in pending):
            answers.notes.append(
                f"committed, by the brokers' transaction log: {_named(pending)}, which "
                f"operator {finding.operator_id} had yet to commit"
            )
        else:
            message = f"{finding.message}; {_untold(pending, snapshot)}"
            answers.findings.append(replace(finding, message=message))
    return answers


def answered_for_flink(
    findings: Iterable[Finding],
    found: PlanInput,
    snapshot: ClusterSnapshot | None,
    policies: Policies,
) -> Answers:
    """The same, where the job itself goes on: it commits what it had yet to commit as it is
    restored, and what is committed already once more, which changes nothing. Of a transaction that
    the brokers have aborted it logs an error, and goes on without.

    Source: KafkaCommitter.commit, TransactionAborter (which aborts later checkpoints' alone) @
    connector 3.4.0-1.20.
    """
    answers = Answers([], [], [])
    for finding in findings:
        pending = found.pending.get(finding.operator_id or "", ())
        told = snapshot.transactions if snapshot is not None else {}
        aborted = _aborted([one for one in pending if told.get(one) is Fate.ABORTED])
        if finding.code is not Code.PENDING_TRANSACTIONS:
            answers.findings.append(finding)
        elif aborted is not None and not policies.allow_in_flight:
            where = f"operator {finding.operator_id}: "
            answers.refusals.append(Refusal(where + aborted.what, aborted.way_out))
        elif aborted is not None:
            answers.findings.append(replace(finding, message=aborted.what))
        elif not pending or any(told.get(one) is not Fate.COMMITTED for one in pending):
            what = f"{_named(pending)} of a KafkaSink" if pending else "what a sink keeps"
            message = (
                f"{what} may be yet to be committed: the job commits it when it is restored; a "
                "transaction of Kafka's only until the brokers abort it (transaction.timeout.ms)"
            )
            answers.findings.append(replace(finding, message=message))
    return answers


def _lost(pending: Sequence[PendingTransaction], snapshot: ClusterSnapshot) -> Refusal | None:
    """What of it is not committed, by what the brokers say."""
    of = {
        fate: [one for one in pending if snapshot.transactions.get(one) is fate]
        for fate in (Fate.OPEN, Fate.ABORTED)
    }
    if of[Fate.OPEN]:
        return Refusal(
            f"{_named(of[Fate.OPEN])} of a KafkaSink is still open on the brokers: what it holds "
            "of the job's output is lost when it times out",
            "restore the job from here once, let it commit, and stop it again with a savepoint; or "
            "add --allow-in-flight to lose it",
        )
    return _aborted(of[Fate.ABORTED])


def _aborted(transactions: Sequence[PendingTransaction]) -> Refusal | None:
    if not transactions:
        return None
    return Refusal(
        f"{_named(transactions)} of a KafkaSink was aborted on the brokers: what it held "
        "of the job's output is lost, and going on from here reads none of it again",
        "move from an older checkpoint, which repeats what was committed since; or add "
        "--allow-in-flight to go on without it",
    )


def _untold(pending: Sequence[PendingTransaction], snapshot: ClusterSnapshot) -> str:
    if snapshot.transactions_untold:
        return (
            f"the brokers do not tell what became of it ({snapshot.transactions_untold}); "
            "kafka-transactions.sh describe --transactional-id "
            f"{pending[0].transactional_id} does"
        )
    unknown = [one for one in pending if snapshot.transactions.get(one) is not Fate.COMMITTED]
    return (
        f"these brokers do not know {_named(unknown)}: the sink writes to others, or it is too "
        "long ago"
    )


def _named(transactions: Iterable[PendingTransaction]) -> str:
    ids = sorted(one.transactional_id for one in transactions)
    if len(ids) == 1:
        return f"transaction {ids[0]!r}"
    return f"each of {counted(len(ids), 'transaction')} (the first is {ids[0]!r})"
