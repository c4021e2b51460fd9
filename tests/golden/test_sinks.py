"""Read the writers that real tables remember, and compare predicted with actual losses.

Two writers wrote to each table. If the second writer's records are missing, `--sink` must predict
this from the first writer's table.
"""

from __future__ import annotations

import logging
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from migrate.model.errors import Refused
from migrate.moves.sink import check_sink_of_a_job, check_sink_of_a_query
from migrate.sinks import WriterKind, sink_memory
from migrate.storage.files import Files
from tests.golden.sinks.tables import GOLDEN, read_manifest

TABLES = {entry["table"]: entry for entry in read_manifest()}
KINDS = {
    "files": WriterKind.FILES,
    "delta-stream": WriterKind.QUERY,
    "delta-name": WriterKind.TXN_APP,
    "delta-uuid": WriterKind.TXN_APP,
    "delta-json": WriterKind.TXN_APP,
    "hudi-default": WriterKind.HUDI,
    "hudi-6": WriterKind.HUDI,
    "hudi-named": WriterKind.HUDI,
    "iceberg-spark": WriterKind.QUERY,
    "iceberg-flink": WriterKind.FLINK_JOB,
    "paimon-flink": WriterKind.COMMIT_USER,
}
BY_SPARK = sorted(name for name, entry in TABLES.items() if "second_query" in entry)
# Sinks whose writers have no configurable name.
REFUSED = {"files", "hudi-default", "hudi-6"}


def test_sink_tables_match_manifest() -> None:
    assert TABLES.keys() == KINDS.keys()
    for name, entry in TABLES.items():
        there = {
            path.relative_to(GOLDEN / name).as_posix(): sha256(path.read_bytes()).hexdigest()
            for path in (GOLDEN / name).rglob("*")
            if path.is_file()
        }
        assert there == entry["files"]


@pytest.mark.parametrize("name", sorted(KINDS))
def test_batch_numbers_remembered_by_sink_match_manifest(name: str) -> None:
    memory = sink_memory(str(GOLDEN / name), Files())
    assert memory.last_numbers(KINDS[name]) == TABLES[name]["memory"]
    assert {one.kind for one in memory.remembered} == {KINDS[name]}
    assert (len(memory.formats), memory.unread, memory.empty) == (1, (), False)


@pytest.mark.parametrize("name", BY_SPARK)
def test_sink_check_predicts_records_that_sink_drops_from_second_query(name: str) -> None:
    entry = TABLES[name]
    second = entry["second_query"]
    warnings, refused = _asked(GOLDEN / name, None)
    if second["gained"] == second["sent"]:
        assert (warnings, refused) == ((), None)
        return
    ((writer, last),) = entry["memory"].items()
    # All batches of the second query have numbers that the table remembers.
    assert (second["gained"], last) == (0, second["batches"] - 1)
    if name in REFUSED:
        assert refused is not None and f" 0 to {last} " in refused
    else:
        assert any(f"{writer!r} up to {last}" in warning for warning in warnings)


@pytest.mark.parametrize("name", sorted(set(BY_SPARK) - {"files"}))
def test_sink_is_refused_only_for_remembered_writer_name(name: str) -> None:
    """A different writer name is accepted without a warning."""
    assert _asked(GOLDEN / name, "another-name") == ((), None)
    if KINDS[name] in (WriterKind.HUDI, WriterKind.TXN_APP):
        (writer,) = TABLES[name]["memory"]
        _, refused = _asked(GOLDEN / name, writer)
        assert refused is not None and repr(writer) in refused and " 0 to 2 " in refused


def _asked(sink: Path, writer: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the warnings and no refusal, or no warnings and the refusal."""
    try:
        return check_sink_of_a_query(sink, writer), None
    except Refused as refused:
        return (), str(refused)


def test_iceberg_table_that_remembers_flink_jobs_triggers_warning() -> None:
    """Iceberg drops all records of a new job if the table remembers its job ID and UID.

    The manifest of the golden tables shows this loss.
    """
    entry = TABLES["iceberg-flink"]
    lost = [job["job"] for job in entry["jobs"] if job["gained"] == 0]
    one, two, three = (f"{number:032x}" for number in (1, 2, 3))
    # The only lost records are from the job with a remembered job ID and UID. The first job, jobs
    # with a new job ID or UID, and the job with the older FlinkSink lose no records.
    assert lost == [f"IcebergSink,{one},orders,3"]
    for job in entry["jobs"]:
        assert job["gained"] in (0, job["sent"])

    (warning,) = check_sink_of_a_job(GOLDEN / "iceberg-flink")
    for job_id in (one, two, three):
        assert f"'job {job_id}, operator " in warning
    for writer, last in entry["memory"].items():
        assert f"{writer!r} up to {last}" in warning
    assert warning.endswith(" [sink-memory]")


def test_paimon_drops_no_records_of_new_job() -> None:
    entry: dict[str, Any] = TABLES["paimon-flink"]
    assert [job["gained"] for job in entry["jobs"]] == [job["sent"] for job in entry["jobs"]]
    assert len(entry["memory"]) == 2  # two commit users of one job ID
    assert check_sink_of_a_job(GOLDEN / "paimon-flink") == ()


@pytest.mark.parametrize("name", ["delta-stream", "iceberg-spark", "iceberg-flink", "paimon-flink"])
def test_sink_that_remembers_only_other_writers_triggers_no_warning(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "migrate")
    assert _asked(GOLDEN / name, None) == ((), None)
    count = len(TABLES[name]["memory"])
    assert f"({count}); a new query is not among them" in caplog.text


def test_warning_is_shown_if_spark_would_ignore_flinks_files_in_sink_directory() -> None:
    """Spark reads only the files that are listed in the log of its own file sink."""
    (warning,) = check_sink_of_a_job(GOLDEN / "files")
    assert warning.endswith(" [sink-hides-files]")


def test_sinks_page_shows_record_counts_of_manifest() -> None:
    page = (GOLDEN.parents[2] / "docs/explanation/sinks.md").read_text()
    told = [line.strip("| ").split(" | ") for line in page.splitlines() if " of " in line[-12:]]
    by_spark = {cells[0].strip("`"): cells[-1] for cells in told if len(cells) == 3}
    assert by_spark == {name: _share(TABLES[name]["second_query"]) for name in BY_SPARK}

    by_flink = [cells for cells in told if len(cells) == 4]
    jobs = [("", job) for job in TABLES["iceberg-flink"]["jobs"]]
    jobs += [("Paimon,", job) for job in TABLES["paimon-flink"]["jobs"]]
    for (sink, job), cells in zip(jobs, by_flink, strict=True):
        name, job_id, uid, _ = (sink + job["job"]).split(",")
        assert [cell.strip("`") for cell in cells] == [name, f"…{job_id[-1]}", uid, _share(job)]


def _share(second: dict[str, int]) -> str:
    return f"{second['gained']} of {second['sent']}"
