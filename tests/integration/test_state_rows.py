"""Compare rows built from state with Spark's own state, without Flink and Kafka.

The state has the form of ``flink_state`` rows. Every refused case once passed as correct.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType
from pyspark.version import __version__ as pyspark_version

import migrate
from migrate.extensions.stateful_query.rehearsal.report import _describe_differences
from migrate.extensions.stateful_query.transfer.flat_state import Field, SparkState
from migrate.extensions.stateful_query.transfer.proof import compare, compare_with_expected
from migrate.extensions.stateful_query.transfer.rounding import Rounding
from migrate.extensions.stateful_query.transfer.spark_state import (
    is_before_4,
    read_spark_state,
    temporary_setting,
)
from migrate.extensions.stateful_query.transfer.verify_state import _expected, verify_state
from migrate.spark import (
    FlinkStateDataSource,
    StateProof,
    StateRows,
    aggregate_rows,
    prime,
    read_keyed_state,
    seen_rows,
)
from tests.support.command import migrate as command
from tests.support.keyed_checkpoint import OPERATOR, write_seen_instants
from tests.support.reasons import refused
from tests.support.spark import Spark, process_environment
from tests.support.stateful_job import totals_processor

pytestmark = pytest.mark.integration

SCHEMA = "user BIGINT, amount BIGINT, price DECIMAL(10,2), id STRING, at TIMESTAMP"
(SAVEPOINT,) = (Path(__file__).parents[1] / "golden" / "stateful").glob("savepoint-*")
(LATE,) = (SAVEPOINT.parents[1] / "state/2.2/windows/canonical").glob("savepoint-*")
START = 1_700_000_000_000

Query = Callable[[DataFrame], DataFrame]


@pytest.fixture(scope="module")
def session(spark: Spark) -> SparkSession:
    spark.session.dataSource.register(FlinkStateDataSource)
    return spark.session


@pytest.fixture
def primed(tmp_path: Path) -> Any:
    """Return a function that primes a query of one stream."""

    def run(query: Query, rows: StateRows | DataFrame, **arguments: Any) -> StateProof:
        arguments = {"positions": {("events", 0): 1}, "output_mode": "update", **arguments}
        return prime(
            query, [rows], checkpoint_location=str(tmp_path / "checkpoint"), **arguments
        ).proof

    return run


def by_user(*aggregates: str) -> Query:
    """Return a query with SQL aggregates, because no Spark is running during test collection."""
    return lambda events: events.groupBy("user").agg(*map(F.expr, aggregates))


# -- values in the rows and in Spark's state ------------------------------------------------------


def test_prime_confirms_averages_decimals_minima_and_maxima(
    session: SparkSession, primed: Any
) -> None:
    """If all values are NULL, Spark stores the DECIMAL sum 0 and a flag for an empty sum."""
    state = session.createDataFrame(
        [
            (1, 3, 60, 3, 12.34, 5, 40),
            (2, 2, -7, 1, None, -7, -7),
            (3, 4, None, 0, 0.0, None, None),
        ],
        "key BIGINT, n BIGINT, total BIGINT, given BIGINT, price DOUBLE, least BIGINT, most BIGINT",
    )
    rows = aggregate_rows(
        state,
        SCHEMA,
        keys={"user": "key"},
        count="n",
        averages={"amount": ("total", "given")},
        sums={"price": "CAST(price AS DECIMAL(38,2))"},
        minima={"amount": "least"},
        maxima={"amount": "most"},
    )
    query = by_user("count(*)", "sum(price)", "avg(amount)", "min(amount)", "max(amount)")
    assert primed(query, rows).right == 3


def test_verification_confirms_average_of_decimals(
    session: SparkSession, primed: Any, tmp_path: Path
) -> None:
    """Regression: `migrate` could not verify the state of a query that it had primed.

    For an average of decimals, Spark stores the sum 10.01 as 1001.0.
    """
    state = session.sql("SELECT 1L key, CAST(10.01 AS DECIMAL(38,2)) total, 3L n")
    rows = aggregate_rows(state, SCHEMA, keys={"user": "key"}, averages={"price": ("total", "n")})
    assert primed(by_user("avg(price)"), rows).right == 1
    spark_state = read_spark_state(session, tmp_path / "checkpoint", 0, tmp_path / "work")
    flink = state.selectExpr("key", "named_struct('f0', total, 'f1', n) value")
    assert compare(spark_state, _expected(flink, None, spark_state)).proof.right == 1


@pytest.mark.parametrize("digits", [28, 38])
@pytest.mark.parametrize("total", ["0.123456789012345678", "-12345678901.000000000000000001"])
def test_every_digit_of_decimal_is_preserved(
    session: SparkSession, primed: Any, digits: int, total: str
) -> None:
    """With Spark's own division, the quotient would have only six decimal places."""
    state = session.sql(f"SELECT 1L key, 3L n, CAST('{total}' AS DECIMAL(38,18)) total")
    schema = f"user BIGINT, price DECIMAL({digits},18)"
    rows = aggregate_rows(state, schema, keys={"user": "key"}, count="n", sums={"price": "total"})
    assert primed(by_user("count(*)", "sum(price)"), rows).right == 1


@pytest.mark.parametrize("type_", ["DECIMAL(8,2)", "DECIMAL(8,8)", "DECIMAL(8,0)"])
def test_prime_confirms_decimal_sum_stored_as_unscaled_bigint(
    session: SparkSession, primed: Any, type_: str
) -> None:
    """For up to 8 digits, Spark adds BIGINTs, such as 1234 for 12.34 (rule DecimalAggregates)."""
    told = {"DECIMAL(8,2)": "12.34", "DECIMAL(8,8)": "0.12345678", "DECIMAL(8,0)": "12"}[type_]
    state = session.sql(f"SELECT 1L key, 3L n, CAST({told} AS DECIMAL(38,8)) total")
    schema = f"user BIGINT, price {type_}"
    rows = aggregate_rows(state, schema, keys={"user": "key"}, count="n", sums={"price": "total"})
    assert primed(by_user("count(*)", "sum(price)"), rows).right == 1


def test_comparison_accepts_decimal_sum_stored_as_unscaled_bigint(session: SparkSession) -> None:
    """The 1234 in Spark's state equals the 12.34 in Flink's state."""
    flink = session.sql("SELECT 1L key, CAST(12.34 AS DECIMAL(38,2)) value")
    spark = session.sql("SELECT 1L k0, 1234L v0")
    keys, values = (Field("user", LongType()),), (Field("sum", LongType()),)
    found = SparkState("stateStoreSave", spark, keys, False, values)
    assert compare(found, _expected(flink, None, found)).proof.right == 1
    told = _expected(flink, "key, value * 100", found)  # values from `expect` are not scaled
    assert compare(found, told).proof.right == 1


def test_expected_values_are_cast_only_without_rounding(session: SparkSession) -> None:
    """Regression: The comparison of an INT with a BIGINT failed.

    A FLOAT is still refused, because its cast to BIGINT can round.
    """
    keys, values = (Field("user", LongType()),), (Field("sum", LongType()),)
    found = SparkState("stateStoreSave", session.sql("SELECT 1L k0, 5L v0"), keys, False, values)
    expected = session.sql("SELECT 1 user, CAST(5 AS DECIMAL(5,1)) total")
    assert compare_with_expected(found, [], expected).proof.right == 1
    for wrong in (expected.selectExpr("CAST(user AS FLOAT)", "total"), expected.select("user")):
        with pytest.raises(
            migrate.UsageError, match=r"^(user has type float|`expected` has 1 col)"
        ):
            compare_with_expected(found, [], wrong)


def test_empty_state_is_refused(session: SparkSession, primed: Any) -> None:
    """Regression: The user's filter removed all rows, and the query was primed with 0 keys."""
    state = session.createDataFrame([(1, 3)], "key BIGINT, n BIGINT").where("key > 1")
    rows = aggregate_rows(state, SCHEMA, keys={"user": "key"}, count="n")
    with refused("no-key-in-rows"):
        primed(by_user("count(*)"), rows)


def test_prime_refuses_sum_with_too_many_digits(session: SparkSession, primed: Any) -> None:
    state = session.sql("SELECT 1L key, 3L n, CAST('1e15' AS DECIMAL(38,18)) total")
    schema = "user BIGINT, price DECIMAL(38,18)"
    rows = aggregate_rows(state, schema, keys={"user": "key"}, count="n", sums={"price": "total"})
    with pytest.raises(migrate.Refused, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        primed(by_user("count(*)", "sum(price)"), rows)


def test_prime_supports_aggregate_without_keys(session: SparkSession, primed: Any) -> None:
    state = session.createDataFrame([(12, 345)], "n BIGINT, total BIGINT")
    rows = aggregate_rows(state, SCHEMA, keys={}, count="n", sums={"amount": "total"})

    def query(events: DataFrame) -> DataFrame:
        return events.groupBy().agg(F.count("*"), F.sum("amount"))

    assert primed(query, rows).right == 1


@pytest.mark.parametrize(
    ("query", "told"),
    [
        # Each was reported as right by its one value, although the other value was not compared.
        (by_user("count(*)", "count(amount)"), {"count": "n", "sums": {"amount": "total"}}),
        (by_user("sum(amount)", "sum(abs(amount))"), {"sums": {"amount": "total"}}),
        (by_user("count(*)", "avg(amount)"), {"count": "n", "sums": {"amount": "total"}}),
    ],
    ids=["counts", "sums", "average"],
)
def test_prime_refuses_query_if_rows_lack_column_for_an_aggregate(
    session: SparkSession, primed: Any, query: Query, told: dict[str, Any]
) -> None:
    """For example, the query has two counts, but the rows have a column for only one of them."""
    state = session.createDataFrame([(1, 3, 60)], "key BIGINT, n BIGINT, total BIGINT")
    rows = aggregate_rows(state, SCHEMA, keys={"user": "key"}, **told)
    with refused("fields-differ"):
        primed(query, rows)


@pytest.mark.parametrize(
    "aggregates", [*permutations(("sum(amount)", "count(*)", "avg(amount)"))], ids=", ".join
)
def test_averages_are_recognized_in_any_order_of_aggregates(
    session: SparkSession, primed: Any, aggregates: tuple[str, ...]
) -> None:
    """Regression: An adjacent sum and count were mistaken for an average, and refused."""
    state = session.createDataFrame([(1, 3, 60), (2, 1, 7)], "key BIGINT, n BIGINT, total BIGINT")
    rows = aggregate_rows(
        state,
        SCHEMA,
        keys={"user": "key"},
        count="n",
        sums={"amount": "total"},
        averages={"amount": ("total", "n")},
    )
    assert primed(by_user(*aggregates), rows).right == 2


def test_adjacent_sum_and_count_are_not_mistaken_for_average(
    session: SparkSession, primed: Any
) -> None:
    """The query stores a sum and a count, but the rows contain an average."""
    state = session.createDataFrame([(1, 3, 60)], "key BIGINT, n BIGINT, total BIGINT")
    rows = aggregate_rows(state, SCHEMA, keys={"user": "key"}, averages={"amount": ("total", "n")})
    with refused("fields-differ") as error:
        primed(by_user("sum(amount)", "count(amount)"), rows)
    assert error.value.facts[0]["fields"] == ["sum bigint", "count bigint"]


def test_count_of_each_column_is_compared_separately(session: SparkSession, primed: Any) -> None:
    """The query counts all records, the amounts, and the prices."""
    state = session.createDataFrame([(1, 5, 3, 1)], "key BIGINT, n BIGINT, a BIGINT, p BIGINT")
    query = by_user("count(*)", "count(amount)", "count(price)")

    def rows(price: str) -> StateRows:
        counts = {"amount": "a", "price": price}
        return aggregate_rows(state, SCHEMA, keys={"user": "key"}, count="n", counts=counts)

    with refused("state-differs"):
        primed(query, rows("n + 1"))  # higher than the number of records
    assert primed(query, rows("p")).right == 1


@pytest.mark.parametrize("place", [0, 1, 2])
def test_count_of_records_is_recognized_at_any_position(
    session: SparkSession, primed: Any, place: int
) -> None:
    """Regression: ``count(amount), count(*)`` was compared in reverse order, and refused."""
    state = session.createDataFrame(
        [(1, 5, 3, 1), (2, 4, 2, 2)], "key BIGINT, n BIGINT, a BIGINT, p BIGINT"
    )
    aggregates = ["count(amount)", "count(price)", "sum(amount)", "avg(price)"]
    aggregates.insert(place, "count(*)")

    def rows(records: str) -> StateRows:
        return aggregate_rows(
            state,
            SCHEMA,
            keys={"user": "key"},
            count=records,
            counts={"amount": "a", "price": "p"},
            sums={"amount": "n * 10"},
            averages={"price": ("CAST(7 AS DOUBLE)", "p")},
        )

    with refused("state-differs") as error:
        primed(by_user(*aggregates), rows("IF(key = 2, 1, n)"))  # lower than the number of amounts
    proof = error.value.facts[0]["proof"]
    assert (proof.right, proof.wrong) == (1, 1)
    assert primed(by_user(*aggregates), rows("n")).right == 2


@pytest.mark.parametrize(
    "told", [{"count": "n + 0.5"}, {"sums": {"price": "CAST(1.005 AS DECIMAL(10,3))"}}]
)
def test_value_requiring_rounding_is_refused(
    session: SparkSession, primed: Any, told: dict[str, Any]
) -> None:
    """For example, the value n + 0.5 is not a BIGINT, as a count must be."""
    state = session.createDataFrame([(1, 3)], "key BIGINT, n BIGINT")
    with pytest.raises((migrate.Refused, PySparkException), match="not exactly"):
        rows = aggregate_rows(state, SCHEMA, keys={"user": "key"}, **told)
        primed(by_user("count(*)" if "count" in told else "sum(price)"), rows)


@pytest.mark.parametrize(
    ("aggregate", "told", "message"),
    [
        ("sum(CAST(price AS DECIMAL(10,1)))", {"sums": {"price": "12.34BD"}}, "not exactly"),
        ("min(CAST(price AS DECIMAL(10,1)))", {"minima": {"price": "12.34BD"}}, "not exactly"),
        ("min(CAST(id AS INT))", {"minima": {"id": "'1.5'"}}, "not exactly"),
        ("min(CAST(at AS DATE))", {"minima": {"at": "TIMESTAMP '2026-01-02 03:04:05'"}}, " type "),
        # The query's sum overflows, but Flink's sum does not.
        ("sum(amount)", {"sums": {"amount": "10000000000000000000BD"}}, "not exactly"),
    ],
)
def test_value_rounded_by_query_is_refused(
    session: SparkSession,
    primed: Any,
    aggregate: str,
    told: dict[str, Any],
    message: str,
) -> None:
    """Spark's state contains a rounded value. The comparison does not also round Flink's value."""
    state = session.createDataFrame([(1, 2)], "key BIGINT, n BIGINT")
    rows = aggregate_rows(state, SCHEMA, keys={"user": "key"}, count="n", **told)
    with (
        temporary_setting(session, "spark.sql.ansi.enabled", "false"),
        pytest.raises((migrate.Refused, migrate.UsageError), match=message),
    ):
        primed(by_user("count(*)", aggregate), rows)


def test_hopping_and_session_windows_cannot_be_combined(session: SparkSession) -> None:
    state = session.createDataFrame(
        [(1, 2, (0, 10_000))], "key BIGINT, n BIGINT, w STRUCT<start: BIGINT, end: BIGINT>"
    )
    with pytest.raises(migrate.UsageError, match=r"`slide_ms` .* `session_gap_ms`"):
        aggregate_rows(
            state,
            SCHEMA,
            keys={"user": "key"},
            count="n",
            window="w",
            time="at",
            slide_ms=5_000,
            session_gap_ms=5_000,
        )


def test_floats_are_summed_as_doubles(session: SparkSession, primed: Any) -> None:
    state = session.createDataFrame([(1, 1)], "key BIGINT, n BIGINT")
    stream = "user BIGINT, price FLOAT"
    told: dict[str, Any] = {"sums": {"price": "0.1F"}, "averages": {"price": ("0.1F", "n")}}
    rows = aggregate_rows(state, stream, keys={"user": "key"}, count="n", **told)
    proof = primed(by_user("count(*)", "sum(price)", "avg(price)"), rows)
    assert (proof.right, proof.is_right) == (1, True)


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "stream"),
    [
        ("1700000000000L", "TIMESTAMP"),  # milliseconds, which Spark reads as seconds
        ("TIMESTAMP_NTZ '2024-01-01 00:00:00'", "TIMESTAMP"),  # in the session's time zone
        ("DATE '2024-01-01'", "TIMESTAMP"),
        ("TIMESTAMP '2024-01-01 00:00:00'", "STRING"),
        ("CAST(0.1 AS FLOAT)", "DOUBLE"),  # 0.10000000149011612
        ("named_struct('a', CAST(0.1 AS FLOAT))", "STRUCT<a: DOUBLE>"),
    ],
)
def test_key_with_inexact_cast_is_refused(session: SparkSession, state: str, stream: str) -> None:
    """For example, a FLOAT key from Flink can differ from the DOUBLE key in Spark."""
    with pytest.raises(migrate.UsageError, match=r"^user has type .* in Flink and .* in the"):
        seen_rows(session.sql(f"SELECT {state} key"), f"user {stream}", keys={"user": "key"})


# -- deduplication -------------------------------------------------------------------------------


def test_key_columns_are_matched_to_spark_key_by_name(session: SparkSession, primed: Any) -> None:
    """If a key has more than four columns, Spark stores them in the order of a hash set."""
    names = ["a", "b", "c", "d", "e", "f"]
    state = session.range(20).selectExpr(*(f"id * 10 + {n} {name}" for n, name in enumerate(names)))
    rows = seen_rows(
        state, ", ".join(f"{name} BIGINT" for name in names), keys={name: name for name in names}
    )

    def query(events: DataFrame) -> DataFrame:
        return events.dropDuplicates(names)

    assert primed(query, rows, output_mode="append").right == 20


def test_key_columns_whose_names_differ_from_spark_key_are_refused(
    session: SparkSession, primed: Any
) -> None:
    state = session.sql("SELECT 1L a, 2L b")
    rows = seen_rows(state, "a BIGINT, b BIGINT", keys={"a": "a", "b": "b"})

    def query(events: DataFrame) -> DataFrame:
        return events.selectExpr("b c", "a d").dropDuplicates(["c", "d"])

    with refused("key-names-differ") as error:
        primed(query, rows, output_mode="append")
    facts = {"spark_key": ["c bigint", "d bigint"], "flink_key": ("a", "b")}
    assert error.value.facts == [facts]


def test_verification_compares_columns_of_key_by_name(session: SparkSession) -> None:
    """If the columns of Flink's key have no names, an expression must specify their order."""
    spark = session.sql("SELECT 1L k0, 2L k1")
    keys = (Field("a", LongType()), Field("b", LongType()))
    found = SparkState("dedupe", spark, keys, False, ())
    flink = session.sql("SELECT named_struct('b', 2L, 'a', 1L) key")
    assert compare(found, _expected(flink, None, found)).proof.right == 1
    unnamed = session.sql("SELECT named_struct('f0', 2L, 'f1', 1L) key")
    with refused("key-names-differ") as error:
        _expected(unnamed, None, found)
    assert error.value.facts[0]["flink_key"] == ["f0", "f1"]
    assert compare(found, _expected(unnamed, "key.f1, key.f0", found)).proof.right == 1


def test_merged_keys_are_refused_unless_allowed(session: SparkSession, primed: Any) -> None:
    """Regression: 100 keys were "right", although an expression had merged them into ten."""
    state = session.range(100).selectExpr("id key")

    def query(events: DataFrame) -> DataFrame:
        return events.dropDuplicates(["user"])

    with refused("state-differs", "keys-merged") as error:
        primed(query, seen_rows(state, SCHEMA, keys={"user": "key % 10"}), output_mode="append")
    assert error.value.facts[1] == {"entries": 90}
    assert error.value.reasons[2] == 'merged: {"user":0}: 10 entries from Flink'
    rows = seen_rows(state, SCHEMA, keys={"user": "key % 10"}, merge_keys=True)
    proof = primed(query, rows, output_mode="append")
    assert (proof.right, proof.is_right) == (10, True)
    assert str(proof).endswith("; 100 entries compared, 90 of them merged into another entry's key")


(KEYS,) = (SAVEPOINT.parents[1] / "state/2.2/keys/canonical").glob("savepoint-*")


def _flinks_counts(key: str) -> dict[str, int]:
    """Return the entries of a state that Flink's own classes restored."""
    operators = json.loads((KEYS.parents[1] / "expected.json").read_text())
    (operator,) = [operator for operator in operators if operator["name"] == f"keyed by {key}"]
    (count,) = [state for state in operator["states"] if state["state"] == "count"]
    return {str(entry["key"]): entry["value"] for entry in count["entries"]}


@pytest.mark.parametrize(("key", "type_"), [("Double", "DOUBLE"), ("Float", "FLOAT")])
def test_minus_zero_and_zero_are_refused_as_merged_keys(
    session: SparkSession, primed: Any, tmp_path: Path, key: str, type_: str
) -> None:
    """Regression: The proof did not report that Spark merges Flink's keys -0.0 and 0.0.

    Such a merge now requires ``merge_keys``.
    """
    counts = _flinks_counts(f"java.lang.{key}")
    assert {"-0.0", "0.0"} <= counts.keys()
    operator = f"keyed by java.lang.{key}"
    state = read_keyed_state(session, str(KEYS), operator=operator, state="count")
    schema = f"measure {type_}, amount BIGINT"

    def query(events: DataFrame) -> DataFrame:
        return events.groupBy("measure").agg(F.count("*"))

    with pytest.raises(migrate.Refused) as error:
        primed(query, aggregate_rows(state, schema, keys={"measure": "key"}, count="value"))
    told = f"{len(counts) - 2} matching keys, 1 different, 1 missing, 0 not in Flink's state"
    entries = f"{len(counts)} of Flink's {len(counts)} entries compared"
    assert f"{told}; {entries}" in str(error.value.facts[0]["proof"])
    rows = aggregate_rows(state, schema, keys={"measure": "key"}, count="value", merge_keys=True)
    proof = primed(query, rows)
    assert (proof.right, proof.merged, proof.is_right) == (len(counts) - 1, 1, True)
    found = read_spark_state(session, tmp_path / "checkpoint", 0, tmp_path / "work").frame
    numbers = {str(row["k0"]): row["v0"] for row in found.collect()}
    assert numbers["0.0"] == counts["-0.0"] + counts["0.0"]

    verify = partial(
        verify_state,
        str(KEYS),
        str(tmp_path / "checkpoint"),
        operator,
        "count",
        expect=None,
        sample=None,
        conf={},
    )
    assert not verify().is_right
    for sample in (None, *range(1, len(counts) - 1)):
        # Regression: A sample with one of the two entries was reported as "1 wrong".
        proof = verify(merge_keys=True, sample=sample)
        assert (proof.right, proof.is_right) == (sample or len(counts) - 1, True), sample


def test_float_sum_matches_within_rounding_error_of_float(session: SparkSession) -> None:
    """Regression: A correct sum of FLOATs was reported as wrong.

    Flink adds FLOATs as FLOAT, but Spark adds them as DOUBLE. The test computes both sums with
    numpy.
    """
    numbers = np.random.default_rng(3).random(2_000, dtype=np.float32) * np.float32(100)
    by_flink = np.float32(0)
    for number in numbers:
        by_flink += number
    by_spark = float(numbers.astype(np.float64).sum())
    state = session.createDataFrame(
        [(1, float(by_flink), len(numbers))], "key BIGINT, total FLOAT, n BIGINT"
    )
    schema, sums = "user BIGINT, price FLOAT", {"price": "total"}
    rows = aggregate_rows(state, schema, keys={"user": "key"}, count="n", sums=sums)

    def proof(total: float) -> StateProof:
        fields = (Field("count", LongType()), Field("sum", DoubleType()))
        columns = "k0 BIGINT, v0 BIGINT, v1 DOUBLE"
        frame = session.createDataFrame([(1, len(numbers), total)], columns)
        keys = (Field("user", LongType()),)
        spark_state = SparkState("stateStoreSave", frame, keys, False, fields)
        rounding = Rounding(len(numbers))
        return compare_with_expected(spark_state, [rows], None, rounding).proof

    assert abs(by_spark - float(by_flink)) > 1e-3
    assert (proof(by_spark).right, proof(by_spark).rounded) == (1, 1)
    assert proof(by_spark + 100).wrong == 1


def test_ids_of_minus_zero_and_zero_stay_separate(session: SparkSession, primed: Any) -> None:
    """Spark's ``dropDuplicates`` stores both values."""
    counts = _flinks_counts("java.lang.Double")
    operator = "keyed by java.lang.Double"
    state = read_keyed_state(session, str(KEYS), operator=operator, state="count")
    rows = seen_rows(state, "measure DOUBLE", keys={"measure": "key"})
    proof = primed(lambda events: events.dropDuplicates(["measure"]), rows, output_mode="append")
    assert (proof.right, proof.entries, proof.held) == (len(counts),) * 3


def test_keys_with_nanoseconds_are_refused_or_merged(
    session: SparkSession, primed: Any, tmp_path: Path
) -> None:
    """Regression: 129 keys of Flink became 46, and all proofs reported "46 keys right, 0 missing".

    Spark stores microseconds, and the 129 instants have 46 different microseconds.
    """
    nanos = [1_700_000_000_000_000_000 + 1000 * (n % 46) + 7 * (n // 46) for n in range(129)]
    assert (len(set(nanos)), len({nano // 1000 for nano in nanos})) == (129, 46)
    savepoint = write_seen_instants(tmp_path / "savepoint", nanos)
    location = str(tmp_path / "checkpoint")

    def read(**options: Any) -> DataFrame:
        return read_keyed_state(session, str(savepoint), operator=OPERATOR, state="seen", **options)

    def query(events: DataFrame) -> DataFrame:
        return events.dropDuplicates(["at"])

    with pytest.raises(PySparkException, match="has nanoseconds"):
        seen_rows(read(), "at TIMESTAMP", keys={"at": "key"})
    rows = seen_rows(read(truncateKeys=True), "at TIMESTAMP", keys={"at": "key"})
    with pytest.raises(migrate.Refused, match="83 entries from Flink would have the same key"):
        primed(query, rows, output_mode="append")
    rows = seen_rows(read(truncateKeys=True), "at TIMESTAMP", keys={"at": "key"}, merge_keys=True)
    proof = primed(query, rows, output_mode="append")
    assert (proof.right, proof.entries, proof.held, proof.merged) == (46, 129, 129, 83)
    verify = partial(
        verify_state, str(savepoint), location, OPERATOR, "seen", expect=None, sample=None, conf={}
    )
    with pytest.raises(migrate.ServiceError, match="different keys could become equal"):
        verify()
    proof = verify(merge_keys=True)
    assert (proof.right, proof.entries, proof.held, proof.merged) == (46, 129, 129, 83)
    told = "46 matching keys, 0 different, 0 missing, 0 not in Flink's state; 129 of Flink's 129"
    assert str(proof).startswith(told)


def test_report_counts_records_per_hour_for_key_with_wrong_count(session: SparkSession) -> None:
    """Regression: The report only listed 100 offsets of the key's records, which showed no pattern.

    The key is a day. The job's day ends at 23:00, so Flink counts the 40 records of the last hour
    on the next day.
    """
    records = session.sql(
        "SELECT 'events' topic, 0 partition, id offset, id DIV 960 day, "
        "timestamp_millis(id * 90000) at FROM range(1920)"
    )
    day = "named_struct('day', 0L)"
    differences = session.sql(
        f"SELECT {day} key, named_struct('count', 920L, 'sum', 1000L) flink, "
        "named_struct('count', 960L, 'sum', 1000L) spark, 'wrong' verdict UNION ALL "
        "SELECT named_struct('day', 1L), named_struct('count', 1000L, 'sum', 7L), "
        "named_struct('count', 960L, 'sum', 7L), 'wrong'"
    )
    lines = list(_describe_differences(differences, [records], None))
    assert lines[0] == (
        "differences (Spark - Flink): count -40, sum +0 in 1 key; count +40, sum +0 in 1 key"
    )
    hours = [line for line in lines if "by the hour of at (UTC): 00h 40, 01h 40" in line]
    assert len(hours) == 2 and all(line.startswith("  960 records") for line in hours), lines
    assert "hours with as many records as the difference of the count (+40): 00h, 01h" in hours[0]


def test_key_with_one_correct_and_one_wrong_value_counts_as_wrong(session: SparkSession) -> None:
    spark = session.sql("SELECT 1L k0, 5L v0")
    found = SparkState(
        "stateStoreSave", spark, (Field("a", LongType()),), False, (Field("max", LongType()),)
    )
    flink = session.sql("SELECT 1L k0, 5L v0 UNION ALL SELECT 1L, 4L")
    proof = compare(found, flink).proof
    assert (proof.right, proof.wrong) == (0, 1)


def test_drop_duplicates_within_watermark_is_refused(session: SparkSession, primed: Any) -> None:
    """Spark stores an expiry time for each ID. IDs from the rows would expire immediately."""
    state = session.createDataFrame([("a",), ("b",)], "key STRING")

    def query(events: DataFrame) -> DataFrame:
        return events.withWatermark("at", "1 second").dropDuplicatesWithinWatermark(["id"])

    with refused("expected-state-unknown"):
        primed(
            query, seen_rows(state, SCHEMA, keys={"id": "key"}), output_mode="append",
            watermark_ms=START,
        )  # fmt: skip


def test_query_with_join_or_limit_is_refused(session: SparkSession, tmp_path: Path) -> None:
    seen = seen_rows(session.createDataFrame([("a",)], "key STRING"), SCHEMA, keys={"id": "key"})
    nothing = session.createDataFrame([], "other STRING")
    places = [{("one", 0): 1}, {("other", 0): 2}]
    asked: list[tuple[Any, str]] = [
        (lambda one, other: one.join(other, F.expr("id = other")), "join-state"),
        (lambda one, other: one.select("id").union(other).limit(5), "expected-state-unknown"),
    ]
    for query, code in asked:
        with refused(code):
            prime(
                query,
                [seen, nothing],
                positions=places,
                checkpoint_location=str(tmp_path / "checkpoint"),
            )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(pyspark_version < "4", reason="Spark 3 has no transformWithState")
def test_refusal_of_stateful_processor_suggests_initial_state(
    session: SparkSession, primed: Any
) -> None:
    """Regression: The message was Spark's own error, which asked for the option stateVarName."""
    state = session.createDataFrame([(1,)], "key BIGINT")
    processor = totals_processor()
    store, rocksdb = (
        "spark.sql.streaming.stateStore",
        "org.apache.spark.sql.execution.streaming.state",
    )
    with (
        temporary_setting(
            session, f"{store}.providerClass", f"{rocksdb}.RocksDBStateStoreProvider"
        ),
        refused("processor-state"),
    ):
        primed(
            lambda events: events.groupBy("user").transformWithStateInPandas(
                processor, "user BIGINT, n BIGINT, total BIGINT", "Update", "None"
            ),
            seen_rows(state, SCHEMA, keys={"user": "key"}),
        )


# -- windows -------------------------------------------------------------------------------------


def by_window(window: Any) -> Query:
    return lambda events: (
        events.withWatermark("at", "2 seconds").groupBy("user", window).agg(F.count("*"))
    )


def windows(session: SparkSession, **told: Any) -> StateRows:
    state = session.sql(
        f"SELECT 1L key, 2L n, named_struct('start', {START}L, 'end', {START + 10_000}L) namespace"
    )
    arguments = {"count": "n", "window": "namespace", "time": "at", **told}
    return aggregate_rows(state, SCHEMA, keys={"user": "key"}, **arguments)


def test_sums_of_doubles_in_hopping_windows_may_differ_by_rounding_error(
    session: SparkSession, tmp_path: Path
) -> None:
    """Regression: A correct state was refused, because the rows are differences of rounded sums."""
    at_random, sums = random.Random(5), dict[tuple[int, int], tuple[int, float]]()
    for _ in range(60):  # Flink's sums, in the order of arrival
        user, pane, price = at_random.randrange(3), at_random.randrange(8), at_random.gauss(0, 1e6)
        for start in {max(pane - 1, 0), pane}:
            count, total = sums.get((user, start), (0, 0.0))
            sums[user, start] = count + 1, total + price
    entries = [
        (user, (5_000 * start, 5_000 * start + 10_000), total, count)
        for (user, start), (count, total) in sums.items()
    ]
    ddl = "key BIGINT, namespace STRUCT<start: BIGINT, end: BIGINT>, total DOUBLE, n BIGINT"

    def query(events: DataFrame, price: str = "price") -> DataFrame:
        hops = events.withWatermark("at", "0 seconds").groupBy(
            F.window("at", "10 seconds", "5 seconds"), "user"
        )
        return hops.agg(F.count("*"), F.sum(F.expr(price)))

    rows = aggregate_rows(
        session.createDataFrame(entries, ddl),
        "user BIGINT, price DOUBLE, at TIMESTAMP",
        keys={"user": "key"},
        count="n",
        sums={"price": "total"},
        window="namespace",
        time="at",
        slide_ms=5_000,
    )

    def prime_with(query: Query, name: str) -> StateProof:
        return prime(
            query,
            [rows],
            positions={("t", 0): 0},
            checkpoint_location=str(tmp_path / name),
            watermark_ms=5_000,
        ).proof

    proof = prime_with(query, "right")
    assert proof.is_right and proof.right == len(sums) and proof.rounded
    with pytest.raises(migrate.Refused) as error:
        prime_with(partial(query, price="price + 0.001D"), "wrong")
    found = error.value.facts[0]["proof"]
    assert (error.value.codes[0], found.right, found.wrong) == ("state-differs", 0, len(sums))


def test_session_with_too_few_records_is_refused(session: SparkSession) -> None:
    """Regression: The query and the proof silently raised the count to the session's minimum.

    A session of 10 s with a gap of 3 s contains at least four records.
    """
    with refused("session-lacks-records") as error:
        windows(session, session_gap_ms=3_000)
    assert (error.value.facts[0]["records"], error.value.facts[0]["least"]) == (2, 4)
    assert windows(session, session_gap_ms=3_000, count="4").rows.count() == 4


def test_time_zone_of_spark_session_does_not_shift_windows(
    session: SparkSession, primed: Any
) -> None:
    name = "spark.sql.session.timeZone"
    before = session.conf.get(name) or ""
    session.conf.set(name, "America/St_Johns")
    try:
        rows = windows(session)
        (at,) = {row[0] for row in rows.rows.selectExpr("unix_millis(at)").collect()}
        assert at == START
        query = by_window(F.window("at", "10 seconds"))
        assert primed(query, rows, output_mode="append", watermark_ms=START).right == 1
        schema = SCHEMA.replace("at TIMESTAMP", "at TIMESTAMP_NTZ")
        with pytest.raises(migrate.UsageError, match=r"at has type TIMESTAMP_NTZ, .* use a T"):
            aggregate_rows(
                session.sql("SELECT 1L key, named_struct('start', 0L, 'end', 1L) w"),
                schema,
                keys={"user": "key"},
                window="w",
                time="at",
            )
    finally:
        session.conf.set(name, before)


def test_watermark_without_pending_window_triggers_warning(
    session: SparkSession, tmp_path: Path
) -> None:
    """Without a pending window, nothing limits the watermark.

    If it is too high, Spark drops valid records.
    """
    done = prime(
        by_window(F.window("at", "10 seconds")),
        [windows(session, count="0").rows],
        positions={("events", 0): 1},
        checkpoint_location=str(tmp_path / "checkpoint"),
        watermark_ms=START,
        expected=session.createDataFrame(
            [], "k BIGINT, w STRUCT<start: TIMESTAMP, end: TIMESTAMP>, n BIGINT"
        ),
    )
    told, empty = done.warnings
    assert told.endswith("[watermark]") and "drops" in told
    assert "starts with an empty state" in empty


# -- one savepoint -------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [False, True], ids=["data source", "function"])
def test_positions_of_different_savepoint_are_refused(
    session: SparkSession, primed: Any, function: bool
) -> None:
    """Regression: A record between the two savepoints was never counted."""
    options = {"operator": "totals", "state": "total"}
    state = (
        read_keyed_state(session, str(SAVEPOINT), **options)
        if function
        else session.read.format("flink_state").options(**options).load(str(SAVEPOINT))
    )
    rows = aggregate_rows(state.where("key > 0"), SCHEMA, keys={"user": "key"}, count="value.f0")
    with refused("start-differs-from-savepoint") as error:
        primed(by_user("count(*)"), rows, positions='{"events":{"0":351,"1":365}}')
    assert error.value.facts == [{"partition": "events-0", "starts": [351], "offsets": [350]}]


def test_rows_omit_fired_windows_kept_for_late_records(session: SparkSession) -> None:
    """Regression: The rows had all 12 windows of a savepoint, 11 of which Flink had fired.

    Spark would have fired them again.
    """
    state = read_keyed_state(session, str(LATE), operator="late", state="window-contents")
    rows = aggregate_rows(
        state, "name STRING, at TIMESTAMP", keys={"name": "key"}, window="namespace", time="at"
    )
    assert (rows.fired.number, rows.expected.count()) == (11, 1)
    assert (rows.fired.last_end, rows.first_end) == (1_700_000_072_000, 1_700_000_086_000)
    # If every window has fired, the rows would be empty.
    with refused("no-window-pending"):
        aggregate_rows(
            state.where("namespace.end <= 1700000072000"),
            "name STRING, at TIMESTAMP",
            keys={"name": "key"},
            window="namespace",
            time="at",
        )
    with refused("fired-windows-unknown"):
        told = state.selectExpr("key", "namespace AS of")
        aggregate_rows(
            told, "name STRING, at TIMESTAMP", keys={"name": "key"}, window="of", time="at"
        )


# -- leftovers of a run ---------------------------------------------------------------------------

_PLAIN = """
import logging
import sys

from pyspark.sql import SparkSession

from migrate.spark import aggregate_rows, prime, read_keyed_state, unexpired

savepoint, location, expiring = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.ui.showConsoleProgress", "false")
spark = builder.config("spark.sql.shuffle.partitions", 1).getOrCreate()
windows = read_keyed_state(spark, savepoint, operator="windows", state="window-contents")
rows = aggregate_rows(
    windows,
    "user BIGINT, at TIMESTAMP",
    keys={"user": "key"},
    count="value.f0",
    window="namespace",
    time="at",
)

def query(events):
    from pyspark.sql import functions as F

    groups = events.withWatermark("at", "2 seconds").groupBy(F.window("at", "10 seconds"), "user")
    return groups.agg(F.count("*"))

primed = prime(
    query,
    [rows],
    positions={("events", 0): 350, ("events", 1): 365},
    checkpoint_location=location,
    watermark_ms=1_700_000_030_000,
)
assert primed.warnings
state = read_keyed_state(spark, expiring, operator="kinds", state="lasting-value")
unexpired(state, ttl_ms=1, stopped_at_ms=1_900_000_000_000)
"""
(KINDS,) = (SAVEPOINT.parents[1] / "state/2.2/kinds/canonical").glob("savepoint-*")


def test_warnings_are_printed_once_in_plain_script(tmp_path: Path) -> None:
    """Regression: ``prime`` and ``unexpired`` logged warnings to a logger without a handler.

    A script without logging did not show them.
    """
    arguments = map(str, (SAVEPOINT, tmp_path / "query", KINDS))
    command_line = [sys.executable, "-c", _PLAIN, *arguments]
    environment = process_environment(tmp_path)
    done = subprocess.run(
        command_line, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    assert sum("36 matching keys, 0 different" in line for line in lines) == 1, lines
    for code in ("[watermark]", "[expired-state]"):
        told = [line for line in lines if line.endswith(code)]
        assert len(told) == 1 and told[0].startswith("warning: "), (code, lines)


_KILLED = """
import os, sys
from migrate.spark import prime, seen_rows
from tests.support.spark import Spark, process_environment

with Spark() as spark:
    state = spark.session.createDataFrame([("a",)], "key STRING")
    prime(
        lambda events: os._exit(9),
        [seen_rows(state, "id STRING", keys={"id": "key"})],
        positions={("events", 0): 1},
        checkpoint_location=sys.argv[1],
    )
"""


def test_leftover_directories_of_killed_prime_call_are_reported(
    session: SparkSession, primed: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next call of ``prime`` reports the directories but does not delete them."""
    location = tmp_path / "checkpoint"
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(location)], check=False)
    assert killed.returncode == 9
    left = sorted(tmp_path.iterdir())
    assert sorted(path.name.rpartition(".")[0] for path in left) == [
        ".checkpoint",
        ".checkpoint.rows",
    ]
    another = tmp_path / ".checkpoint2.12345678"
    another.mkdir()

    state = session.createDataFrame([("a",)], "key STRING")
    rows = seen_rows(state, SCHEMA, keys={"id": "key"})
    assert primed(lambda events: events.dropDuplicates(["id"]), rows, output_mode="append").right
    printed = [line for line in capsys.readouterr().out.splitlines() if "warning" in line]
    assert printed == [
        f"warning: the directory {path} belongs to another run that primed or read {location}; "
        "if that run is no longer active, remove the directory [unfinished-run]"
        for path in left
    ]
    assert sorted(tmp_path.iterdir()) == [*left, another, location]


def test_second_concurrent_prime_call_for_same_location_is_refused(
    session: SparkSession, tmp_path: Path
) -> None:
    """Regression: The second run failed with an OSError, "Directory not empty"."""
    location = tmp_path / "checkpoint"
    state = session.createDataFrame([("a",)], "key STRING")

    def run(query: Query) -> Any:
        rows = [seen_rows(state, SCHEMA, keys={"id": "key"})]
        positions = {("events", 0): 1}
        return prime(query, rows, positions=positions, checkpoint_location=str(location))

    def unseen(events: DataFrame) -> DataFrame:
        return events.dropDuplicates(["id"])

    def overtaken(events: DataFrame) -> DataFrame:
        run(unseen)  # stands for a concurrent process that finishes first
        return unseen(events)

    with pytest.raises(migrate.Refused, match="is already the checkpoint location of a query"):
        run(overtaken)
    with pytest.raises(migrate.Refused, match="is already the checkpoint location of a query"):
        run(unseen)
    assert list(tmp_path.iterdir()) == [location]


@pytest.mark.parametrize("window", [False, True], ids=["key", "key and window"])
def test_spark_state_with_format_version_1_is_compared(
    session: SparkSession, primed: Any, tmp_path: Path, window: bool
) -> None:
    """Regression: ``prime`` required a value for the key.

    In this format, Spark repeats the key in the value.
    """
    state = session.sql(
        f"SELECT id key, id + 1 n, id * 7 total, named_struct('start', {START}L, 'end', "
        f"{START + 10_000}L) namespace FROM range(5)"
    )
    query = by_user("count(*)", "sum(amount)")
    options: dict[str, Any] = {}
    windowed: dict[str, Any] = {}
    if window:
        windowed = {"window": "namespace", "time": "at"}
        options = {"watermark_ms": START}

        def query(events: DataFrame) -> DataFrame:
            events = events.withWatermark("at", "1 second")
            groups = events.groupBy(F.window("at", "10 seconds"), "user")
            return groups.agg(F.count("*"), F.sum("amount"))

    rows = aggregate_rows(
        state, SCHEMA, keys={"user": "key"}, count="n", sums={"amount": "total"}, **windowed
    )
    setting = "spark.sql.streaming.aggregation.stateFormatVersion"
    with temporary_setting(session, setting, "1"):
        assert primed(query, rows, **options).right == 5
    found = read_spark_state(session, tmp_path / "checkpoint", 0, tmp_path / "work")
    assert [field.name for field in found.values] == ["count", "sum"]
    assert [field.name for field in found.keys] == ["user"]


# -- verification --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "state"), [("kinds", "kinds/map"), ("windows", "late/window-contents")]
)
def test_state_with_several_entries_per_key_requires_expect_option(
    session: SparkSession, tmp_path: Path, folder: str, state: str
) -> None:
    """Regression: A map with 21 entries was reported as "14 keys right".

    The query deduplicates keys, so it stores one key for several entries of the map.
    """
    (savepoint,) = (SAVEPOINT.parents[1] / f"state/2.2/{folder}/canonical").glob("savepoint-*")
    operator, name = state.split("/")
    flink = read_keyed_state(session, str(savepoint), operator=operator, state=name)
    keys = flink.select("key").distinct().count()
    assert flink.count() > keys
    prime(
        lambda events: events.dropDuplicates(["k"]),
        [
            seen_rows(
                flink, flink.select("key").toDF("k").schema, keys={"k": "key"}, merge_keys=True
            )
        ],
        positions={("events", 0): 1},
        checkpoint_location=str(tmp_path / "query"),
    )
    verify = partial(
        verify_state, str(savepoint), str(tmp_path / "query"), operator, name, sample=None, conf={}
    )
    with pytest.raises(migrate.UsageError, match=r"expression for each column with expect$"):
        verify(expect=None)
    assert not verify(expect="key").is_right
    proof = verify(expect="key", merge_keys=True)
    assert (proof.right, proof.is_right) == (keys, True)


def _primed_query(location: Path, state: DataFrame) -> str:
    rows = aggregate_rows(state, SCHEMA, keys={"user": "key"}, count="n", sums={"amount": "total"})
    prime(
        by_user("count(*)", "sum(amount)"),
        [rows],
        positions='{"events":{"0":350,"1":365}}',
        checkpoint_location=str(location),
        output_mode="update",
    )
    return f"spark:{location}"


def test_verify_state_compares_savepoint_with_spark_state(
    session: SparkSession, tmp_path: Path
) -> None:
    """Compare all keys or a sample. Changed, missing, and unexpected keys are reported."""
    flink = read_keyed_state(session, str(SAVEPOINT), operator="totals", state="total")
    state = flink.selectExpr("key", "value.f0 n", "value.f1 total")
    right = _primed_query(tmp_path / "right", state)
    asked = ("verify-state", SAVEPOINT, right, "--state", "totals/total")
    before = tmp_path.stat().st_mtime_ns
    found = command(*asked)
    told = "40 matching keys, 0 different, 0 missing, 0 not in Flink's state; "
    told += "40 of Flink's 40 entries compared"
    assert (found.code, found.stdout.splitlines()[-1]) == (0, f"state totals/total: {told}")
    if not is_before_4(session):  # no file is created next to the location, which may be read-only
        assert tmp_path.stat().st_mtime_ns == before
    told = (
        "7 matching keys, 0 different, 0 missing; keys that are only in Spark's state were "
        "not checked; "
    )
    told += "7 of Flink's 40 entries compared"
    found = command(*asked, "--sample", "7")
    assert (found.code, found.stdout.splitlines()[-1]) == (0, f"state totals/total: {told}")
    # With --expect, the user specifies the expected key and values.
    assert command(*asked, "--expect", "key, value.f0, value.f1 + 1").code == 5
    found = command(*asked, "--expect", "key, value.f1")
    assert (found.code, "an expression for each column with --expect" in found.stderr) == (2, True)
    braces = "key, value.f0, value.f1 + length(regexp_extract('', '[0-9]{8}', 0))"
    assert command(*asked, "--expect", braces).code == 0
    for typo in ("key, value.f0,", "key, value.f0, valeu.f1"):
        found = command(*asked, "--expect", typo)
        assert (found.code, "--expect: " in found.stderr) == (2, True), found.stderr

    changed = "IF(key = 5, 105L, key) key", "n", "total + IF(key = 7, 1, 0) total"
    wrong = _primed_query(tmp_path / "wrong", state.where("key <> 3").selectExpr(*changed))
    found = command("verify-state", SAVEPOINT, wrong, "--state", "totals/total")
    assert found.code == 5
    told = "37 matching keys, 1 different, 2 missing, 1 not in Flink's state; "
    told += "40 of Flink's 40 entries compared"
    assert found.stdout.splitlines()[-1] == f"state totals/total: {told}"
    assert "not verified: the query's state differs from Flink's" in found.stderr


def test_verify_state_warns_if_query_stores_only_keys(
    session: SparkSession, tmp_path: Path
) -> None:
    """Regression: 40 counts and sums were "verified", but ``dropDuplicates`` stores only keys."""
    flink = read_keyed_state(session, str(SAVEPOINT), operator="totals", state="total")
    prime(
        lambda events: events.dropDuplicates(["user"]),
        [seen_rows(flink, SCHEMA, keys={"user": "key"})],
        positions='{"events":{"0":350,"1":365}}',
        checkpoint_location=str(tmp_path),
    )
    found = command("verify-state", SAVEPOINT, f"spark:{tmp_path}", "--state", "totals/total")
    assert "state totals/total: 40 matching keys, 0 different" in found.stdout
    (warning,) = [line for line in found.stderr.splitlines() if "[records-not-moved]" in line]
    assert "so records are not compared" in warning


@pytest.mark.parametrize("sample", [True, False])
def test_comparison_with_empty_flink_state_fails(session: SparkSession, sample: bool) -> None:
    """Regression: With a sample, an empty state was "verified", because no key was wrong."""
    nothing = session.createDataFrame([], "k0 BIGINT, v0 BIGINT")
    keys, values = (Field("user", LongType()),), (Field("count", LongType()),)
    full = session.sql("SELECT id k0, id v0 FROM range(3)")
    found = SparkState("stateStoreSave", full, keys, False, values)
    proof = compare(found, nothing, is_sample=sample).proof
    assert (proof.right, proof.unexpected, proof.is_right) == (0, 3, False)


def test_verify_state_refuses_query_that_was_not_primed(tmp_path: Path) -> None:
    """The checkpoint location contains only the start offsets that ``to-spark`` wrote."""
    seeded = tmp_path / "seeded"
    assert command("to-spark", SAVEPOINT, "--checkpoint-dir", seeded).code == 0
    found = command("verify-state", SAVEPOINT, f"spark:{seeded}", "--state", "totals/total")
    assert (found.code, "[unprimed-location]" in found.stderr) == (4, True)
    invalid = [
        (f"spark:{seeded}", "--state", "totals"),
        (f"spark:{seeded}", "--expect", "key"),
        (f"spark:{seeded}", "--state", "totals/total", "--sample", "0"),
        ("group:g", "--state", "totals/total", "-b", "127.0.0.1:1"),
    ]
    for arguments in invalid:
        assert command("verify-state", SAVEPOINT, *arguments).code == 2, arguments
