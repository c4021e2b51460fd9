"""A place to try `migrate`: a Kafka broker that goes on, topics, a Flink job's checkpoints.

    make playground         # python -m examples.playground start
    make playground-stop    # python -m examples.playground stop

A small Flink job reads two topics, is cancelled, started again from its newest checkpoint, and
stopped with a savepoint; then more records come. The broker alone goes on. All of it is in the
folder `playground` of this clone.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.playground import JOBS
from examples.progress import console, fetch_jars, step
from tests.support.jars import classpath
from tests.support.jdk import compile_java, find_jdk, java_command, tail
from tests.support.kafka import JARS as KAFKA_JARS
from tests.support.kafka import Broker, Lasting

ROOT = Path(__file__).parents[2]
PORT = 9092
FLINK_JARS = "flink-2.2"
JARS = (FLINK_JARS, KAFKA_JARS)
MEGABYTES = 131
_SOURCE = Path(__file__).with_name("PlaygroundJob.java")
# Partition by partition: how many records there are by then. orders-2 is empty all the while.
_FIRST = {"orders": (6, 8, 0), "payments": (20, 10)}
_SECOND = {"orders": (12, 16, 0), "payments": (37, 21)}
_AT_STOP = {"orders": (20, 24, 0), "payments": (45, 29)}
_AT_LAST = {"orders": (40, 80, 40), "payments": (60, 80)}

Counts = dict[str, tuple[int, ...]]


class PlaygroundError(RuntimeError):
    """It cannot be made, or there is none."""


def start(home: Path, port: int) -> None:
    """Make it, and say what is where.

    Raises:
        PlaygroundError: there is one already; or something else is at that port.
    """
    if home.exists():
        raise PlaygroundError(f"{_near(home)} is there already; make playground-stop removes it")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise PlaygroundError(
                f"something else answers at port {port}; take another: make playground PORT=19092"
            ) from error
    console.print("This takes about half a minute.")
    fetch_jars(JARS, MEGABYTES)
    home.mkdir()
    try:
        _fill(home, port)
    except BaseException:
        stop(home)
        raise
    (savepoint,) = (home / "savepoints").iterdir()
    console.print(
        _WHAT_IS_WHERE.format(
            port=port,
            checkpoints=_near(home / "checkpoints" / JOBS[0]),
            savepoint=_near(savepoint),
            environment=_near(home / "environment"),
            home=_near(home),
        ),
        soft_wrap=True,
    )


_WHAT_IS_WHERE = """
The playground is up:

  Kafka         localhost:{port}, with the topics orders and payments
  checkpoints   {checkpoints}
  savepoint     {savepoint}
  programs      source {environment}   # puts migrate and spark-submit on your path
  to stop       make playground-stop   # stops Kafka, removes {home}"""


def stop(home: Path) -> None:
    """Stop its broker, and remove what it made.

    Raises:
        PlaygroundError: there is none.
    """
    if not home.exists():
        raise PlaygroundError("there is no playground")
    pid_file = home / "kafka/pid"
    if pid_file.exists():
        _end(int(pid_file.read_text()), home)
    shutil.rmtree(home)


def _end(pid: int, home: Path) -> None:
    """End the broker: only if that process is still the one that was started here."""
    started = Path(f"/proc/{pid}/cmdline")
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + 20
        while started.exists() and str(home / "kafka").encode() in started.read_bytes():
            if time.monotonic() > deadline:
                break
            os.kill(pid, number)
            time.sleep(0.2)


def _fill(home: Path, port: int) -> None:
    broker = Broker(lasting=Lasting(home / "kafka", port))
    with step("Starting Kafka"):
        broker.start()
        for topic, counts in _AT_LAST.items():
            broker.create_topic(topic, len(counts))
    with step("Starting a Flink job that reads orders and payments"):
        jars = classpath(FLINK_JARS)
        compiled = compile_java([_SOURCE], jars)
        arguments = [
            broker.bootstrap_servers,
            (home / "checkpoints").as_uri(),
            (home / "savepoints").as_uri(),
            *JOBS,
        ]
        command = java_command("PlaygroundJob", [compiled, *jars], arguments, "512m")
    with _job(command, home / "flink.log") as job:
        with step("Two checkpoints, and the job is started again from the second"):
            _produce(broker, {}, _FIRST)
            _ask(job, f"checkpoint {_total(_FIRST)}")
            _produce(broker, _FIRST, _SECOND)
            _ask(job, f"checkpoint {_total(_SECOND)}")
            _ask(job, "restart")
        with step("The job is stopped with a savepoint"):
            _produce(broker, _SECOND, _AT_STOP)
            _ask(job, f"stop {_total(_AT_STOP)}")
    with step("More records come"):
        _produce(broker, _AT_STOP, _AT_LAST)
    (home / "environment").write_text(
        f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH\n"
        f"export JAVA_HOME={shlex.quote(str(find_jdk()))}\n"
    )


@contextmanager
def _job(command: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        yield process
        process.communicate(timeout=60)
    except PlaygroundError as error:
        raise PlaygroundError(f"{error}\n{tail(log.read_text(errors='replace'))}") from error
    finally:
        process.kill()
        process.wait()


def _ask(job: subprocess.Popen[str], line: str) -> str:
    """Have it do something; where that led to."""
    assert job.stdin is not None and job.stdout is not None
    job.stdin.write(f"{line}\n")
    job.stdin.flush()
    if not (answer := job.stdout.readline().strip()):
        raise PlaygroundError(f"the Flink job ended at {line!r}")
    return answer


def _produce(broker: Broker, there: Counts, wanted: Counts) -> None:
    for topic, counts in wanted.items():
        for partition, count in enumerate(counts):
            before = there[topic][partition] if there else 0
            if count > before:
                broker.produce(
                    topic, partition, [_record(topic, partition, n) for n in range(before, count)]
                )


def _record(topic: str, partition: int, number: int) -> str:
    return json.dumps({topic.removesuffix("s"): number})


def _total(counts: Counts) -> int:
    return sum(map(sum, counts.values()))


def _near(path: Path) -> str:
    """A path as seen from here."""
    return os.path.relpath(path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.playground", description=__doc__)
    parser.add_argument("what", choices=("start", "stop"))
    parser.add_argument("--port", type=int, default=PORT)
    arguments = parser.parse_args()
    home = Path.cwd() / "playground"
    try:
        if arguments.what == "start":
            start(home, arguments.port)
        else:
            stop(home)
            console.print(f"Kafka is stopped, and {_near(home)} removed.")
    except PlaygroundError as error:
        print(f"playground: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
