"""Query a real JobManager for running jobs, because a job's consumer group has no members."""

from __future__ import annotations

import http.server
import json
import re
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from decoder import StopKind, read_checkpoint
from migrate import inspect
from migrate.inputs.flink.extract import extract
from migrate.inputs.flink.job_state import JobState, judge
from migrate.inputs.flink.rest_api import JobManager, StopAttempt, known_jobs
from migrate.inputs.flink.rest_client import FlinkRestError
from migrate.kafka.groups import ConsumerGroups
from migrate.model.errors import UsageError
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.kafka import Broker
from tests.support.running_jobs import running_job

pytestmark = pytest.mark.integration

_SOON = 60.0


def test_running_job_is_reported_even_if_its_group_has_no_members(
    tmp_path: Path, broker: Broker
) -> None:
    topic, group = f"t-{uuid.uuid4().hex[:8]}", f"g-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(10)))
    groups = ConsumerGroups({"bootstrap.servers": broker.bootstrap_servers})
    with running_job(broker.bootstrap_servers, group, topic, tmp_path) as (address, job_id):
        (job,) = (job for job in known_jobs(address) if not job.ended)
        (before,) = (job for job in known_jobs(address) if job.ended)
        assert before.state == "FINISHED"
        assert (job.job_id, job.name, job.state) == (job_id, "the job that moves", "RUNNING")
        assert job in known_jobs(f"{address}/")
        deadline = time.monotonic() + _SOON
        # The state is requested first, so it may be older than the commit.
        while not (view := groups.view(group)).committed or view.state == "Dead":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert (view.state, view.members) == ("Empty", ())
        for mode in ((), ("--execute", "--yes")):
            refused = _commit_group(tmp_path, broker, topic, address, *mode)
            assert (refused.code, refused.stdout) == (4, "")
            assert f"Flink lists job {job_id} (the job that moves) as RUNNING" in refused.stderr
            assert [topic, "0", "7"] in [line.split()[:3] for line in refused.stderr.splitlines()]
    with pytest.raises(FlinkRestError, match="no answer"):
        known_jobs(address)


@pytest.mark.parametrize("version", ["1.15", "2.2", "2.3"])
def test_stop_is_requested_once_and_found_by_trigger_id(
    tmp_path: Path, broker: Broker, version: str
) -> None:
    """Use the oldest and the newest Flink. tests/integration/test_cut_over.py covers Flink 1.20."""
    topic, trigger_id = f"t-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    broker.create_topic(topic, 1)
    with running_job(broker.bootstrap_servers, topic, topic, tmp_path / "chk", version=version) as (
        address,
        job_id,
    ):
        flink = JobManager(address)
        assert flink.version().startswith(f"{version}.")
        deadline = time.monotonic() + _SOON
        while (details := flink.details(job_id)).checkpoint is None:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert (details.idle_tasks, details.failure) == ([], None)
        assert flink.stop_attempt(job_id, trigger_id) is None
        durations = flink.last_durations(job_id)
        assert durations.savepoint is None and durations.checkpoint is not None

        for _ in range(2):
            savepoints = (tmp_path / "savepoints").as_uri()
            flink.stop(job_id, savepoints, trigger_id, drain=False, native=False)
        while not (stop := flink.stop_attempt(job_id, trigger_id) or StopAttempt()).ended:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        (savepoint,) = (tmp_path / "savepoints").iterdir()
        assert stop.problem is None and stop.savepoint is not None
        assert stop.savepoint.endswith(savepoint.name)
        while (job := flink.job(job_id)) is None or not job.ended:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert job.state == "FINISHED"
        # Regression: Flink's answer about the checkpoints was older than the stop, so the stop was
        # reported as doubtful.
        judgment = judge(extract(read_checkpoint(savepoint)).origin, address)
        if version != "1.15":  # 1.15 does not record whether a savepoint stopped the job
            assert (judgment.state, judgment.asked_flink) == (JobState.STOPPED, True), judgment
            assert "Flink lists no job that was restored from it" in judgment.text
        while (newest := flink.details(job_id).newest_savepoint) is None:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert newest[1] == stop.savepoint
        with urllib.request.urlopen(f"{address}/jobs/{job_id}/checkpoints") as answer:
            told_by_flink = json.load(answer)["latest"]["savepoint"]
        took = told_by_flink["latest_ack_timestamp"] - told_by_flink["trigger_timestamp"]
        assert flink.last_durations(job_id).savepoint == pytest.approx(took / 1000)
        told = StopKind.UNKNOWN if version == "1.15" else StopKind.SUSPEND
        assert inspect(stop.savepoint).checkpoint.type.stop is told


def _commit_group(folder: Path, broker: Broker, topic: str, flink_rest: str, *mode: str) -> Result:
    """Commit to a different group than Flink's, and check that the commit changes nothing."""
    chk = folder / "elsewhere" / "chk-7"
    if not chk.exists():
        write_source(chk, {0: splits(topic, [7])})
    group = f"new-{topic}"
    result = migrate(
        *("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers),
        *("--flink-rest", flink_rest, "--rollback-file", folder / "back.json"),
        *mode,
    )
    assert broker.committed(group) == {}
    assert not (folder / "back.json").exists()
    return result


def test_unreachable_jobmanager_prevents_commit(tmp_path: Path, broker: Broker) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(10)))
    with _another_service(200, b'{"jobs": []}') as address:
        idle = _commit_group(tmp_path, broker, topic, address)
    assert idle.code == 0, idle.stderr
    assert "[job-may-run]" in idle.stderr
    for mode in ((), ("--execute", "--yes")):
        gone = _commit_group(tmp_path, broker, topic, address, *mode)
        assert (gone.code, gone.stdout) == (6, "")
        assert re.search(r"--flink-rest http://127\.0\.0\.1:\d+: no answer", gone.stderr)


@contextmanager
def _another_service(status: int, body: bytes) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (404, b"", "flink-error"),
        (200, b"<html>", "not-a-job-manager"),
        (200, b'{"jobs": [{}]}', "not-a-job-manager"),
    ],
)
def test_service_other_than_jobmanager_is_refused(status: int, body: bytes, code: str) -> None:
    with (
        _another_service(status, body) as address,
        pytest.raises(FlinkRestError) as refused,
    ):
        known_jobs(address)
    assert refused.value.codes == [code]


@pytest.mark.parametrize(
    "address",
    ["", "host:8081", "file:///etc/passwd", "http://", "http://alice:hunter2@127.0.0.1:1"],
)
def test_refusal_of_invalid_address_shows_no_password(address: str) -> None:
    with pytest.raises(UsageError) as refused:
        known_jobs(address)
    assert "hunter2" not in str(refused.value)
    assert "http://host:port" in str(refused.value)
