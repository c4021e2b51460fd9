"""Check the rules for the verdict of a rehearsal. Spark is not started.

The expected values are computed with exact fractions, or from the rules in Flink's sources
(``TtlUtils.expired``: ``lastAccess + ttl <= now``).
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import DoubleType, FloatType, LongType

from migrate.extensions.stateful_query.rehearsal.compare import doubt_of_output
from migrate.extensions.stateful_query.rehearsal.coverage import Coverage, NotCompared, verdict
from migrate.extensions.stateful_query.rehearsal.expiry import Cause, Dropped, Expiry
from migrate.extensions.stateful_query.rehearsal.lateness import LateRecords, WindowGrid
from migrate.extensions.stateful_query.rehearsal.patterns import (
    describe_differences,
    describe_hours,
)
from migrate.extensions.stateful_query.state_proof import StateProof
from migrate.extensions.stateful_query.transfer.flat_state import Field
from migrate.extensions.stateful_query.transfer.proof import Comparison
from migrate.extensions.stateful_query.transfer.rounding import Rounding, rounding_error
from migrate.extensions.stateful_query.transfer.rows import StateRows, unused_fields
from migrate.extensions.stateful_query.transfer.watermark import priming_warnings

DAY_MS = 86_400_000
EARLIER = 1_700_000_000_000


# -- TTL -----------------------------------------------------------------------------------------


def _flink_has_dropped(last_access_ms: int, ttl_ms: int, now_ms: int) -> bool:
    return last_access_ms + ttl_ms <= now_ms


@pytest.mark.parametrize("ttl_ms", [1, 1_000, 60_000])
@pytest.mark.parametrize("age_ms", [0, 1, 999, 1_000, 1_001, 59_999, 60_000, 60_001])
def test_key_is_expired_if_its_ttl_had_passed_at_later_checkpoint(ttl_ms: int, age_ms: int) -> None:
    later = EARLIER + 30_000
    expiry = Expiry(ttl_ms, EARLIER, later)
    dropped = _flink_has_dropped(later - age_ms, ttl_ms, later)
    expected = Cause.EXPIRED if dropped else Cause.DIFFERENT
    assert expiry.cause(later - age_ms, is_new=False) is expected


def test_key_cleared_by_job_is_not_reported_as_expired() -> None:
    """Regression: With savepoints 5 s apart and a TTL of 7 days, a cleared key was "expired"."""
    expiry = Expiry(7 * DAY_MS, EARLIER, EARLIER + 5_000)
    assert expiry.cause(EARLIER - 1_000, is_new=False) is Cause.DIFFERENT
    assert expiry.cause(EARLIER - 7 * DAY_MS + 5_000, is_new=False) is Cause.EXPIRED
    assert expiry.cause(None, is_new=True) is Cause.DIFFERENT


def test_new_key_cannot_have_expired_if_ttl_exceeds_time_between_checkpoints() -> None:
    assert Expiry(1_000, EARLIER, EARLIER + 999).cause(None, is_new=True) is Cause.DIFFERENT
    assert Expiry(1_000, EARLIER, EARLIER + 1_000).cause(None, is_new=True) is Cause.UNKNOWN
    assert Expiry(1_000, None, EARLIER).cause(None, is_new=True) is Cause.UNKNOWN


@pytest.mark.parametrize("expiry", [Expiry(None, EARLIER, EARLIER), Expiry(5, EARLIER, None)])
def test_cause_of_missing_key_is_unknown_if_ttl_or_checkpoint_time_is_unknown(
    expiry: Expiry,
) -> None:
    assert expiry.cause(EARLIER, is_new=False) is Cause.UNKNOWN
    assert expiry.cause(None, is_new=True) is Cause.UNKNOWN


def test_time_of_copied_checkpoint_does_not_prove_expiry() -> None:
    """Regression: The time of the copy was used, so a key cleared by the job was "expired"."""
    newest_access, copied = EARLIER + 5_000, EARLIER + DAY_MS
    expiry = Expiry(60_000, EARLIER, newest_access, copied)
    assert expiry.cause(EARLIER - 1_000, is_new=False) is Cause.UNKNOWN
    assert expiry.cause(newest_access - 60_000, is_new=False) is Cause.EXPIRED
    assert expiry.cause(copied - 59_999, is_new=False) is Cause.DIFFERENT
    assert expiry.cause(None, is_new=True) is Cause.UNKNOWN


def test_cause_of_missing_key_is_unknown_if_its_last_access_is_unknown() -> None:
    expiry = Expiry(1, EARLIER, EARLIER + DAY_MS)
    assert expiry.cause(None, is_new=False) is Cause.UNKNOWN
    ((number, reason),) = Dropped(0, 3).reasons(expiry)
    assert number == 3 and "cannot be determined" in reason
    ((number, reason),) = Dropped(2, 0).reasons(expiry)
    assert number == 2 and "their last use was 1 ms (ttl_ms) or more before" in reason


# -- coverage ------------------------------------------------------------------------------------


def _coverage(compared: int, *numbers: int | None, least: float = 0.5) -> Coverage:
    return Coverage(compared, tuple(NotCompared(n, "because") for n in numbers), least)


@pytest.mark.parametrize(
    ("coverage", "is_right"),
    [
        # Regression: With 2 keys compared and 2,060 keys not compared, the query was "right".
        (_coverage(2, 2060), None),
        (_coverage(2, 2060, least=0), True),
        (_coverage(50, 50), True),
        (_coverage(49, 50), None),
        (_coverage(0), None),
        (_coverage(0, least=0), None),
        (_coverage(1, None), True),
        (_coverage(99, 1, least=1), None),
        (_coverage(99, least=1), True),
    ],
)
def test_rehearsal_with_low_coverage_is_not_reported_as_correct(
    coverage: Coverage, is_right: bool | None
) -> None:
    assert verdict([True, True], coverage, []) is is_right
    assert verdict([True, False], coverage, []) is False
    assert verdict([True], coverage, ["the expiry of keys"]) is None


def test_rehearsal_coverage_is_printed_with_reasons_for_keys_not_compared() -> None:
    first, *reasons = _coverage(2, 2060, None).lines()
    assert first == (
        "compared: 2 of 2062 keys (0.1%), less than min_compared (50.0%); the rehearsal has "
        "no verdict on the query"
    )
    assert reasons == ["not compared: because"] * 2
    assert list(_coverage(3).lines()) == ["compared: 3 of 3 keys (100.0%)"]
    # Regression: The report did not show that only one of a million compared keys had changed.
    assert list(replace(_coverage(3), changed=1).lines()) == [
        "compared: 3 of 3 keys (100.0%)",
        "changed in Flink between the checkpoints: 1 key",
    ]


@pytest.mark.parametrize(
    ("expressions", "unused"),
    [
        (["key", "value.f0"], ("value.f1", "value.the sum")),
        (["VALUE . F0", "IF(value.`f1` = 0, NULL, value.`the sum`)"], ()),
        (["key", "to_json(value)"], ()),
        (["map_key.value.f0", "first_value(x)"], ("value.f0", "value.f1", "value.the sum")),
        (["value.f1.f0"], ("value.f0", "value.the sum")),
    ],
)
def test_fields_of_state_value_are_unused_if_no_sql_expression_refers_to_them(
    expressions: list[str], unused: tuple[str, ...]
) -> None:
    assert unused_fields(["f0", "f1", "the sum"], expressions) == unused


@pytest.mark.parametrize("stores_records", [False, True])
def test_prime_warns_that_records_in_deduplication_state_are_not_moved(
    stores_records: bool,
) -> None:
    """Regression: A job that stores the last row was primed like one that stores the first row."""
    none = cast(Any, None)
    rows = StateRows(none, none, ("id",), stores_records=stores_records)
    warnings = list(priming_warnings([rows], None))
    codes = [warning.rpartition("[")[2] for warning in warnings]
    assert codes == ["records-not-moved]"] * stores_records


# -- floating-point sums -------------------------------------------------------------------------


@given(
    st.lists(st.floats(-1e12, 1e12, allow_nan=False), min_size=1, max_size=60),
    st.integers(0, 2**32),
)
def test_sums_in_two_orders_differ_by_at_most_rounding_error(
    numbers: list[float], seed: int
) -> None:
    shuffled = random.Random(seed).sample(numbers, len(numbers))
    # Like Spark, add the numbers of each part, and then the sums of the parts.
    half = len(shuffled) // 2
    parts = math.fsum([]) + _added(shuffled[:half]) + _added(shuffled[half:])
    magnitude = float(sum(abs(Fraction(number)) for number in numbers)) * (1 + 1e-15)
    error = rounding_error(len(numbers) - 1, magnitude)
    # Compare the doubles exactly, without further rounding.
    assert abs(Fraction(_added(numbers)) - Fraction(parts)) <= Fraction(error) + Fraction(5e-324)


def _added(numbers: list[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


def test_rounding_error_of_million_records_is_far_below_one_record() -> None:
    """For 1,000,000 records of 100.00, the sum may be wrong by about 2 cents."""
    assert rounding_error(1_000_000, 1e8) < 0.03
    assert rounding_error(1_000, 1e5) < 1e-7
    assert rounding_error(0, 1e300) == 0


def test_rounding_applies_to_sums_and_variances_of_doubles() -> None:
    double, float_, long = DoubleType(), FloatType(), LongType()
    fields = [
        Field("sum", double),
        Field("sum", long),
        Field("min", double),
        Field("count", long),
        Field("max", float_),
        Field("m2", double),
        Field("sum", double, in_average=True),
    ]
    assert Rounding(10).fields(fields) == [0, 5, 6]
    assert Rounding(10, all_fields=True).fields(fields) == [0, 2, 4, 5, 6]


def test_rounding_tolerance_can_be_set_by_user() -> None:
    field = Field("sum", DoubleType())
    assert Rounding(10, 1e-09).allowed(0, field, "m", "n") == "1e-09D * m"
    assert "least(10L, n)" in Rounding(10).allowed(0, field, "m", "n")


def test_sums_of_float_differ_by_more_than_sums_of_double() -> None:
    """Flink adds FLOATs as FLOAT, but Spark adds them as DOUBLE.

    The test computes both sums with numpy (IEEE 754).
    """
    random_ = random.Random(7)
    numbers = [float(np.float32(random_.random() * 100)) for _ in range(1_000)]
    by_flink = np.float32(0)
    for number in numbers:
        by_flink = by_flink + np.float32(number)
    difference = abs(float(by_flink) - _added(numbers))
    size = f"{_added(numbers)!r}D"
    field = Field("sum", DoubleType())

    def allowed(rounding: Rounding) -> float:
        sql = rounding.allowed(0, field, size, None).replace("D", "").replace("L", "")
        return float(eval(sql))

    assert allowed(Rounding(999)) < difference <= allowed(Rounding(999, singles=frozenset({0})))
    assert allowed(Rounding(999, singles=frozenset({0}))) < 0.0003 * _added(numbers)
    of_float = Rounding(999).allowed(0, Field("sum", FloatType()), size, None)
    assert of_float == Rounding(999, singles=frozenset({0})).allowed(0, field, size, None)


# -- differences in the output that do not prove a mistake ---------------------------------------


def _compared(right: int, wrong: int, missing: int, unexpected: int) -> Comparison:
    proof = StateProof(right, wrong, missing, unexpected)
    return Comparison(proof, cast(Any, None), cast(Any, None))


def _doubt(
    proof: tuple[int, int, int, int],
    mode: str = "append",
    *,
    keys: tuple[int, int, int, int] | None = None,
    late: int | None = 0,
    fires: bool = True,
) -> str | None:
    return doubt_of_output(
        _compared(*proof),
        mode,
        None if keys is None else _compared(*keys),
        None if late is None else LateRecords(late, 2_000, 3_000, ()),
        None if late is None else WindowGrid(5_000, 0, 2),
        fires_windows=fires,
    )


@pytest.mark.parametrize("differences", [(0, 1, 1), (0, 4, 4), (2, 1, 2), (0, 0, 4)])
def test_late_records_can_explain_differences_in_output(
    differences: tuple[int, int, int],
) -> None:
    """Regression: A correct query was reported as "wrong".

    Flink had dropped a late record.
    """
    proof = (30, *differences)
    assert "Flink dropped 2 late records" in (_doubt(proof, late=2) or "")
    assert _doubt(proof, late=0) is None
    assert "late records may explain the difference" in (_doubt(proof, late=None) or "")


def test_output_is_wrong_if_late_records_cannot_explain_all_differences() -> None:
    assert _doubt((30, 0, 5, 4), late=2) is None
    assert _doubt((30, 1, 1, 4), late=2) is None
    assert _doubt((30, 0, 1, 1), fires=False) is None
    assert _doubt((30, 0, 0, 0), "update", late=None) is None


@pytest.mark.parametrize("mode", ["update", "Update", "complete"])
def test_per_change_rows_are_not_compared_with_per_batch_rows(mode: str) -> None:
    """Regression: Flink wrote 40 rows, one per change, and Spark wrote 20, one per key and batch.

    The query was reported as wrong, although the states were equal.
    """
    assert "once in each batch" in (_doubt((20, 0, 20, 0), mode, fires=False) or "")


def test_deduplication_may_output_different_record_of_same_key() -> None:
    """If all keys match, rows with different records are not reported as wrong."""
    doubt = _doubt((10, 0, 3, 3), keys=(13, 0, 0, 0), fires=False)
    assert doubt is not None and "its keys match" in doubt
    assert _doubt((10, 0, 3, 3), keys=(12, 0, 1, 1), fires=False) is None


# -- late records --------------------------------------------------------------------------------


@pytest.mark.parametrize("step_ms", [5, 10])
@pytest.mark.parametrize("phase_ms", [0, 3, 1_000])
def test_first_window_of_record_ends_soonest_after_record_timestamp(
    step_ms: int, phase_ms: int
) -> None:
    ends = [phase_ms + step_ms * number for number in range(-500, 500)]
    for time_ms in range(-30, 60):
        expected = min(end for end in ends if end > time_ms)
        assert WindowGrid(step_ms, phase_ms).first_end(time_ms) == expected
    assert WindowGrid(step_ms, None).first_end(7) == 7 + step_ms


def test_late_records_message_suggests_sufficient_delay() -> None:
    late = LateRecords(4, 0, 1_835, ("orders-0 at 17", "orders-1 at 3", "orders-1 at 9"))
    text = late.message()
    assert "delay (withWatermark) of 0 ms" in text and "a delay of 1835 ms accepts all" in text
    assert "for 4 records (orders-0 at 17, orders-1 at 3, orders-1 at 9, …);" in text


# -- patterns ------------------------------------------------------------------------------------


def test_wrong_keys_are_grouped_by_difference() -> None:
    groups: list[tuple[dict[str, object], int]]
    groups = [({"count": 1, "sum": -17}, 12), ({"count": -42, "sum": None}, 1)]
    assert describe_differences(groups) == ("count +1, sum -17 in 12 keys; count -42 in 1 key")


def test_hour_is_reported_if_its_record_count_explains_difference_between_counts() -> None:
    """If Spark uses a different time zone, the last hour's records are counted for the next day."""
    counts = {0: 51, 22: 40, 23: 42}
    assert describe_hours(counts, -42) == (
        "00h 51, 22h 40, 23h 42; hours with as many records as the difference of the count "
        "(-42): 23h"
    )
    assert describe_hours(counts, 7) == describe_hours(counts, None) == "00h 51, 22h 40, 23h 42"
