"""Run a server that returns a JobManager's recorded answers, with a separate clock.

The answers come from a real Flink with a finished job and a job that reads Kafka
(``tests/golden/flink_rest.json``). ``python -m tests.support.recorded_flink`` records new answers.
"""

from __future__ import annotations

import json
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.local_server import QuietHandler, serving

_FILE = Path(__file__).parents[1] / "golden/flink_rest.json"
_TIMES = frozenset({"start-time", "end-time"})
_NEUTRAL = "file:/flink/checkpoints"


class RecordedFlink:
    """The recorded answers.

    Attributes:
        recorded: the answer to each path.
        reading: the id of the running job.
        finished: the id of the finished job.
        listed: the ids of the jobs that the JobManager lists; at first, both.
        later_ms: the delay of the jobs' start and end from the recording, in milliseconds.
        ahead_ms: the lead of the JobManager's clock over this machine's clock, in milliseconds.
    """

    def __init__(self) -> None:
        self.recorded: dict[str, Any] = json.loads(_FILE.read_text())["answers"]
        states = {job["jid"]: job["state"] for job in self.recorded["/jobs/overview"]["jobs"]}
        (self.reading,) = (job for job, state in states.items() if state == "RUNNING")
        (self.finished,) = (job for job, state in states.items() if state == "FINISHED")
        self.listed = set(states)
        self.later_ms = self.ahead_ms = 0

    def began_at(self, seconds_ago: float) -> None:
        """Set the start of the running job to some seconds ago, by the true time."""
        jobs = {job["jid"]: job for job in self.recorded["/jobs/overview"]["jobs"]}
        began_ms = 1000 * (time.time() - seconds_ago) + self.ahead_ms
        self.later_ms = round(began_ms) - jobs[self.reading]["start-time"]

    def recovered(self) -> str:
        """Pretend that the running job has recovered from its own checkpoint; return its path.

        The answer about the restore is that of Flink 1.20 after a failover of its JobManager.
        """
        path = f"file:/flink/checkpoints/{self.reading}/chk-33"
        self.recorded[f"/jobs/{self.reading}/checkpoints"]["latest"]["restored"] = {
            "id": 33,
            "restore_timestamp": self.later_ms,
            "is_savepoint": False,
            "external_path": path,
        }
        return path

    def answer(self, path: str) -> Any:
        """Return the answer to a path, or None for 404."""
        if path == "/jobs/overview":
            jobs = [job for job in self.recorded[path]["jobs"] if job["jid"] in self.listed]
            return self._moved({"jobs": jobs})
        if path.startswith("/jobs/") and path.split("/")[2] not in self.listed:
            return None
        return self._moved(self.recorded.get(path))

    def _moved(self, answer: Any) -> Any:
        if isinstance(answer, list):
            return [self._moved(item) for item in answer]
        if not isinstance(answer, dict):
            return answer
        moved = {key: self._moved(value) for key, value in answer.items()}
        for key in _TIMES & moved.keys():
            moved[key] += self.later_ms if moved[key] >= 0 else 0
        if "now" in moved:
            moved["now"] = round(1000 * time.time()) + self.ahead_ms
        return moved


@contextmanager
def recorded_flink() -> Iterator[tuple[RecordedFlink, str]]:
    """Serve the recorded answers; yield them and the address."""
    flink = RecordedFlink()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            answer = flink.answer(self.path)
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(answer or {}).encode())

    with serving(Handler) as url:
        yield flink, url


def _record() -> None:
    from tests.support.kafka import Broker
    from tests.support.running_jobs import running_job

    def get(path: str) -> Any:
        with urllib.request.urlopen(f"{rest}{path}", timeout=10) as answer:
            return json.load(answer)

    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        topic = f"t-{uuid.uuid4().hex[:8]}"
        broker.create_topic(topic, 1)
        broker.produce(topic, 0, map(str, range(10)))
        with running_job(broker.bootstrap_servers, topic, topic, Path(folder)) as (rest, job):
            while get(f"/jobs/{job}/checkpoints")["latest"]["completed"] is None:
                time.sleep(0.5)
            time.sleep(4)  # web.refresh-interval
            paths = ["/config", "/jobs/overview"]
            for known in get("/jobs/overview")["jobs"]:
                paths += [f"/jobs/{known['jid']}", f"/jobs/{known['jid']}/checkpoints"]
            text = json.dumps({path: get(path) for path in paths})
    text = text.replace(Path(folder).as_uri().replace("file://", "file:"), _NEUTRAL)
    recorded = {"flink": "2.2.0", "answers": json.loads(text)}
    _FILE.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    _record()
