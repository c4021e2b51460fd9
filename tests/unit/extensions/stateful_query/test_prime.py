"""Check casts, field matching, and refusals of priming without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from migrate.extensions.stateful_query.state_proof import StateProof
from migrate.extensions.stateful_query.transfer.exact_cast import may_be_cast
from migrate.extensions.stateful_query.transfer.filled_state import check_shared
from migrate.extensions.stateful_query.transfer.flat_state import Field, only_operator
from migrate.extensions.stateful_query.transfer.origin import StateOrigin, contradictions
from migrate.extensions.stateful_query.transfer.prime import prime
from migrate.extensions.stateful_query.transfer.proof import match_values, value_orders
from migrate.extensions.stateful_query.transfer.rows import StateRows
from migrate.extensions.stateful_query.transfer.spark_state import operator_of, stored_schemas
from migrate.extensions.stateful_query.transfer.spread import AggregateValue, group_by_column
from migrate.extensions.stateful_query.transfer.watermark import check_watermark, priming_warnings
from migrate.extensions.stateful_query.transfer.windows import FiredWindows
from migrate.model.errors import Refused, UsageError
from migrate.spark.session import summarize_failure
from tests.support.checkpoints import splits, write_source
from tests.support.clock import replace_sleep
from tests.support.recorded_flink import recorded_flink

(SAVEPOINT,) = (Path(__file__).parents[3] / "golden" / "stateful").glob("savepoint-*")
_LONG, _STRING, _DOUBLE = LongType(), StringType(), DoubleType()


def _prime(checkpoint: Path, location: Path, **more: Any) -> None:
    """Call ``prime`` for a checkpoint with t-0 at 3. Without a refusal, it would need Spark."""
    unread = cast(Any, None)
    rows = StateRows(unread, unread, (), origin=StateOrigin(str(checkpoint), "", "", False))
    starts = {("t", 0): 3}
    prime(unread, [rows], positions=starts, checkpoint_location=str(location), **more)


def test_prime_refuses_checkpoint_if_newer_checkpoint_exists(tmp_path: Path) -> None:
    """Regression: `prime` did not check whether the job had stopped."""
    chk = write_source(tmp_path / "job" / "chk-7", {0: splits("t", [3])})
    write_source(tmp_path / "job" / "chk-8", {0: splits("t", [4])})
    with pytest.raises(
        Refused, match="the newer complete checkpoint chk-8 is in the same directory"
    ):
        _prime(chk, tmp_path / "query")
    assert not (tmp_path / "query").exists()


def test_prime_waits_for_newer_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: `prime` wrote a location while the job was running."""
    chk = write_source(tmp_path / ("a" * 32) / "chk-7", {0: splits("t", [3])})
    waits = list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        write_source(chk.with_name("chk-8"), {0: splits("t", [4])})

    replace_sleep(monkeypatch, sleep)
    with pytest.raises(Refused, match="the job kept running; it has completed chk-8"):
        _prime(chk, tmp_path / "query")
    assert len(waits) == 1
    assert not (tmp_path / "query").exists()


def test_prime_refuses_running_job(tmp_path: Path) -> None:
    """Regression: `prime` did not query the JobManager."""
    with recorded_flink() as (flink, url):
        job = tmp_path / flink.reading
        chk = write_source(job / "chk-7", {0: splits("t", [3])})
        with pytest.raises(Refused, match=f"Flink lists job {flink.reading}"):
            _prime(chk, tmp_path / "query", flink_rest=url)
    assert not (tmp_path / "query").exists()


def test_files_that_spark_wrote_on_another_machine_are_refused(tmp_path: Path) -> None:
    """Regression: `prime` raised a FileNotFoundError for "offsets/0"."""
    (tmp_path / "here" / "offsets").mkdir(parents=True)
    check_shared(tmp_path / "here")
    with pytest.raises(Refused) as refused:
        check_shared(tmp_path / "elsewhere")
    assert refused.value.codes == ["files-not-shared"]


def _struct(type_: DataType) -> StructType:
    return StructType([StructField("a", type_)])


@pytest.mark.parametrize(
    ("own", "target", "told"),
    [
        (_LONG, _LONG, True),
        (_LONG, IntegerType(), True),
        (_STRING, DecimalType(10, 2), True),
        (_DOUBLE, _LONG, True),
        (NullType(), TimestampType(), True),
        (TimestampType(), TimestampType(), True),
        (_struct(_LONG), StructType([StructField("b", IntegerType())]), True),
        (ArrayType(_LONG), ArrayType(_STRING), True),
        # Regression: Casting back restored these values, so the casts were accepted as exact.
        (_LONG, TimestampType(), False),
        (FloatType(), _DOUBLE, False),
        (_struct(FloatType()), _struct(_DOUBLE), False),
        (ArrayType(FloatType()), ArrayType(_DOUBLE), False),
        (TimestampNTZType(), TimestampType(), False),
        (DateType(), TimestampType(), False),
        (TimestampType(), _STRING, False),
        (_struct(_LONG), StructType(), False),
    ],
)
def test_cast_is_allowed_only_if_casting_back_proves_that_it_is_exact(
    own: DataType, target: DataType, told: bool
) -> None:
    assert may_be_cast(own, target) is told


_COUNT, _SUM = AggregateValue("count"), AggregateValue("sum", "a")
_OF_A = AggregateValue("count", "a")
_AVERAGE = [AggregateValue(kind, "a", in_average=True) for kind in ("sum", "count")]


def _fields(*names: str) -> list[Field]:
    """Return fields with these names. ``sum*`` is the sum of an average."""
    return [Field(name.rstrip("*"), _LONG, name.endswith("*")) for name in names]


@pytest.mark.parametrize(
    ("told", "fields", "places"),
    [
        ([_COUNT, _SUM], _fields("sum", "count"), [1, 0]),
        ([_COUNT, _OF_A], _fields("count", "count"), [0, 1]),
        ([_COUNT, _SUM, *_AVERAGE], _fields("count", "sum", "sum*", "count*"), [0, 1, 2, 3]),
        ([_COUNT, _SUM, *_AVERAGE], _fields("sum*", "count*", "sum", "count"), [2, 3, 1, 0]),
        ([_COUNT, _SUM, *_AVERAGE], _fields("sum", "count", "sum*", "count*"), [1, 0, 2, 3]),
        ([], [], []),
    ],
)
def test_prime_matches_each_field_with_its_own_value(
    told: list[AggregateValue], fields: list[Field], places: list[int]
) -> None:
    assert match_values(told, fields) == places


@pytest.mark.parametrize("kind", ["min", "max"])
def test_sum_of_column_with_minimum_or_maximum_requires_count(kind: str) -> None:
    """One row cannot have both values. Without a count, the required number of rows is unknown."""
    values = [_SUM, AggregateValue(kind, "a")]
    with pytest.raises(UsageError, match=r"^a bigint: .* pass `count` or `counts`"):
        group_by_column({"a": _LONG}, values)
    for count in (_COUNT, _OF_A, _AVERAGE[1]):
        assert group_by_column({"a": _LONG}, [count, *values])


@pytest.mark.parametrize(
    ("values", "orders"),
    [
        ([], [[]]),
        ([_COUNT, _SUM, *_AVERAGE], [[0, 1, 2, 3]]),
        ([_OF_A, _OF_A, _SUM], [[0, 1, 2]]),
        ([_COUNT, _OF_A, _OF_A, _SUM], [[0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 0, 3]]),
    ],
)
def test_prime_tries_record_count_at_every_position_among_counts(
    values: list[AggregateValue], orders: list[list[int]]
) -> None:
    """Spark uses the field name ``count`` for every count.

    The position of ``count(*)`` is therefore unknown.
    """
    assert [list(order) for order in value_orders(values)] == orders


@pytest.mark.parametrize(
    ("told", "fields"),
    [
        ([_COUNT], _fields("count", "count")),
        ([_COUNT, _SUM], _fields("count", "sum", "sum*", "count*")),
        ([_COUNT, _SUM], _fields("sum*", "count*")),
        (_AVERAGE, _fields("sum", "count")),
        ([_COUNT], []),
        # The fields do not show which ones belong to the average.
        ([_COUNT, _SUM, *_AVERAGE], _fields("sum", "count", "sum", "count")),
    ],
)
def test_prime_refuses_values_and_fields_without_unique_match(
    told: list[AggregateValue], fields: list[Field]
) -> None:
    with pytest.raises(Refused) as refused:
        match_values(told, fields)
    assert refused.value.codes == ["fields-differ"]
    facts = refused.value.facts[0]
    assert facts["values"] == list(map(str, told))
    assert list(facts["fields"]) == (list(map(str, fields)) or ["none"])


def test_error_of_python_worker_includes_cause() -> None:
    """Regression: The message was only "An exception was thrown from the Python worker"."""
    message = (
        "An exception was thrown from the Python worker. Please see the stack trace below.\n"
        'Traceback (most recent call last):\n  File "arrow.py", line 152, in _batch_of\n'
        "migrate.extensions.keyed_state.arrow.DoesNotFit: state 'seen': keys could become equal\n"
    )
    cause = "migrate.extensions.keyed_state.arrow.DoesNotFit: state 'seen': keys could become equal"
    assert summarize_failure(message).endswith(f"below.; {cause}")


def test_proof_by_sampling_reports_unchecked_keys() -> None:
    """Regression: A proof by sampling reported no unexpected keys, but had not checked for them."""
    sample = StateProof(7, 0, 0, None)
    told = (
        "7 matching keys, 0 different, 0 missing; keys that are only in Spark's state were "
        "not checked"
    )
    assert (str(sample), sample.is_right) == (told, True)
    whole = StateProof(7, 0, 0, 0)
    assert str(whole) == "7 matching keys, 0 different, 0 missing, 0 not in Flink's state"
    assert not StateProof(7, 0, 0, 1).is_right and not StateProof(7, 1, 0, None).is_right


def _rows(first_end: int | None, fired: FiredWindows) -> list[StateRows]:
    nothing = cast("Any", None)
    return [StateRows(nothing, nothing, ("a",), first_end=first_end, fired=fired)]


@pytest.mark.parametrize("first_end", [0, 100])
def test_pending_windows_set_upper_bound_of_watermark(first_end: int) -> None:
    rows = _rows(first_end, FiredWindows())
    check_watermark(True, first_end - 1, rows)
    with pytest.raises(Refused) as refused:
        check_watermark(True, first_end, rows)
    assert refused.value.codes == ["watermark-too-high"]
    assert refused.value.facts[0]["window_end"] == first_end
    with pytest.raises(UsageError, match=f"that Flink still stores ends at {first_end}"):
        check_watermark(True, None, rows)


def test_fired_windows_set_lower_bound_of_watermark() -> None:
    rows = _rows(100, FiredWindows(3, 90))
    check_watermark(True, 90, rows)
    with pytest.raises(Refused) as refused:
        check_watermark(True, 89, rows)
    assert refused.value.codes == ["watermark-too-low"]
    assert refused.value.facts[0] == {"watermark_ms": 89, "window_end": 90}
    assert any("for 3 fired windows" in told for told in priming_warnings(rows, 90))


def test_watermark_without_pending_window_triggers_warning() -> None:
    (warning,) = priming_warnings(_rows(None, FiredWindows()), 5)
    assert "Flink stores no pending window" in warning and "drops records" in warning
    assert list(priming_warnings(_rows(None, FiredWindows()), None)) == []


@pytest.mark.parametrize(
    ("starts", "problems"),
    [
        ([{("events", 0): 350, ("events", 1): 365}], []),
        ([{("another", 0): 1}], []),
        ([{("events", 0): 350, ("events", 1): 365, ("events", 2): 0}], []),
        (
            [{("events", 0): 351, ("events", 1): 365}],
            [("start-differs-from-savepoint", "events-0", [351], [350])],
        ),
        ([{("events", 0): 350}], [("start-missing", "events-1", None, [365])]),
        (
            [{("events", 0): 350, ("events", 1): 365}, {("events", 0): 1}],
            [("start-differs-from-savepoint", "events-0", [1, 350], [350])],
        ),
    ],
)
def test_prime_requires_positions_of_same_savepoint_as_rows(
    starts: list[dict[tuple[str, int], int]], problems: list[tuple[Any, ...]]
) -> None:
    """In the savepoint, events-0 is at 350 and events-1 is at 365."""
    found = [
        (refusal.code, *(refusal.facts.get(name) for name in ("partition", "starts", "offsets")))
        for refusal in contradictions([StateOrigin(str(SAVEPOINT), "", "", False), None], starts)
    ]
    assert found == problems


def _named(**fields: DataType) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in fields.items()])


@pytest.mark.parametrize(
    ("key", "value", "operator"),
    [
        (_named(user=_LONG), _named(count=_LONG, sum=_LONG), "stateStoreSave"),
        (_named(id=_STRING), _named(__dummy__=NullType()), "dedupe"),
        (_named(id=_STRING), _named(expiresAtMicros=_LONG), "dedupeWithinWatermark"),
        (
            _named(user=_LONG, sessionStartTime=TimestampType()),
            _named(user=_LONG, session_window=_STRING, count=_LONG),
            "sessionWindowStateStoreSaveExec",
        ),
        (_named(key=NullType()), _named(value=_LONG), "globalLimit"),
        (_named(user=_LONG), _named(groupState=_LONG), "flatMapGroupsWithState"),
    ],
)
def test_operator_of_spark_3_5_is_identified_by_state_schema(
    tmp_path: Path, key: StructType, value: StructType, operator: str
) -> None:
    """In Spark 3.5, the checkpoint location contains state schemas, but no operator names."""
    path = tmp_path / "schema"
    told = _java_utf("v2")
    for one in (key, value):
        text = one.json()
        told += (2).to_bytes(4, "big") + _java_utf(text[:5]) + _java_utf(text[5:])
    path.write_bytes(told)
    found = stored_schemas(path)
    assert (found, operator_of(*found)) == ((key, value), operator)
    path.write_bytes(_java_utf("v3"))
    with pytest.raises(Refused) as refused:
        stored_schemas(path)
    assert refused.value.codes == ["state-schema-version-unknown"]
    assert refused.value.facts[0] == {"path": str(path), "version": "v3"}


def _java_utf(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def test_prime_refuses_join_with_single_state_store() -> None:
    """A join in state format 3 (Spark 4.1) has one state store.

    The name of its operator is unchanged.
    """
    with pytest.raises(Refused) as refused:
        only_operator(["symmetricHashJoin"])
    assert refused.value.codes == ["join-state"]
