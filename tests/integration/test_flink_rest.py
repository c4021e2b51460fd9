"""Whether a job still runs: asked of a real JobManager, and not to be seen in its group."""

from __future__ import annotations

import http.server
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from migrate.broker import ConsumerGroups
from migrate.flink_rest import FlinkRestError, unfinished_jobs
from tests.support.jars import classpath
from tests.support.jdk import compile_java, java_command
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration

_SOON = 60.0
_SOURCE = Path(__file__).parents[1] / "support/java/RunningJobs.java"


@contextmanager
def _running(*arguments: str) -> Iterator[tuple[str, str]]:
    """The REST address of a cluster, and the id of the one job that runs there."""
    jars = classpath("flink-2.2")
    command = java_command(
        "RunningJobs", [compile_java([_SOURCE], jars), *jars], arguments, heap="1g"
    )
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        address, job_id = process.stdout.readline().split()
        yield address, job_id
        process.communicate(timeout=_SOON)
    finally:
        process.kill()
        process.wait()


def test_a_running_job_is_told_though_its_group_has_no_members(broker: Broker) -> None:
    topic, group = f"t-{uuid.uuid4().hex[:8]}", f"g-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(10)))
    groups = ConsumerGroups({"bootstrap.servers": broker.bootstrap_servers})
    with _running(broker.bootstrap_servers, group, topic) as (address, job_id):
        (job,) = unfinished_jobs(address)
        assert (job.job_id, job.name, job.state) == (job_id, "the job that moves", "RUNNING")
        assert unfinished_jobs(f"{address}/") == (job,)
        deadline = time.monotonic() + _SOON
        while not (view := groups.view(group)).committed:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert (view.state, view.members) == ("Empty", ())
    with pytest.raises(FlinkRestError, match="no answer"):
        unfinished_jobs(address)


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
    ("status", "body", "message"),
    [
        (404, b"", "answered 404"),
        (200, b"<html>", "no JobManager"),
        (200, b'{"jobs": [{}]}', "no JobManager"),
    ],
)
def test_another_service_is_no_jobmanager(status: int, body: bytes, message: str) -> None:
    with (
        _another_service(status, body) as address,
        pytest.raises(FlinkRestError, match=message),
    ):
        unfinished_jobs(address)


@pytest.mark.parametrize(
    "address",
    ["", "host:8081", "file:///etc/passwd", "http://", "http://alice:hunter2@127.0.0.1:1"],
)
def test_what_is_no_address_is_refused_without_showing_it(address: str) -> None:
    with pytest.raises(FlinkRestError) as refused:
        unfinished_jobs(address)
    assert "hunter2" not in str(refused.value)
    assert "http://host:port" in str(refused.value)
