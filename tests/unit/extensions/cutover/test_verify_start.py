"""Verification of the start offsets of a target, using all evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrate.extensions.cutover.report import PartitionReport
from migrate.extensions.cutover.verify_start import Evidence, StartResult, lag_of, verify_start
from migrate.model.cluster_snapshot import LogRange
from migrate.model.positions import Unknown
from migrate.planning import Verdict
from migrate.planning.verify import PlanCheck, StartOutcome, Verification, VerifiedPartition

_PLACE = ("orders", 0)
# The group contains the commits of this cut-over, or newer commits by another client.
_OURS: dict[str, Any] = {"query_has_committed": False}
_OTHERS: dict[str, Any] = {"query_has_committed": False, "committed_by_others": {_PLACE}}


def _row(**fields: Any) -> PartitionReport:
    return PartitionReport(
        topic="orders",
        partition=0,
        verdict=Verdict.OK,
        checkpoint=80,
        planned=80,
        log_start=10,
        log_end=200,
        **fields,
    )


def _judge(
    row: PartitionReport,
    outcome: StartOutcome,
    records: int = 0,
    *,
    gone: bool = False,
    **seen: Any,
) -> StartResult:
    started = {StartOutcome.OK: 80, StartOutcome.REPEATED: 70}.get(outcome, 80 + records)
    verification = Verification("t", (VerifiedPartition(*_PLACE, 80, started, outcome, records),))
    verification = replace(verification, first_batches_gone=gone)
    base = {"has_begun": True, "query_has_committed": True, "log_starts": {_PLACE: 10}}
    return verify_start([row], verification, Evidence(**{**base, **seen}))


@pytest.mark.parametrize(
    ("row", "outcome", "seen", "verified", "began_right"),
    [
        ({}, StartOutcome.OK, {}, True, True),
        ({}, StartOutcome.OK, {"has_begun": False}, True, False),
        ({}, StartOutcome.OK, {"query_has_committed": False}, True, False),
        # Other clients have committed for the group.
        ({}, StartOutcome.MOVED_ON, _OTHERS, False, False),
        ({"members_seen": True}, StartOutcome.MOVED_ON, _OTHERS, True, True),
        ({"began_right": True}, StartOutcome.MOVED_ON, _OTHERS, True, True),
        ({"members_seen": True}, StartOutcome.OK, _OURS, True, False),
        ({}, StartOutcome.OK, _OURS, True, False),
        # The other clients may have started at the earliest offset and reached the plan.
        ({}, StartOutcome.OK, _OTHERS, False, False),
        ({}, StartOutcome.REPEATED, _OTHERS, False, False),
        ({"members_seen": True}, StartOutcome.OK, _OTHERS, True, True),
        # The log start offset is above the seed.
        ({}, StartOutcome.OK, {"log_starts": {_PLACE: 81}}, False, False),
        ({}, StartOutcome.OK, {"log_starts": {_PLACE: 80}}, True, True),
        ({}, StartOutcome.OK, {"log_starts": {}}, True, True),
        ({"began_right": True}, StartOutcome.OK, {"log_starts": {_PLACE: 81}}, True, True),
        ({}, StartOutcome.OK, {"log_starts": {_PLACE: 81}, "has_begun": False}, True, False),
        (
            {"members_seen": True},
            StartOutcome.MOVED_ON,
            {**_OTHERS, "log_starts": {_PLACE: 81}},
            False,
            False,
        ),
        # The query's log no longer contains its first batches.
        ({}, StartOutcome.OK, {"gone": True}, False, False),
        ({"began_right": True}, StartOutcome.OK, {"gone": True}, True, True),
        # Earlier evidence does not override a detected loss.
        ({"began_right": True}, StartOutcome.LOST, {}, False, True),
        ({"members_seen": True}, StartOutcome.REPEATED, {}, False, False),
        ({}, StartOutcome.UNKNOWN, {}, False, False),
    ],
)
def test_start_is_verified_only_with_sufficient_evidence(
    row: dict[str, Any],
    outcome: StartOutcome,
    seen: dict[str, Any],
    verified: bool,
    began_right: bool,
) -> None:
    judgement = _judge(_row(**row), outcome, **seen)
    assert judgement.report.verified is verified
    assert judgement.rows[0].began_right is began_right


def test_unknown_start_is_not_reported_as_zero_lost_records() -> None:
    lagging = _judge(_row(first_commit=95), StartOutcome.MOVED_ON, 15, **_OTHERS)
    assert lagging.report.unknown == 1
    assert lagging.text == (
        "1 cannot tell; the actual start offset of 1 partition is unknown: other clients "
        "committed for the group before a member was seen with this partition, so records "
        "may have been skipped or duplicated; the planned offset of orders-0 is 80, "
        "but the first observed commit is 95"
    )
    row = lagging.rows[0]
    assert (row.outcome, row.lost, row.reason) == (
        StartOutcome.UNKNOWN,
        0,
        lagging.text.partition("is unknown: ")[2],
    )
    expired = _judge(_row(log_start_seen=10), StartOutcome.OK, log_starts={_PLACE: 123})
    assert expired.text == (
        "1 cannot tell; the actual start offset of 1 partition is unknown: the log start "
        "offset of orders-0 is 123, and was 10 before; the records from offset 80 may have "
        "expired before they were read"
    )
    assert expired.rows[0].log_start_seen == 123
    assert _judge(_row(), StartOutcome.OK).text == "1 ok; lost 0, repeated 0"
    assert _judge(_row(), StartOutcome.LOST, 7).text == "1 lost; lost 7, repeated 0"


def test_result_lists_topics_that_only_the_query_reads() -> None:
    """Regression: A ``subscribePattern`` matched one more topic, and "3 ok" did not mention it."""
    partitions = (VerifiedPartition(*_PLACE, 80, 80, StartOutcome.OK),)
    topics = ("orders-b", "orders-c", "orders-d", "orders-e")
    verification = Verification("t", partitions, more_topics=topics)
    evidence = Evidence(has_begun=True, query_has_committed=True, log_starts={_PLACE: 10})
    result = verify_start([_row()], verification, evidence)
    assert result.text == (
        "1 ok; lost 0, repeated 0; not compared: orders-b, orders-c, orders-d and 1 more, which "
        "the query also reads"
    )


def test_partition_missing_from_plan_prevents_verification() -> None:
    partitions = (
        VerifiedPartition(*_PLACE, 80, 80, StartOutcome.OK),
        VerifiedPartition("orders", 1, 5, 9, StartOutcome.LOST, 4),
    )
    seen = Evidence(has_begun=True, query_has_committed=True, log_starts={})
    judgement = verify_start([_row()], Verification("t", partitions), seen)
    assert (judgement.report.verified, judgement.report.lost, len(judgement.rows)) == (False, 4, 1)
    moved_on = VerifiedPartition("orders", 1, 5, 9, StartOutcome.MOVED_ON, 4)
    judged = verify_start([_row()], Verification("t", (partitions[0], moved_on)), seen)
    assert not judged.report.verified
    before = verify_start(
        [_row()],
        Verification(
            "t", (VerifiedPartition("orders", 1, Unknown.UNRESOLVED, None, StartOutcome.UNKNOWN),)
        ),
        Evidence(has_begun=False, query_has_committed=False, log_starts={}),
    )
    assert before.text == (
        "1 cannot tell; the future start offset of 1 partition is unknown: orders-1 is not in "
        "the plan, or has no planned offset; to plan it, roll back (back=True) and rerun "
        "the command"
    )
    changed = verify_start(
        [_row()],
        replace(
            Verification("t", (VerifiedPartition(*_PLACE, 80, 80, StartOutcome.OK),)),
            plan=PlanCheck(("orders-0: its position is 80, but 90 in the plan",)),
        ),
        seen,
    )
    assert not changed.report.verified
    assert changed.text.endswith(
        "the plan differs from the savepoint: "
        + ("orders-0: its position is 80, but 90 in the plan")
    )
    nothing = verify_start([_row()], Verification("t", ()), seen)
    assert not nothing.report.verified


@pytest.mark.parametrize(
    ("reached", "ends", "lag"),
    [
        ({0: 80, 1: 20}, {0: 200, 1: 50}, 150),
        # The query has read records that were written after the log end offsets were queried.
        ({0: 210, 1: 20}, {0: 200, 1: 50}, 30),
        ({0: 80, 1: 20}, {0: 200}, None),
    ],
)
def test_lag_is_sum_over_planned_partitions_or_unknown(
    reached: dict[int, int], ends: dict[int, int], lag: int | None
) -> None:
    logs = {"orders": {partition: LogRange(0, end) for partition, end in ends.items()}}
    assert lag_of({("orders", number): at for number, at in reached.items()}, logs) == lag
