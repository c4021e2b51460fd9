"""What is said of a job that may still run: a JobManager's answer, and a savepoint's age."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from decoder import read_checkpoint
from migrate.inputs.flink import rest_api as flink_rest
from migrate.inputs.flink.extract import extract
from migrate.inputs.flink.rest_api import FlinkJob
from migrate.model.positions import target_of
from migrate.moves.job_stopped import running_job_refusals
from migrate.moves.pipeline import STOPPED_WITH_SAVEPOINT
from migrate.planning import Plan, make_plan
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.golden_topics import GOLDEN

_JOB = "0a97a9c6086be373357fa722571e7df8"
_URL = "http://jobmanager:8081"


def _planned(directory: Path) -> Plan:
    extraction = extract(read_checkpoint(write_source(directory / "chk-7", {0: splits("t", [3])})))
    return make_plan(extraction, extraction.sources, None, target=target_of("g"))


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[pytest.LogCaptureFixture]:
    """What is told; ``monkeypatch`` has the JobManager's answers."""
    with caplog.at_level("INFO", logger="migrate"):
        yield caplog


@pytest.mark.parametrize(
    ("job_id", "known", "why"),
    [
        (_JOB, [], f"does not know job {_JOB}"),
        (_JOB, [FlinkJob("ff" * 16, "another", "FINISHED")], f"does not know job {_JOB}"),
        (
            "orders",
            [FlinkJob("ff" * 16, "another", "FINISHED")],
            "the checkpoint's path does not show",
        ),
        # Every application cluster may have one of this id.
        ("0" * 32, [FlinkJob("0" * 32, "any", "CANCELED")], "the checkpoint's path does not show"),
    ],
)
def test_a_jobmanager_that_may_be_anothers_proves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: pytest.LogCaptureFixture,
    job_id: str,
    known: list[FlinkJob],
    why: str,
) -> None:
    monkeypatch.setattr(flink_rest, "known_jobs", lambda url: tuple(known))
    assert running_job_refusals(_planned(tmp_path / job_id), 10.0, _URL) == ()
    (warning,) = (record.getMessage() for record in said.records if record.levelname == "WARNING")
    assert warning.endswith(" [job-may-run]")
    assert why in warning
    assert "--execute looks twice, 20 s apart" in said.text


def test_the_jobs_own_jobmanager_is_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    jobs = (FlinkJob(_JOB, "orders", "CANCELED"), FlinkJob("ff" * 16, "another", "RUNNING"))
    planned = _planned(tmp_path / _JOB)
    monkeypatch.setattr(flink_rest, "known_jobs", lambda url: jobs[:1])
    assert running_job_refusals(planned, 10.0, _URL) == ()
    assert f"Flink has job {_JOB} as CANCELED, and none that has not ended" in said.text
    assert "cannot tell whether" not in said.text
    monkeypatch.setattr(flink_rest, "known_jobs", lambda url: jobs)
    (running,) = running_job_refusals(planned, 10.0, _URL)
    assert f"Flink still has job {'ff' * 16} (another), RUNNING" in running


# -- a savepoint that the job was stopped with -----------------------------------------------------


def _moved(folder: Path, days: float, *flags: str | Path) -> Result:
    (original,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    savepoint = folder / original.name
    savepoint.mkdir()
    for file in original.iterdir():
        (savepoint / file.name).write_bytes(file.read_bytes())
    at = time.time() - days * 86_400
    os.utime(savepoint / "_metadata", (at, at))
    kept = ("--partitions", "orders:0-1", "--partitions", "payments:0-1")
    moved = migrate("to-spark", savepoint, *kept, *flags)
    assert moved.code == 0, moved.stderr
    return moved


@pytest.mark.parametrize(
    "flags", [(), ("--spark-source", "0=topic:orders", "--spark-source", "1=topic:payments")]
)
def test_that_a_savepoint_may_have_been_started_from_again_is_said_once(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    moved = _moved(tmp_path, 0, *flags)
    assert moved.stderr.count(STOPPED_WITH_SAVEPOINT) == 1
    assert "ago" not in moved.stderr


def test_it_is_said_of_a_saved_plan_too(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    _moved(tmp_path, 0, "--plan-out", plan)
    applied = migrate("to-spark", "--plan", plan)
    assert applied.code == 0, applied.stderr
    assert applied.stderr.count(STOPPED_WITH_SAVEPOINT) == 1


def test_an_old_one_is_warned_of(tmp_path: Path) -> None:
    moved = _moved(tmp_path, 12.5)
    assert "warning: this savepoint was written 12 days ago: if the job was started" in moved.stderr
    assert "--source-group GROUP" in moved.stderr


def test_nothing_of_it_is_said_of_a_checkpoint(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    os.utime(chk / "_metadata", (0, 0))
    moved = migrate("to-spark", chk)
    assert moved.code == 0
    assert "stopped:" not in moved.stderr and "ago" not in moved.stderr
