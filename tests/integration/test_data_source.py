"""Read checkpoints as tables of a real Spark, with the data source of Spark 4 and the function.

`python -m tests.support.spark_versions 3.5 pytest tests/integration/test_data_source.py` runs these
tests with a different Spark version than .venv.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.version import __version__ as pyspark_version

import migrate.spark
from migrate.extensions.fleet.view_columns import VIEWS, CheckpointView
from migrate.extensions.fleet.write_tables import batches
from migrate.model.errors import UsageError
from migrate.spark import read_checkpoints, write_package
from tests.support import stores
from tests.support.checkpoints import splits, write_source
from tests.support.executors import make_bare_python, submit_driver
from tests.support.golden import GOLDEN, WRITTEN_BY_FLINK, ExpectedPosition, positions_of
from tests.support.keyed_checkpoint import write_totals
from tests.support.spark import Spark
from tests.support.stores import S3, Store

pytestmark = pytest.mark.integration

WITH_DATA_SOURCE = find_spec("pyspark.sql.datasource") is not None
needs_data_source = pytest.mark.skipif(
    not WITH_DATA_SOURCE, reason=f"PySpark {pyspark_version} has no Python data sources"
)
FORMAT = "flink_checkpoint"


@pytest.fixture(scope="module")
def session(spark: Spark) -> SparkSession:
    if WITH_DATA_SOURCE:
        spark.session.dataSource.register(migrate.spark.FlinkCheckpointDataSource)
    return spark.session


@pytest.fixture(params=["data source", "function"])
def read(request: pytest.FixtureRequest, session: SparkSession) -> Any:
    """Return one of the two ways to read checkpoints, with the same signature."""
    if request.param == "function":
        return lambda *paths, **options: read_checkpoints(session, *map(str, paths), **options)
    if not WITH_DATA_SOURCE:
        pytest.skip(f"PySpark {pyspark_version} has no Python data sources")
    return lambda *paths, **options: load(session, *paths, **options)


def load(session: SparkSession, *paths: str | Path, **options: str | bool | int) -> DataFrame:
    reader = session.read.format(FORMAT).options(**options)
    return reader.load(str(paths[0]) if len(paths) == 1 else list(map(str, paths)))


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def sorted_rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, rows(frame)))


def test_positions_match_flinks_own_classes(read: Any) -> None:
    held: dict[str, list[ExpectedPosition]] = {}
    for row in rows(read(GOLDEN)):
        assert row["error"] is None, row["error"]
        one = ExpectedPosition(*(row[name] for name in ExpectedPosition._fields))
        held.setdefault(row["pointer"], []).append(one)
    expected = {str(GOLDEN / entry["path"]): positions_of(entry) for entry in WRITTEN_BY_FLINK}
    for pointer, positions in expected.items():
        assert sorted(held.get(pointer, []), key=repr) == sorted(positions, key=repr), pointer


@needs_data_source
@pytest.mark.parametrize("view", [view.value for view in CheckpointView])
def test_data_source_and_function_return_same_rows(
    session: SparkSession, tmp_path: Path, view: str
) -> None:
    (tmp_path / "chk-1").mkdir()
    roots = (GOLDEN / "2.3", tmp_path)
    loaded = load(session, *roots, view=view)
    made = read_checkpoints(session, *map(str, roots), view=view, numPartitions=3)
    assert loaded.schema == made.schema
    assert sorted_rows(loaded) == sorted_rows(made)
    assert loaded.where("error_kind = 'not found'").count() == 1


@pytest.mark.parametrize("view", list(CheckpointView))
def test_data_source_schemas_have_types_and_column_comments(
    read: Any, view: CheckpointView
) -> None:
    schema: StructType = read(GOLDEN / "2.3" / "retained", view=view.value).schema
    assert schema.names == [column.name for column in VIEWS[view]]
    assert {field.name: field.metadata["comment"] for field in schema.fields} == {
        column.name: column.comment for column in VIEWS[view]
    }
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    expected = {
        CheckpointView.POSITIONS: {"topic": "string", "partition": "int", "next_offset": "bigint"},
        CheckpointView.OPERATORS: {"finished": "boolean", "state_names": "array<string>"},
        CheckpointView.CHECKPOINTS: {"written_at": "timestamp", "movable": "boolean"},
        CheckpointView.FINDINGS: {"severity": "string"},
    }[view]
    assert types == {**types, **expected}


def test_written_at_column_contains_modification_time_of_metadata_file(
    read: Any, session: SparkSession
) -> None:
    frame = read(GOLDEN / "2.3" / "retained", view="checkpoints")
    (row,) = frame.selectExpr("pointer", "unix_millis(written_at) AS at").collect()
    written = (Path(row["pointer"]) / "_metadata").stat().st_mtime_ns
    assert row["at"] == written // 1_000_000


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A job with one complete checkpoint and several damaged checkpoints."""
    whole = write_source(tmp_path / "chk-3", {0: splits("orders", [5, 6])})
    metadata = (whole / "_metadata").read_bytes()
    for number, data in ((1, metadata[:50]), (2, b"nothing")):
        (tmp_path / f"chk-{number}").mkdir()
        (tmp_path / f"chk-{number}" / "_metadata").write_bytes(data)
    (tmp_path / "chk-4").mkdir()
    return tmp_path


@pytest.mark.parametrize("view", [view.value for view in CheckpointView])
def test_data_source_returns_unreadable_checkpoint_as_row_with_error(
    read: Any, damaged: Path, view: str
) -> None:
    loop = damaged / "loop"
    loop.symlink_to(loop)
    told = rows(read(damaged, damaged / "missing", loop, view=view))
    assert {(Path(row["pointer"]).name, row["error_kind"]) for row in told} == {
        ("chk-1", "truncated"),
        ("chk-2", "corrupt"),
        ("chk-3", None),
        ("chk-4", "not found"),
        ("missing", "not found"),
        ("loop", "unreadable"),
    }


def test_dropmalformed_mode_omits_unreadable_checkpoints(read: Any, damaged: Path) -> None:
    told = rows(read(damaged, mode="dropMalformed"))
    assert [(row["partition"], row["next_offset"]) for row in told] == [(0, 5), (1, 6)]


def test_failfast_mode_fails_on_unreadable_checkpoint(read: Any, damaged: Path) -> None:
    with pytest.raises(PySparkException, match=r"chk-1/_metadata.*truncated"):
        read(damaged, mode="FAILFAST").collect()


def test_data_source_returns_deleted_checkpoint_as_row_with_error(
    session: SparkSession, damaged: Path
) -> None:
    found = read_checkpoints(session, str(damaged))
    newest = read_checkpoints(session, str(damaged), latestOnly=True)
    write_source(damaged / "chk-7", {0: splits("orders", [50, 60])})
    shutil.rmtree(damaged / "chk-3")
    errors = {row["error_kind"] for row in rows(found.where("pointer LIKE '%chk-3'"))}
    assert errors == {"not found"}
    assert [row["next_offset"] for row in rows(newest)] == [50, 60]


def test_data_source_selects_rows_by_path_glob_and_options(read: Any, tmp_path: Path) -> None:
    """The options are ``latestOnly`` and ``topic``.

    Names of options and views are case-insensitive.
    """
    for team, job in (("a", "x"), ("b", "y")):
        for number in (1, 2):
            place = tmp_path / team / job / f"chk-{number}"
            write_source(place, {0: [*splits(f"topic-{team}", [number]), *splits("all", [7])]})
    found = rows(read(f"{tmp_path}/*/x", latestOnly=True, TOPIC="topic-a"))
    assert [(row["topic"], row["next_offset"]) for row in found] == [("topic-a", 2)]
    assert len(rows(read(f"{tmp_path}/[ab]/*/chk-2", view="CHECKPOINTS"))) == 2


def test_data_source_returns_no_rows_for_empty_directory(read: Any, tmp_path: Path) -> None:
    assert rows(read(tmp_path)) == []


def test_option_num_partitions_sets_number_of_tasks(read: Any) -> None:
    frame = read(GOLDEN / "2.2", view="checkpoints", numPartitions=5)
    sizes = frame.rdd.mapPartitions(lambda some: [sum(1 for _ in some)]).collect()
    assert len(sizes) == 5
    assert all(sizes)


def test_lone_surrogate_in_name_is_escaped(read: Any, tmp_path: Path) -> None:
    (tmp_path / b"t\xe9am".decode("utf-8", "surrogateescape") / "chk-1").mkdir(parents=True)
    (row,) = rows(read(tmp_path))
    assert row["pointer"].endswith("/t\\udce9am/chk-1")
    (batch,) = batches(
        VIEWS[CheckpointView.OPERATORS], [(None,) * 11 + (("\ud800", "b"),) + (None,) * 7]
    )
    assert batch.column("state_names").to_pylist() == [["\\ud800", "b"]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"view": "offsets"}, "not one of positions, operators, checkpoints, findings"),
        ({"latest": "true"}, "unknown option latest; the options are view"),
    ],
)
def test_unknown_view_or_option_is_refused(read: Any, options: dict[str, str], says: str) -> None:
    with pytest.raises((UsageError, PySparkException), match=says):
        read(GOLDEN, **options)


@needs_data_source
def test_data_source_refuses_user_schema_and_missing_path(session: SparkSession) -> None:
    reader = session.read.format(FORMAT).schema("topic STRING")
    with pytest.raises(PySparkException, match="omit `schema`"):
        reader.load(str(GOLDEN)).collect()
    with pytest.raises(PySparkException, match="the path is missing"):
        session.read.format(FORMAT).load().collect()


@needs_data_source
def test_data_source_works_in_sql(session: SparkSession) -> None:
    session.sql(
        f"CREATE TEMPORARY VIEW blocked USING {FORMAT} "
        f"OPTIONS (path '{GOLDEN}/2.2', view 'checkpoints', latestOnly 'true')"
    )
    try:
        told = session.sql(
            "SELECT code, count(*) AS n FROM blocked LATERAL VIEW explode(obstacles) AS code "
            "WHERE NOT movable GROUP BY code"
        )
        assert {row["code"]: row["n"] for row in told.collect()}["in-flight-records"] == 2
    finally:
        session.catalog.dropTempView("blocked")


@pytest.mark.skipif(WITH_DATA_SOURCE, reason="this PySpark has Python data sources")
def test_error_before_spark_4_suggests_function_instead_of_data_source() -> None:
    with pytest.raises(ImportError, match=r"migrate\.spark\.read_checkpoints"):
        from migrate.spark import FlinkCheckpointDataSource  # noqa: F401  # the import itself fails


def test_spark_package_without_pyspark_reports_install_command() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None; import migrate.spark\n"
        "try: migrate.spark.read_checkpoints\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install '.[spark]'" in done.stdout


@pytest.fixture(scope="module")
def store(session: SparkSession, s3: S3) -> Iterator[Store]:
    # The JVM started before the server, so the executors need the server's settings.
    settings = {name: os.environ[name] for name in os.environ if name.startswith("AWS_")}
    with stores.with_settings(session.sparkContext.environment, settings):
        if WITH_DATA_SOURCE:
            session.dataSource.register(migrate.spark.FlinkCheckpointDataSource)
        yield s3.store


def test_data_source_reads_checkpoints_in_s3(session: SparkSession, store: Store) -> None:
    def read(*paths: str | Path, **options: str | bool | int) -> DataFrame:
        if WITH_DATA_SOURCE:
            return load(session, *paths, **options)
        return read_checkpoints(session, *map(str, paths), **options)

    here = GOLDEN / "2.2" / "retained-files"
    url = store.put(here, "retained-files")
    store.put(GOLDEN / "2.2" / "unaligned", "others/unaligned")

    def told(frame: DataFrame) -> list[list[Any]]:
        return sorted([row[name] for name in ExpectedPosition._fields] for row in rows(frame))

    assert told(read(url)) == told(read(here)) != []
    pointers = {row["pointer"] for row in rows(read(f"{store.root}/o*/*", latestOnly=True))}
    assert {pointer.rpartition("/chk-")[0].count("unaligned") for pointer in pointers} == {1}
    errors = [row["error_kind"] for row in rows(read(f"{store.root}/nothing", url))]
    assert errors[0] == "not found" and set(errors[1:]) == {None}


@pytest.mark.timeout(1200)  # 450 s on a busy machine
def test_executors_load_package_from_py_files_or_session(tmp_path: Path) -> None:
    """The Python of the two executors contains neither this package nor its dependencies."""
    python = make_bare_python(tmp_path / "python")
    root = GOLDEN / "2.2"
    entries = [entry for entry in WRITTEN_BY_FLINK if entry["name"].startswith("2.2/")]
    # Compressed state needs cramjam, so each of these checkpoints becomes a row with an error.
    compressed = [entry for entry in entries if "/compressed" in entry["name"]]
    positions = sum(len(positions_of(entry)) for entry in entries if entry not in compressed)
    whole = {"None": positions, "missing package": len(compressed)}
    both = [whole, whole if WITH_DATA_SOURCE else None]
    missing = "No module named 'migrate'"

    state = write_totals(tmp_path / "savepoint-1", 300)
    assert submit_driver(python, root, state, master="local-cluster[2,1,1024]") == {
        "as it is": [missing, missing if WITH_DATA_SOURCE else None],
        "add_package": both,  # addArtifacts, or addPyFile on Spark 3.5
        "state": [300, 300 if WITH_DATA_SOURCE else None],
    }

    archive = write_package(tmp_path / "flink_offset_migrate.zip")
    submitted = submit_driver(
        python, root, state, "--py-files", str(archive), master="local-cluster[1,1,1024]"
    )
    assert submitted == {"as it is": both}
