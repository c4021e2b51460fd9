"""Run a Spark Connect server, and programs in an environment that has only ``pyspark-client``.

The server is the full PySpark in .venv. Its Python workers run in the environment of the client,
which lacks ``decoder`` and ``migrate``. Programs find both through ``PYTHONPATH``, and the workers
find them in the package that the client sends.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import pyspark

from tests.support.jars import cache_dir, classpath
from tests.support.spark import CONNECTOR, process_environment

ROOT = Path(__file__).parents[2]
_LOCK = ROOT / "requirements" / "connect.txt"
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_SECONDS = 120
_PROGRAM_SECONDS = 300


class ConnectError(RuntimeError):
    """The environment cannot be made, or the server does not start."""


class NoSuchPackage(ConnectError):
    """The package index does not have ``pyspark-client``."""


def client_python() -> Path:
    """Return the Python of an environment that has ``pyspark-client`` and not the full PySpark.

    The environment is in the cache. It is made from the locked packages, by their hashes.

    Raises:
        NoSuchPackage: the package index does not have the package.
        ConnectError: the packages cannot be installed.
    """
    lock = hashlib.sha256(_LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = cache_dir() / "pyspark-client" / lock
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as staging:
            stage = Path(staging, "stage")
            venv.create(stage, symlinks=True, with_pip=False)
            (packages,) = stage.glob("lib/python*/site-packages")
            # pyspark-client is a source archive. The locked tools in .venv build it.
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes"]
            command += ["--no-build-isolation", "--target", str(packages), "-r", str(_LOCK)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if "No matching distribution found for pyspark-client" in made.stderr:
                raise NoSuchPackage("the package index has no pyspark-client")
            if made.returncode != 0:
                raise ConnectError(f"pyspark-client: {made.stderr.strip()}")
            stage.rename(home)
    return home / "bin" / "python"


class ConnectServer:
    """A local server of Spark Connect; a context manager."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._home = Path(tempfile.mkdtemp(prefix="connect-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"sc://127.0.0.1:{port}"
        settings = {
            "spark.master": "local[2]",
            "spark.jars": ",".join(map(str, classpath(CONNECTOR))),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": port,
            "spark.driver.memory": "1g",
            "spark.local.dir": self._home / "local",
            "spark.sql.codegen.cache.maxEntries": "2000",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": self._home / "warehouse",
            "spark.ui.enabled": "false",
        }
        command = [str(Path(pyspark.__path__[0], "bin", "spark-submit")), "--class", _SERVER]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        environment = process_environment(self._home) | {"PYSPARK_PYTHON": str(python)}
        for name in ("PYTHONPATH", "SPARK_HOME"):
            environment.pop(name, None)
        self._log = self._home / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env=environment,
                cwd=self._home,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await_port(port)

    def _await_port(self, port: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.2)
            else:
                return
        log = self._log.read_text(errors="replace")[-2000:]
        self.close()
        raise ConnectError(f"the server does not start: {log}")

    def __enter__(self) -> ConnectServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server with its workers, and remove its files."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        shutil.rmtree(self._home, ignore_errors=True)

    def run(self, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the client's Python, with the address of this server in its environment."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SPARK_REMOTE": self.url,
            **variables,
        }
        environment.pop("SPARK_HOME", None)
        return subprocess.run(
            [str(self._python), *map(str, arguments)],
            env=environment,
            cwd=self._home,
            capture_output=True,
            text=True,
            timeout=_PROGRAM_SECONDS,
            check=False,
        )
