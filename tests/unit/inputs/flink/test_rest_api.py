"""Parse the answers of a JobManager's REST API over HTTP.

tests/integration/test_flink_rest.py uses a real JobManager.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from unittest.mock import ANY

import pytest
from pydantic import ValidationError

from migrate.inputs.flink import rest_client
from migrate.inputs.flink.rest_api import FlinkJob, JobManager, StopAttempt, known_jobs
from migrate.inputs.flink.rest_client import FlinkRestError
from migrate.model.errors import UsageError
from tests.support.local_server import QuietHandler, serving
from tests.support.reasons import message_of

_JOB = "0123456789abcdef0123456789abcdef"
_OVERVIEW = (
    f'{{"jobs":[{{"jid":"{_JOB}","name":"orders","state":"RUNNING","start-time":1,"tasks":{{}}}}]}}'
)


@contextmanager
def answering(status: int, body: bytes | Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Start a server that answers with one body, or with one body per path.

    Yield its address and the list of requested paths.
    """
    asked: list[str] = []

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            told = body if isinstance(body, bytes) else body[self.path].encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

    with serving(Handler) as url:
        yield url, asked


def _closed() -> str:
    """An address without a server."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    ("below", "path"),
    [
        ("", "/jobs/overview"),
        ("/", "/jobs/overview"),
        ("/jobs/overview", "/jobs/overview"),  # the address that a browser or `curl` shows
        ("/proxy/flink/config/", "/proxy/flink/jobs/overview"),
        ("/proxy/flink/", "/proxy/flink/jobs/overview"),
    ],
)
def test_jobmanager_is_queried_directly_even_if_http_proxy_is_set(
    below: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No proxy runs at this address, so a query through the proxy would fail.
    monkeypatch.setenv("http_proxy", _closed())
    monkeypatch.delenv("no_proxy", raising=False)
    with answering(200, _OVERVIEW.encode()) as (url, asked):
        assert known_jobs(url + below) == (FlinkJob(_JOB, "orders", "RUNNING", 1),)
    assert asked == [path]


def test_invalid_jobmanager_answer_raises_error() -> None:
    with answering(503, b"") as (url, _), pytest.raises(FlinkRestError) as refused:
        known_jobs(url)
    assert refused.value.codes == ["flink-error"]
    facts = {"address": url, "status": 503, "reason": "Service Unavailable"}
    assert message_of(refused.value).facts == facts
    for body in (b"<html>", b"{}", b'{"jobs":[{}]}'):
        with answering(200, body) as (url, _), pytest.raises(FlinkRestError) as refused:
            known_jobs(url)
        assert refused.value.codes == ["not-a-job-manager"]
    with pytest.raises(FlinkRestError) as refused:
        known_jobs(_closed())
    assert refused.value.codes == ["flink-unreachable"]
    assert message_of(refused.value).facts["reason"] == "Connection refused"
    with answering(200, b"") as (url, _), pytest.raises(FlinkRestError) as refused:
        known_jobs(url.replace("http://", "https://"))
    reason = "the port does not use TLS; use http:// instead of https://"
    assert message_of(refused.value).facts["reason"] == reason


def test_oversized_jobmanager_response_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(200, _OVERVIEW.encode()) as (url, _):
        monkeypatch.setattr(rest_client, "_LARGEST_ANSWER", len(_OVERVIEW))
        assert known_jobs(url)
        monkeypatch.setattr(rest_client, "_LARGEST_ANSWER", len(_OVERVIEW) - 1)
        with pytest.raises(FlinkRestError) as refused:
            known_jobs(url)
        assert refused.value.codes == ["not-a-job-manager"]


class _Trickling(QuietHandler):
    """A server that sends a byte from time to time, and never finishes its answer."""

    def do_GET(self) -> None:
        whole = b"HTTP/1.0 200 OK\r\n\r\n" if self.path.startswith("/body") else b""
        self.wfile.write(whole)
        # Writing fails as soon as the client has disconnected.
        with suppress(OSError):
            for _ in range(60):
                self.wfile.write(b"x")
                time.sleep(0.02)


@pytest.mark.parametrize("below", ["/head", "/body"])
def test_request_to_jobmanager_has_total_deadline(
    below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: Each read had a limit of ten seconds, but the whole request had no limit."""
    monkeypatch.setattr(rest_client, "DEADLINE", 0.3)
    with serving(_Trickling) as url:
        began = time.monotonic()
        with pytest.raises(FlinkRestError) as refused:
            known_jobs(url + below)
        assert time.monotonic() - began < 2
    assert refused.value.codes == ["flink-timeout"]
    assert message_of(refused.value).facts["address"] == url


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"jobs":' + b"[" * 100_000,
        b'{"jobs":[{"jid":"a","name":"b","state":"c","start-time":' + b"9" * 10_000 + b"}]}",
        b'{"jobs":[{"jid":"a","name":"b","state":"c","start-time":NaN}]}',
    ],
)
def test_unparseable_response_is_reported_as_not_from_jobmanager(body: bytes) -> None:
    with answering(200, body) as (url, _), pytest.raises(FlinkRestError) as refused:
        known_jobs(url)
    assert refused.value.codes == ["not-a-job-manager"]


def test_response_with_many_invalid_jobs_uses_little_memory() -> None:
    """Regression: The errors for a 16 MiB response, one per invalid job, used 2.7 GB of memory."""
    with answering(200, b'{"jobs":[' + b"[]," * 300_000 + b"1]}") as (url, _):
        with pytest.raises(FlinkRestError) as refused:
            known_jobs(url)
        assert isinstance(refused.value.__cause__, ValidationError)
        assert refused.value.__cause__.error_count() == 1


_SECRET_CONFIG = (
    "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="me" password="hush hush"; ssl.key.password=hush, s3://AKIA:hush@bucket/x'
)


def test_error_text_from_flink_is_redacted_and_truncated() -> None:
    """Regression: The password in the error of a failed checkpoint was printed and recorded."""
    trace = f"java.lang.RuntimeException: {_SECRET_CONFIG}\nCaused by: x: {_SECRET_CONFIG}\n"
    stop = {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": {"stack-trace": trace}}}
    with answering(200, json.dumps(stop).encode()) as (url, _):
        attempt = JobManager(url).stop_attempt(_JOB, "f" * 32)
    assert attempt is not None and attempt.problem is not None
    vertices = [{"name": f"Source: {_SECRET_CONFIG}", "status": "FAILED"}]
    job = {"jid": _JOB, "name": "orders", "state": "FAILING", "vertices": vertices}
    failed = {"id": 3, "failure_message": f"{_SECRET_CONFIG}\n{'x' * 100_000}\x1b[2J"}
    answers = {
        f"/jobs/{_JOB}": json.dumps(job),
        f"/jobs/{_JOB}/checkpoints": json.dumps({"latest": {"failed": failed}}),
    }
    with answering(200, answers) as (url, _):
        details = JobManager(url).details(_JOB)
    for text in (attempt.problem, details.failure, *details.idle_tasks):
        assert text is not None and "hush" not in text and "\x1b" not in text
        assert len(text) < 5_000
        assert 'ScramLoginModule required username="me" password=…; ssl.key.password=…' in text


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://host:1",
            "host",
            "user:secret@host:1",
            "http://",
            "https://user:secret@host:1",
            "http://u@host",
        ),
        *("http://[::1", "http://host:99999", "http://host:x"),
    ],
)
def test_usage_error_for_invalid_flink_rest_address_contains_no_secret(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        known_jobs(url)
    assert str(refused.value) == "flink_rest: this is not an address of the form http://host:port"


@pytest.mark.parametrize("url", ["localhost:8081", "10.0.0.1:8081/", "[::1]:8081"])
def test_usage_error_for_flink_rest_address_without_scheme_suggests_http(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        known_jobs(url)
    assert str(refused.value) == (
        f"flink_rest: {url} is not an address of the form http://host:port; did you mean "
        f"http://{url}?"
    )


def test_job_has_ended_only_in_globally_terminal_states() -> None:
    """The states are from Flink 2.2.0.

    SUSPENDED is not an end, because a second JobManager resumes the job.
    """
    ended = {"FINISHED", "CANCELED", "FAILED"}
    others = {"INITIALIZING", "CREATED", "RUNNING", "FAILING", "CANCELLING", "RESTARTING"}
    others |= {"SUSPENDED", "RECONCILING"}
    assert {state for state in ended | others if FlinkJob(_JOB, "", state).ended} == ended


_TRACE = (
    "java.util.concurrent.CompletionException: org.apache.flink.util.FlinkException: It broke.\\n"
    "\\tat org.apache.Flink.run(Flink.java:1)\\n"
    "Caused by: java.io.IOException: The disk is full\\n\\tat java.Disk.write(Disk.java:1)"
)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (404, "{}", None),
        (200, '{"status": {"id": "IN_PROGRESS"}, "operation": null}', StopAttempt()),
        (
            200,
            '{"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s/savepoint-1"}}',
            StopAttempt(savepoint="file:/s/savepoint-1"),
        ),
        (
            200,
            '{"status": {"id": "COMPLETED"}, "operation": {"failure-cause": {"stack-trace": "'
            f'{_TRACE}"}}}}}}',
            StopAttempt(problem="It broke: The disk is full"),
        ),
        (
            200,
            '{"status": {"id": "COMPLETED"}, "operation": {}}',
            StopAttempt(problem="no reason reported"),
        ),
    ],
)
def test_result_of_stop_attempt_is_read_from_status_of_savepoint(
    status: int, body: str, told: StopAttempt | None
) -> None:
    with answering(status, body.encode()) as (url, asked):
        assert JobManager(url).stop_attempt(_JOB, "f" * 32) == told
    assert asked == [f"/jobs/{_JOB}/savepoints/{'f' * 32}"]


def _checkpoints(completed: int | None, savepoint: int | None) -> str:
    named = {"completed": completed, "savepoint": savepoint}
    latest = {
        kind: {"id": number, "external_path": f"file:/{kind}-{number}"} if number else None
        for kind, number in named.items()
    }
    return json.dumps({"latest": latest})


@pytest.mark.parametrize(
    ("completed", "savepoint", "told"),
    [(6, 7, (7, "file:/savepoint-7")), (8, 7, None), (8, None, None), (None, 7, (7, ANY))],
)
def test_newest_savepoint_is_ignored_if_job_completed_checkpoints_after_savepoint(
    completed: int | None, savepoint: int | None, told: tuple[int, str] | None
) -> None:
    """If the job completed checkpoints after the savepoint, the stop with this savepoint failed."""
    job = f'{{"jid": "{_JOB}", "name": "orders", "state": "FINISHED", "vertices": []}}'
    answers = {
        f"/jobs/{_JOB}": job,
        f"/jobs/{_JOB}/checkpoints": _checkpoints(completed, savepoint),
    }
    with answering(200, answers) as (url, _):
        assert JobManager(url).details(_JOB).newest_savepoint == told


def test_unknown_status_of_stop_attempt_is_refused() -> None:
    with (
        answering(200, b'{"status": {"id": "DONE"}}') as (url, _),
        pytest.raises(FlinkRestError) as refused,
    ):
        JobManager(url).stop_attempt(_JOB, "f" * 32)
    assert refused.value.codes == ["not-a-job-manager"]
