"""A Flink cluster with a REST interface, one finished job, and one job that reads Kafka."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.jars import classpath
from tests.support.jdk import compile_java, java_command

_SOURCE = Path(__file__).parent / "java/RunningJobs.java"
_END_SECONDS = 60.0


@contextmanager
def running_job(
    bootstrap_servers: str,
    group: str,
    topic: str,
    checkpoints: Path,
    job_id: str | None = None,
    retained: int = 3,
    version: str = "2.2",
) -> Iterator[tuple[str, str]]:
    """Run a cluster; yield its REST address and the id of the job that reads Kafka.

    ``topic`` is a pattern of topics. The job takes a checkpoint every 200 ms. At the end, it is
    cancelled, and its last checkpoints are retained under ``checkpoints``. If ``job_id`` is set,
    ``retained`` checkpoints are retained, and otherwise 3.
    """
    jars = classpath(f"flink-{version}")
    command = java_command(
        "RunningJobs",
        [compile_java([_SOURCE], jars), *jars],
        [
            *(bootstrap_servers, group, topic, checkpoints.absolute().as_uri()),
            *([job_id, str(retained)] if job_id is not None else []),
        ],
        heap="1g",
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
        process.communicate(timeout=_END_SECONDS)
    finally:
        process.kill()
        process.wait()
