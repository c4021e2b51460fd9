"""A Flink session cluster of local processes, with Flink's own SQL client and command line.

The cluster has a JobManager with its REST interface and a TaskManager. docker-compose.yml runs the
same releases in containers.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tests.support.jars import classpath
from tests.support.jdk import JavaError, java_command, tail
from tests.support.kafka import free_ports
from tests.support.service import Service

JARS = "flink-1.20-sql"
_START_SECONDS = 90
_COMMAND_SECONDS = 180

_VERBOSE = ("flink", "hadoop")

# Flink's start scripts compute these sizes, but are not used here.
_MEMORY = {
    "taskmanager.cpu.cores": "1",
    "taskmanager.memory.framework.heap.size": "128 mb",
    "taskmanager.memory.framework.off-heap.size": "128 mb",
    "taskmanager.memory.jvm-metaspace.size": "256 mb",
    "taskmanager.memory.jvm-overhead.min": "192 mb",
    "taskmanager.memory.jvm-overhead.max": "192 mb",
    "taskmanager.memory.task.heap.size": "256 mb",
    "taskmanager.memory.task.off-heap.size": "0",
    "taskmanager.memory.managed.size": "64 mb",
    "taskmanager.memory.network.min": "32 mb",
    "taskmanager.memory.network.max": "32 mb",
}


class FlinkSession(Service):
    """A Flink session cluster; a context manager.

    Args:
        directory: the directory for its configuration, logs and savepoints.
        settings: Flink's settings, in addition to the settings of every test cluster.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self._home = directory.absolute()
        self._home.mkdir(parents=True, exist_ok=True)
        self._processes: list[subprocess.Popen[bytes]] = []
        rest, rpc = free_ports(2)
        self.rest_url = f"http://127.0.0.1:{rest}"
        self._write_configuration(
            {
                **_MEMORY,
                "jobmanager.rpc.address": "127.0.0.1",
                "jobmanager.rpc.port": str(rpc),
                "jobmanager.bind-host": "127.0.0.1",
                "taskmanager.host": "127.0.0.1",
                "taskmanager.bind-host": "127.0.0.1",
                "taskmanager.numberOfTaskSlots": "5",
                "rest.address": "127.0.0.1",
                "rest.bind-address": "127.0.0.1",
                "rest.port": str(rest),
                "blob.server.port": "0",
                "io.tmp.dirs": tempfile.gettempdir(),
                "execution.target": "remote",
                "execution.checkpointing.interval": "1 s",
                "execution.checkpointing.dir": (self._home / "checkpoints").as_uri(),
                "execution.checkpointing.savepoint-dir": (self._home / "savepoints").as_uri(),
                **(settings or {}),
            }
        )

    def start(self) -> None:
        """Start the JobManager and the TaskManager, and wait until task slots are available."""
        self._launch("org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint")
        self._launch("org.apache.flink.runtime.taskexecutor.TaskManagerRunner")
        self._await_slots()

    def close(self) -> None:
        """Stop the processes. Their files are kept."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def kill_jobmanager(self) -> None:
        """Kill the JobManager with SIGKILL, like a machine that fails."""
        self._processes[0].kill()
        self._processes[0].wait()

    def program(self, main: str, *arguments: str) -> list[str]:
        """Return the command line of a program of Flink that uses this cluster."""
        java, *rest = java_command(main, classpath(JARS), arguments)
        # Without these settings, the programs warn that YARN, plugins, and native code are missing.
        quiet = [f"-Dorg.slf4j.simpleLogger.log.org.apache.{name}=error" for name in _VERBOSE]
        return ["env", f"FLINK_CONF_DIR={self._home}", java, *quiet, *rest]

    def command_line(self) -> list[str]:
        """Return the command line of ``flink``, without arguments."""
        return self.program("org.apache.flink.client.cli.CliFrontend")

    def sql_client(self) -> list[str]:
        """Return the command line of ``sql-client.sh``, without arguments."""
        history = ("--history", str(self._home / "sql-history"))
        return self.program("org.apache.flink.table.client.SqlClient", "embedded", *history)

    def submit(self, sql: str) -> None:
        """Execute statements with the SQL client; the jobs that they start keep running."""
        with tempfile.NamedTemporaryFile("w", suffix=".sql", dir=self._home) as file:
            file.write(sql)
            file.flush()
            run([*self.sql_client(), "--file", file.name])

    def savepoint(self, job: str) -> str:
        """Take a savepoint of a job that keeps running, and return its path."""
        return _saved(run([*self.command_line(), "savepoint", job]))

    def stop(self, job: str) -> str:
        """Stop a job with a savepoint, and return the path of the savepoint."""
        return _saved(run([*self.command_line(), "stop", job]))

    def cancel(self, job: str) -> None:
        """Cancel a job without a savepoint."""
        request = urllib.request.Request(f"{self.rest_url}/jobs/{job}", method="PATCH")
        urllib.request.urlopen(request, timeout=10).close()

    def running(self) -> dict[str, str]:
        """Return the ids of the running jobs by name."""
        with urllib.request.urlopen(f"{self.rest_url}/jobs/overview", timeout=10) as answer:
            jobs = json.load(answer)["jobs"]
        return {job["name"]: job["jid"] for job in jobs if job["state"] == "RUNNING"}

    def completed_checkpoints(self, job: str) -> int:
        """Return the number of checkpoints that a job has completed."""
        url = f"{self.rest_url}/jobs/{job}/checkpoints"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(json.load(answer)["counts"]["completed"])

    def log(self) -> str:
        """Return the end of the logs of the cluster's processes."""
        return "\n".join(tail(log.read_text(errors="replace")) for log in self._home.glob("*.log"))

    def _write_configuration(self, settings: Mapping[str, str]) -> None:
        lines = [f"{key}: {json.dumps(value)}" for key, value in settings.items()]
        (self._home / "config.yaml").write_text("\n".join(lines) + "\n")

    def _launch(self, main: str) -> None:
        command = java_command(main, classpath(JARS), ["--configDir", str(self._home)], "768m")
        with (self._home / f"{main.rpartition('.')[2]}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    env={**os.environ, "FLINK_CONF_DIR": str(self._home)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _await_slots(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._slots():
            if time.monotonic() > deadline or any(p.poll() is not None for p in self._processes):
                raise JavaError(f"the Flink cluster did not start\n{self.log()}")
            time.sleep(0.1)

    def _slots(self) -> int:
        try:
            with urllib.request.urlopen(f"{self.rest_url}/overview", timeout=5) as answer:
                return int(json.load(answer)["slots-available"])
        except (urllib.error.URLError, OSError):
            return 0


def _saved(printed: str) -> str:
    (path,) = re.findall(r"^Savepoint completed. Path: (\S+)$", printed, re.MULTILINE)
    return str(path)


def run(command: list[str]) -> str:
    """Run a program and return its output; an error shows the output's last lines."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    if done.returncode:
        raise JavaError(f"{command[-1]}: exit code {done.returncode}\n{tail(done.stdout)}")
    return done.stdout
