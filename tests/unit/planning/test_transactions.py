"""Read outcomes from the transaction log, and apply them to a plan, without a broker.

`tests/integration/test_pending_transactions.py` reads the log of a real broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from decoder import read_checkpoint
from migrate.extensions.savepoints.state_mismatch import check_savepoint
from migrate.inputs.flink.extract import Extraction, extract
from migrate.kafka.transactions import StateChange, log_partition, outcome_of
from migrate.model.cluster_snapshot import (
    ClusterSnapshot,
    LogRange,
    Transaction,
    TxnOutcome,
)
from migrate.model.policies import Policies
from migrate.planning import Plan, make_plan, make_question
from tests.support.checkpoints import (
    SourceState,
    operator_with_states,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.encoder import (
    COMMITTER_STATE,
    Committable,
    FileCommittable,
    encode_committer_element,
)

# TransactionState @ Kafka 4.1.1
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMMIT, ABORT, DEAD = range(7)
OURS: Transaction = ("pay-0-5", 77, 3)
FIRST, SECOND = OURS, ("pay-1-5", 4000, 0)


@pytest.mark.parametrize(
    ("changes", "fate"),
    [
        ([], TxnOutcome.UNKNOWN),
        ([(77, 3, EMPTY)], TxnOutcome.UNKNOWN),
        ([(77, 3, EMPTY), (77, 3, ONGOING)], TxnOutcome.OPEN),
        ([(77, 3, ONGOING), (77, 3, PREPARE_COMMIT)], TxnOutcome.COMMITTED),
        ([(77, 3, COMMIT)], TxnOutcome.COMMITTED),
        # Kafka ends a timed-out transaction, and every one of a 4.0 client, in the next epoch.
        ([(77, 3, ONGOING), (77, 4, PREPARE_ABORT), (77, 4, ABORT)], TxnOutcome.ABORTED),
        (
            [(77, 3, ONGOING), (77, 4, PREPARE_COMMIT), (77, 4, COMMIT)],
            TxnOutcome.COMMITTED,
        ),
        # The ID was reused: the outcome of the later transaction does not count.
        (
            [(77, 3, ONGOING), (77, 4, ABORT), (77, 5, EMPTY), (77, 5, COMMIT)],
            TxnOutcome.ABORTED,
        ),
        ([(77, 3, COMMIT), (77, 4, EMPTY), (77, 4, ONGOING)], TxnOutcome.COMMITTED),
        ([(77, 3, COMMIT), (77, 4, ABORT)], TxnOutcome.COMMITTED),
        ([(77, 4, COMMIT)], TxnOutcome.UNKNOWN),
        ([(78, 3, ABORT)], TxnOutcome.UNKNOWN),
    ],
)
def test_outcome_of_transaction_follows_from_state_changes(
    changes: Sequence[tuple[int, int, int]], fate: TxnOutcome
) -> None:
    assert outcome_of(OURS, [StateChange(*change) for change in changes]) is fate


@pytest.mark.parametrize(
    ("transactional_id", "partition"),
    # Of 50 partitions, by String.hashCode of OpenJDK 17. The fourth hash is Integer.MIN_VALUE.
    [
        ("to-long-0-1", 43),
        ("payments-3-12", 9),
        ("größe-0-1", 8),
        ("polygenelubricants", 0),
        ("𝄞-0-1", 15),
    ],
)
def test_log_partition_of_transactional_id_matches_kafka(
    transactional_id: str, partition: int
) -> None:
    assert log_partition(transactional_id, 50) == partition


def _job(directory: Path) -> Extraction:
    """Return a job with a source of one partition, and a sink with two pending transactions."""
    sink = operator_with_states(
        {
            COMMITTER_STATE: [
                encode_committer_element(
                    "2.2", {5: {0: [Committable(*FIRST)], 1: [Committable(*SECOND)]}}
                )
            ]
        },
        operator_id=bytes(16),
    )
    source = source_operator(SourceState({0: splits("t", [4])}))
    extraction = extract(read_checkpoint(write_checkpoint(directory / "chk-7", source, sink)))
    asked = make_question(extraction, extraction.sources, Policies())
    assert asked.transactions == {FIRST, SECOND}
    return extraction


def _snapshot(fates: Mapping[Transaction, TxnOutcome], untold: str = "") -> ClusterSnapshot:
    logs = {"t": {0: LogRange(0, 9)}}
    return ClusterSnapshot(logs, transactions=fates, transactions_error=untold)


def _plan(
    directory: Path,
    fates: Mapping[Transaction, TxnOutcome],
    policies: Policies = Policies(),  # frozen
    untold: str = "",
) -> Plan:
    job = _job(directory)
    return make_plan(job, job.sources, _snapshot(fates, untold), policies)


def _told(lines: Sequence[object]) -> list[str]:
    return [str(line) for line in lines if "transaction" in str(line)]


def test_committed_transactions_are_reported_in_note(tmp_path: Path) -> None:
    plan = _plan(tmp_path, {FIRST: TxnOutcome.COMMITTED, SECOND: TxnOutcome.COMMITTED})
    assert (plan.refusals, _told(plan.warnings)) == ((), [])
    (note,) = plan.notes
    assert "each of 2 transactions (the first is 'pay-0-5')" in note


@pytest.mark.parametrize("other", list(TxnOutcome))
def test_open_transaction_is_refused_regardless_of_second_transaction(
    tmp_path: Path, other: TxnOutcome
) -> None:
    plan = _plan(tmp_path, {FIRST: other, SECOND: TxnOutcome.OPEN})
    (refusal,) = plan.refusals
    assert "still open" in refusal.what
    assert "'pay-1-5'" in refusal.what or other is TxnOutcome.OPEN
    assert "restore the job from this checkpoint once" in refusal.way_out
    assert (plan.notes, _told(plan.warnings)) == ((), [])


@pytest.mark.parametrize("other", [TxnOutcome.ABORTED, TxnOutcome.COMMITTED, TxnOutcome.UNKNOWN])
def test_aborted_transaction_is_refused(tmp_path: Path, other: TxnOutcome) -> None:
    (refusal,) = _plan(tmp_path, {FIRST: TxnOutcome.ABORTED, SECOND: other}).refusals
    assert "aborted on the brokers" in refusal.what


@pytest.mark.parametrize("fate", [TxnOutcome.OPEN, TxnOutcome.ABORTED])
def test_allowed_open_or_aborted_transactions_trigger_warning(
    tmp_path: Path, fate: TxnOutcome
) -> None:
    plan = _plan(tmp_path, {FIRST: fate, SECOND: fate}, Policies(allow_in_flight=True))
    assert (plan.refusals, plan.next_offsets) == ((), {("t", 0): 4})
    (warning,) = _told(plan.warnings)
    assert "lost" in warning


def test_transaction_unknown_to_brokers_triggers_warning(tmp_path: Path) -> None:
    plan = _plan(tmp_path, {FIRST: TxnOutcome.COMMITTED, SECOND: TxnOutcome.UNKNOWN})
    (warning,) = _told(plan.warnings)
    assert (plan.refusals, plan.notes) == ((), ())
    assert "these brokers have no record of transaction 'pay-1-5'" in warning


def test_unreadable_transaction_log_triggers_warning(tmp_path: Path) -> None:
    plan = _plan(tmp_path, {}, untold="access denied")
    (warning,) = _told(plan.warnings)
    assert "did not report the outcome of the transactions (access denied)" in warning


# -- savepoints that Flink resumes from -----------------------------------------------------------


def _restored(
    directory: Path,
    fates: Mapping[Transaction, TxnOutcome] | None,
    policies: Policies = Policies(),  # frozen
) -> tuple[list[str], list[str]]:
    """Return the refusals and the warnings for a savepoint that Flink resumes from."""
    job = _job(directory)
    snapshot = _snapshot(fates) if fates is not None else None
    refusals, told = check_savepoint(
        job, job.sources, snapshot, policies, ignore_other_sources=False
    )
    return _told(refusals), _told(told)


@pytest.mark.parametrize(
    "fates",
    [
        {FIRST: TxnOutcome.COMMITTED, SECOND: TxnOutcome.OPEN},
        {FIRST: TxnOutcome.OPEN},
        {},
        None,
    ],
)
def test_open_transaction_of_restored_job_triggers_warning_instead_of_refusal(
    tmp_path: Path, fates: Mapping[Transaction, TxnOutcome] | None
) -> None:
    """Regression: The savepoint was refused, although a restored job commits the transaction."""
    refusals, told = _restored(tmp_path, fates)
    assert refusals == []
    (warning,) = told
    assert "2 transactions to commit" in warning
    assert "unless the brokers abort its transactions first" in warning


def test_warning_explains_that_restored_job_commits_pending_files(tmp_path: Path) -> None:
    pending = {5: {0: [FileCommittable("a", b"file"), FileCommittable("b", b"file")]}}
    states = {COMMITTER_STATE: [encode_committer_element("2.2", pending)]}
    sink = operator_with_states(states, operator_id=bytes(16))
    source = source_operator(SourceState({0: splits("t", [4])}))
    job = extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", source, sink)))
    _, warnings = check_savepoint(job, job.sources, None, Policies(), ignore_other_sources=False)
    assert _told(warnings) == [
        f"operator {'00' * 16}: a FileSink has 2 finished files to commit; the restored job "
        "commits these files; if they were already committed when the job stopped, committing them "
        "again has no effect "
        "[pending-transactions]"
    ]


def test_committed_transactions_of_restored_job_trigger_no_message(tmp_path: Path) -> None:
    assert _restored(tmp_path, dict.fromkeys((FIRST, SECOND), TxnOutcome.COMMITTED)) == (
        [],
        [],
    )


def test_aborted_transaction_of_restored_job_is_refused(tmp_path: Path) -> None:
    fates = {FIRST: TxnOutcome.ABORTED, SECOND: TxnOutcome.OPEN}
    (refusal,), told = _restored(tmp_path, fates)
    assert refusal.startswith(f"operator {'00' * 16}: transaction 'pay-0-5' of a KafkaSink was")
    assert told == []
    refusals, (warning,) = _restored(tmp_path / "again", fates, Policies(allow_in_flight=True))
    assert refusals == []
    assert "aborted on the brokers" in warning
