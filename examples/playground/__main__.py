"""A place to try `migrate`: Kafka, a Flink with a job that runs, and checkpoints of one that ended.

    make playground         # python -m examples.playground start
    make playground-stop    # python -m examples.playground stop

The first Flink job reads two topics. It is canceled, restarted from its newest checkpoint, and
stopped with a savepoint. More records are then written to the topics. A second job copies the topic
clicks into files. Kafka and this job keep running. All files are in the folder `playground`.
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
from contextlib import suppress
from pathlib import Path
from string import Template
from zipfile import ZipFile

from examples.playground import CLICKS, JOBS
from examples.progress import console, fetch_jars, step
from tests.support.jars import classpath
from tests.support.jdk import compile_java, find_jdk, java_command, tail
from tests.support.kafka import JARS as KAFKA_JARS
from tests.support.kafka import Broker, KeptProcess, free_ports

ROOT = Path(__file__).parents[2]
PORT = 9092
# If a different program answers on this port, Flink uses a free port.
_FLINK_PORT = 8081
_MAX_PORT = 65535
FLINK_JARS = "flink-2.2"
JARS = (FLINK_JARS, KAFKA_JARS)
MEGABYTES = 131
_HERE = Path(__file__).parent
_SOURCES = tuple(_HERE / f"{name}.java" for name in ("PlaygroundJob", "ClicksJob"))
# The folder of the running job, and of the Spark query after its move.
_CLICKS = "clicks"
_CLICKS_PARTITIONS = 3
# The files with the process ids of the playground, in the order in which the processes are ended.
_PID_FILES = ("clicks/query.pid", "flink/pid", "kafka/pid")
_END_SECONDS = 20
# The number of records of each partition at each moment. orders-2 gets no records before the end.
_FIRST = {"orders": (6, 8, 0), "payments": (20, 10)}
_SECOND = {"orders": (12, 16, 0), "payments": (37, 21)}
_AT_STOP = {"orders": (20, 24, 0), "payments": (45, 29)}
_AT_LAST = {"orders": (40, 80, 40), "payments": (60, 80)}

Counts = dict[str, tuple[int, ...]]


class PlaygroundError(RuntimeError):
    """The playground cannot be started or stopped."""


def start(home: Path, port: int) -> None:
    """Start the playground, and print commands to try.

    Raises:
        PlaygroundError: a playground already exists, or Kafka's port is in use.
    """
    if home.exists():
        if _running(home):
            raise PlaygroundError("it is running already; to stop it: make playground-stop")
        raise PlaygroundError(
            f"it has ended, and left the folder {_near(home)}; to remove it: make playground-stop"
        )
    if not _is_free(port):
        raise PlaygroundError(
            f"port {port} is in use; choose another for Kafka: "
            f"make playground PORT={free_ports(1)[0]}"
        )
    console.print("This takes under a minute.")
    fetch_jars(JARS, MEGABYTES)
    home.mkdir()
    flink_port = _flink_port()
    try:
        _fill(home, port, flink_port)
    except BaseException:
        stop(home)
        raise
    (savepoint,) = (home / "savepoints").iterdir()
    console.print(
        _WHAT_TO_TRY.format(
            port=port,
            flink_port=flink_port,
            checkpoints=_near(home / "checkpoints" / JOBS[0]),
            savepoint=_near(savepoint),
            clicks=_near(home / _CLICKS),
            environment=_near(home / "environment"),
            home=_near(home),
        ),
        soft_wrap=True,
    )


_WHAT_TO_TRY = """
The playground is running:

  Kafka          localhost:{port}, with the topics orders, payments and clicks
  Flink          http://localhost:{flink_port}; its job clicks writes {clicks}/flink
  checkpoints    {checkpoints}
  savepoint      {savepoint}

To try, first:   source {environment}   # puts migrate, flink and spark-submit on your path
  a checkpoint   migrate inspect {checkpoints}
  a dry run      migrate commit-group {savepoint} --group first-hour -b localhost:{port}
  a cut-over     migrate cut-over {clicks}/cut-over.yaml   # the job clicks, to Spark
To stop:         make playground-stop   # ends its processes, removes {home}"""


def stop(home: Path) -> None:
    """End the processes of the playground, and remove its folder.

    Raises:
        PlaygroundError: no playground exists.
    """
    if not home.exists():
        raise PlaygroundError("the playground does not exist")
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _running(home):
            os.kill(pid, number)
            deadline = time.monotonic() + _END_SECONDS
            while pid in _running(home) and time.monotonic() < deadline:
                time.sleep(0.1)
    shutil.rmtree(home, ignore_errors=True)
    if home.exists():  # the shell around the query has just written its exit code
        time.sleep(1)
        shutil.rmtree(home)


def _running(home: Path) -> list[int]:
    """Return the ids of the processes that this playground has started, and that still run.

    An old id may belong to a different process. The process's command line must therefore contain
    ``home``.
    """
    pids: list[int] = []
    for pid_file in _PID_FILES:
        try:
            pid = int((home / pid_file).read_text())
            command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if os.fsencode(home) in command_line:
            pids.append(pid)
    return pids


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _flink_port() -> int:
    """Return Flink's usual port or, if it is in use, a free one, which is also printed."""
    if _is_free(_FLINK_PORT):
        return _FLINK_PORT
    port = free_ports(1)[0]
    console.print(f"Port {_FLINK_PORT} is in use, so Flink uses port {port}.")
    return port


def _port(text: str) -> int:
    """Return a port from the command line.

    Raises:
        ArgumentTypeError: the text is not a number from 1 to 65535.
    """
    with suppress(ValueError):
        if 1 <= int(text) <= _MAX_PORT:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port; pass a number from 1 to {_MAX_PORT}")


def _fill(home: Path, port: int, flink_port: int) -> None:
    broker = Broker(kept=KeptProcess(home / "kafka", port))
    with step("Starting Kafka"):
        broker.start()
        for topic, counts in _AT_LAST.items():
            broker.create_topic(topic, len(counts))
        broker.create_topic(_CLICKS, _CLICKS_PARTITIONS)
    with step("Starting Flink, and a job that reads orders and payments"):
        flink = _Flink(home, broker.bootstrap_servers, flink_port)
    with step("Taking two checkpoints, and restarting the job from the second"):
        _produce(broker, {}, _FIRST)
        flink.ask(f"checkpoint {_total(_FIRST)}")
        _produce(broker, _FIRST, _SECOND)
        flink.ask(f"checkpoint {_total(_SECOND)}")
        flink.ask("restart")
    with step("Stopping the job with a savepoint"):
        _produce(broker, _SECOND, _AT_STOP)
        flink.ask(f"stop {_total(_AT_STOP)}")
    with step("Writing more records"):
        _produce(broker, _AT_STOP, _AT_LAST)
    with step("Starting the job that keeps running"):
        flink.ask("clicks")
    addresses = {"kafka": f"localhost:{port}", "flink": f"http://localhost:{flink_port}"}
    for name in ("cut-over.yaml", "query.py"):
        text = Template((_HERE / _CLICKS / name).read_text())
        (home / _CLICKS / name).write_text(text.substitute(addresses, folder=home / _CLICKS))
    _write_flink_command(home, broker.bootstrap_servers, flink_port)
    path = [shlex.quote(str(folder)) for folder in (Path(sys.executable).parent, home / "bin")]
    (home / "environment").write_text(
        f"export PATH={':'.join(path)}:$PATH\nexport JAVA_HOME={shlex.quote(str(find_jdk()))}\n"
    )


def _java_classpath() -> list[Path]:
    """Return the folder of the compiled jobs, and Flink's jars."""
    jars = classpath(FLINK_JARS)
    return [compile_java(_SOURCES, jars), *jars]


def _write_flink_command(home: Path, brokers: str, port: int) -> None:
    """Write ``bin/flink``, Flink's own command line, and the jar that ``flink run`` starts."""
    classes, *jars = _java_classpath()
    with ZipFile(home / _CLICKS / "job.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMain-Class: ClicksJob\n")
        for file in sorted(classes.iterdir()):
            jar.write(file, file.name)
    settings = {"rest.address": "127.0.0.1", "rest.port": port, "execution.target": "remote"}
    conf = home / "flink" / "conf"
    conf.mkdir()
    lines = [f"{name}: {value}\n" for name, value in settings.items()]
    (conf / "config.yaml").write_text("".join(lines))
    java, *rest = java_command("org.apache.flink.client.cli.CliFrontend", jars)
    # Without this setting, Flink warns that YARN and plugins are missing.
    quiet = "-Dorg.slf4j.simpleLogger.log.org.apache.flink=error"
    command = [java, quiet, f"-Dplayground.kafka={brokers}", f"-Dplayground.home={home}", *rest]
    script = home / "bin" / "flink"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n# Flink's command line, for the Flink of this playground.\n"
        f'FLINK_CONF_DIR={shlex.quote(str(conf))} exec {shlex.join(command)} "$@"\n'
    )
    script.chmod(0o755)


class _Flink:
    """The program PlaygroundJob; it keeps running after the end of this process."""

    def __init__(self, home: Path, brokers: str, port: int) -> None:
        command = java_command(
            "PlaygroundJob",
            _java_classpath(),
            [brokers, str(port), str(home), *JOBS, CLICKS],
        )
        folder = home / "flink"
        (folder / "tmp").mkdir(parents=True)
        self._log = folder / "log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        (folder / "pid").write_text(f"{self._process.pid}\n")

    def ask(self, line: str) -> None:
        """Send a command, and wait for its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        if not self._process.stdout.readline():
            log = tail(self._log.read_text(errors="replace"))
            raise PlaygroundError(f"the Flink process ended at {line!r}\n{log}")


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
    """Return a path relative to the current folder."""
    return os.path.relpath(path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.playground", description=__doc__)
    parser.add_argument("what", choices=("start", "stop"))
    parser.add_argument(
        "--port", type=_port, default=PORT, help="Kafka's port [default: %(default)s]"
    )
    arguments = parser.parse_args()
    home = Path.cwd() / "playground"
    try:
        if arguments.what == "start":
            start(home, arguments.port)
        else:
            stop(home)
            console.print(f"The playground has stopped, and its folder {_near(home)} is removed.")
    except PlaygroundError as error:
        print(f"playground: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
