"""Read keyed state as tables of a real Spark, with the data source of Spark 4 and the function.

`python -m tests.support.spark_versions 4.1 pytest tests/integration/test_state_on_spark.py` runs
these tests with a different Spark version than .venv.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.version import __version__ as pyspark_version

import migrate
import migrate.spark
from decoder import DecodeError
from decoder.keyed_state import read_keyed_states
from migrate.extensions.keyed_state import views
from migrate.extensions.keyed_state.listing import state_row
from migrate.extensions.keyed_state.views import open_table, parse_state_options
from migrate.spark import read_keyed_state
from tests.golden.state.generate import STATE
from tests.golden.state.test_state_manifest import ENTRIES
from tests.support.command import migrate as command
from tests.support.keyed_checkpoint import write_totals
from tests.support.keyed_rows import assert_same_rows, expected_states
from tests.support.spark import Spark

pytestmark = pytest.mark.integration

WITH_DATA_SOURCE = find_spec("pyspark.sql.datasource") is not None
needs_data_source = pytest.mark.skipif(
    not WITH_DATA_SOURCE, reason=f"PySpark {pyspark_version} has no Python data sources"
)
_BY_NAME = {entry["name"]: entry for entry in ENTRIES}


@pytest.fixture(scope="module")
def session(spark: Spark) -> SparkSession:
    if WITH_DATA_SOURCE:
        spark.session.dataSource.register(migrate.spark.FlinkStateDataSource)
    return spark.session


@pytest.fixture(params=["data source", "function"])
def read(request: pytest.FixtureRequest, session: SparkSession) -> Any:
    """Return a reader with the data source, and one with the function, with the same arguments."""
    if request.param == "function":
        return lambda chk, **options: read_keyed_state(session, str(chk), **options)
    if not WITH_DATA_SOURCE:
        pytest.skip(f"PySpark {pyspark_version} has no Python data sources")
    return lambda chk, **options: load(session, chk, **options)


def load(session: SparkSession, chk: str | Path, **options: str) -> DataFrame:
    return session.read.format("flink_state").options(**options).load(str(chk))


def arrow(frame: DataFrame) -> pa.Table:
    if WITH_DATA_SOURCE:
        return frame.toArrow()
    collect: Any = frame._collect_as_arrow  # PySpark 3.5 has no toArrow
    return pa.Table.from_batches(collect())


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("2.2/composites/canonical", {"either", "map-value", "pojos"}),
        ("1.15/rocksdb/native", {"lasting-map", "list"}),  # RocksDB files
        ("1.20/rescaled-up/retained", {"map"}),  # several handles per subtask
        ("2.2/sql-rows/native", {"deduplicate-state"}),  # decimals, timestamps, nested rows
        ("1.20/avro/canonical", {"generic", "specific"}),
        ("1.20/types/canonical", {"big-decimal", "bytes", "instant", "sql-time"}),
    ],
)
def test_rows_match_state_restored_by_flink(
    session: SparkSession, name: str, states: set[str]
) -> None:
    """Read the rows with the data source, or with the function if Spark has no Python data sources.

    Flink's own classes restored the expected rows.
    """
    chk = STATE / _BY_NAME[name]["path"]
    expected = expected_states(_BY_NAME[name])
    assert states <= {state for _, state in expected}
    for (operator, state), told in expected.items():
        if state not in states or not told.get("entries"):
            continue
        options = {"operator": operator, "state": state}
        if WITH_DATA_SOURCE:
            frame = load(session, chk, **options)
        else:
            frame = read_keyed_state(session, str(chk), **options)
        assert_same_rows(arrow(frame), told["entries"])


def test_rows_of_session_windows_have_typed_columns(read: Any) -> None:
    """Read the rows with the data source and with ``read_keyed_state``."""
    entry = _BY_NAME["2.2/windows/canonical"]
    frame = read(STATE / entry["path"], operator="sessions", state="merging-window-set")
    window = "struct<start:bigint,end:bigint>"
    assert frame.schema.simpleString() == (
        f"struct<key_group:int,key:string,value:array<struct<f0:{window},f1:{window}>>>"
    )
    (row,) = frame.selectExpr("key", "value[0].f0.start AS start").collect()
    assert (row["key"], row["start"]) == ("key-2", 1700000084700)


def test_column_types_match_state_listing(session: SparkSession) -> None:
    """The DDL of each column is the type that `migrate state` prints."""
    for name in ("2.2/composites/canonical", "2.2/sql-rows/canonical", "1.20/avro/canonical"):
        chk = STATE / _BY_NAME[name]["path"]
        for state in read_keyed_states(chk).states:
            options = {"operator": state.operator_id, "state": state.name}
            fields = {
                field.name: field.dataType
                for field in read_keyed_state(session, str(chk), **options).schema.fields
            }
            told = state_row(state)
            for column, ddl in (("key", told.key_type), ("value", told.value_type)):
                assert (
                    session.sql(f"SELECT CAST(NULL AS {ddl}) AS it").schema["it"].dataType
                    == (fields[column])
                ), (state.name, ddl)


def test_states_view_matches_state_command(read: Any) -> None:
    """The view has the same rows as the JSON output of ``migrate state``."""
    entry = _BY_NAME["2.2/kryo/canonical"]
    chk = STATE / entry["path"]
    rows = [row.asDict() for row in read(chk, view="states").collect()]
    printed = json.loads(command("state", chk, "--format", "json").stdout)
    assert rows == printed["states"]
    assert {row["readable"] for row in rows} == {True, False}
    assert read(chk, view="states", operator="kryo").count() < len(rows)


def test_key_option_selects_single_key(read: Any) -> None:
    entry = _BY_NAME["2.2/kinds/canonical"]
    told = next(one for (_, state), one in expected_states(entry).items() if state == "map")
    key = told["entries"][0]["key"]
    wanted = sorted((one["map_key"], one["value"]) for one in told["entries"] if one["key"] == key)
    frame = read(STATE / entry["path"], state="map", key=str(key))
    assert sorted((row["map_key"], row["value"]) for row in frame.collect()) == wanted
    assert frame.count() == len(wanted)


def test_timers_view_matches_timers_restored_by_flink(read: Any) -> None:
    entry = _BY_NAME["2.2/windows/canonical"]
    frame = read(STATE / entry["path"], view="timers")
    told = {
        (operator, state, one["key"], one["value"], json.dumps(one.get("namespace")))
        for (operator, state), kept in expected_states(entry).items()
        if kept["kind"] == "timers"
        for one in kept["entries"]
    }
    found = {
        (row["operator_id"], row["state"], row["key"], row["value"], row["namespace"] or "null")
        for row in frame.collect()
    }
    assert told and found == told
    typed = read(STATE / entry["path"], view="timers", operator="tumbling")
    assert typed.schema["namespace"].dataType.simpleString() == "struct<start:bigint,end:bigint>"
    assert {row["name"] for row in typed.collect()} == {"TumblingEventTimeWindows"}


def test_large_state_is_split_into_many_tasks(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chk = write_totals(tmp_path / "savepoint-1", 3000)
    table = open_table(str(chk), parse_state_options({"state": "total"}))
    assert len(table.split()) == 1
    monkeypatch.setattr(views, "_CHUNK_BYTES", 50_000)
    frame = read_keyed_state(session, str(chk), state="total")
    assert 4 <= frame.rdd.getNumPartitions() <= 16
    sizes = frame.rdd.mapPartitions(lambda some: [sum(1 for _ in some)]).collect()
    assert sum(sizes) == 3000 and max(sizes) < 1500
    assert frame.selectExpr("sum(value)", "count(DISTINCT key)").collect() == [
        (sum(range(3000)), 3000)
    ]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "the option `state` is required"),
        ({"state": "x"}, "no keyed state 'x'"),
        (
            {"state": "count", "operator": "nobody"},
            "no operator with keyed state has the ID, name, or uid",
        ),
        ({"state": "window-contents"}, "choose one of these operators"),
        ({"view": "rows"}, "must be one of entries, states, timers"),
        ({"stat": "count"}, "unknown option stat; the options are operator, state, view"),
    ],
)
def test_invalid_state_options_are_reported(read: Any, options: dict[str, str], says: str) -> None:
    chk = STATE / _BY_NAME["2.2/windows/canonical"]["path"]
    with pytest.raises((PySparkException, migrate.MigrateError, DecodeError), match=says):
        read(chk, **options).collect()


def test_error_for_unreadable_state_contains_class_of_values(read: Any) -> None:
    chk = STATE / _BY_NAME["2.2/kryo/canonical"]["path"]
    with pytest.raises((PySparkException, DecodeError), match=r"testjobs\.Secret"):
        read(chk, state="secret").collect()


@needs_data_source
def test_state_data_source_refuses_user_schema_and_missing_path(session: SparkSession) -> None:
    chk = STATE / _BY_NAME["2.2/kinds/canonical"]["path"]
    reader = session.read.format("flink_state").schema("key STRING").option("state", "value")
    with pytest.raises(PySparkException, match="omit `schema`"):
        reader.load(str(chk)).collect()
    with pytest.raises(PySparkException, match="one path"):
        session.read.format("flink_state").option("state", "value").load().collect()
