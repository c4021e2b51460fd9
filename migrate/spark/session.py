"""The Spark that a command runs on: one that is there, or one that is started; and this package,
sent to executors that do not have it.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import decoder
import migrate
from decoder.urls import redact_secrets
from migrate.model.errors import ServiceError, UsageError
from migrate.model.wording import install_command

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_APP = "migrate"
# spark-submit has started the JVM already, and set all there is to set.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_LAST_LINES = 4
# Masters whose executors run in this machine's one JVM, with the Python that we run in.
_LOCAL = re.compile(r"local(\[|$)")
# Before the name of an exception.
_JAVAS_OWN = re.compile(r"^\s*(: |Caused by: )?")
_CAUSE = re.compile(r"(\w+\.)*\w+(Error|Exception)\b")


def runs_on_spark(master: str | None) -> bool:
    """Whether a scan runs on Spark: where a master is named, or a Spark is there already.

    Raises:
        UsageError: a master is named, and PySpark is not installed.
    """
    if master is not None:
        if find_spec("pyspark") is None:
            raise UsageError(f"--master needs PySpark: {install_command('spark')}")
        return True
    # Of a PySpark that nobody has imported there is no session.
    return _SUBMITTED in os.environ or bool(sys.modules.get("pyspark") and _active())


@contextmanager
def session(
    master: str | None, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SparkSession]:
    """A Spark session: the active one, spark-submit's, or one of our own, which is stopped again.

    Args:
        master: where one of our own is to run; None where there is another (``runs_on_spark``).
        settings: of one of our own.

    Raises:
        UsageError: there is one already, or none can be started as asked.
        ServiceError: what was done with it failed in Spark.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with _running(master, settings) as spark:
        try:
            yield spark
        except (PySparkException, Py4JError) as error:
            raise ServiceError(f"Spark failed: {failure_of(error)}") from error


@contextmanager
def _running(master: str | None, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    active = _active()
    if active is not None:
        if master is not None:
            raise UsageError("there is a Spark session already: leave the master out")
        yield active
        return
    if _SUBMITTED in os.environ:
        started = _submitted(master)
    elif master is not None:
        started = _started(master, settings)
    else:
        raise UsageError("there is no Spark session: name a master")
    try:
        yield started
    finally:
        started.stop()


def _active() -> SparkSession | None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:  # another thread's
        active = SparkSession.builder.getOrCreate()
    return active


def _submitted(master: str | None) -> SparkSession:
    from pyspark.sql import SparkSession

    if master is not None:
        raise UsageError("spark-submit has a --master of its own: give it that one")
    return SparkSession.builder.getOrCreate()


def _started(master: str, given: Mapping[str, str]) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": master,
        "spark.app.name": _APP,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        # Nobody else is to reach it, and the name of this machine need not lead anywhere.
        settings |= dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False).setAll(list({**settings, **given}.items()))
    gateway = SparkContext._gateway or _launched(conf)  # its JVM stays when a session is stopped
    try:
        started = SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (PySparkException, Py4JError, ValueError) as error:
        told = failure_of(error)
        if "Master URL" in told:
            raise UsageError(f"--master {master}: {told}") from error
        raise ServiceError(f"Spark does not start: {told}") from error
    if not _LOCAL.match(master):
        add_package(started)
    return started


def _launched(conf: SparkConf) -> JavaGateway:
    """A JVM whose talk goes to a file, and that leaves nothing where we are (``artifacts/``)."""
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    work = Path(tempfile.mkdtemp(prefix="migrate-scan-"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    log = work / "log"
    with log.open("wb") as stderr:
        try:
            # PySpark leaves it without types.
            return launch_gateway(conf, {"stderr": stderr, "cwd": work})  # type: ignore[no-untyped-call]
        except (PySparkException, OSError) as error:
            raise UsageError(f"Spark does not start: {_last(log)}") from error


def _last(log: Path) -> str:
    """The end of what its JVM said, or what stood in its place; without stack traces."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    noise = ("at ", "WARNING:", "Using Spark's default log4j")
    told = [line for line in lines if line and " WARN " not in line and not line.startswith(noise)]
    return redact_secrets("; ".join(told[-_LAST_LINES:])) or "its JVM ended without a word"


def failure_of(error: Exception) -> str:
    """What Spark says, and what it says of a Python worker; between the two lie stack traces."""
    lines = [_JAVAS_OWN.sub("", line) for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines[1:] if _CAUSE.match(line)]
    return redact_secrets("; ".join([*lines[:1], *causes[-1:]]))


def add_package(spark: SparkSession) -> None:
    """Let the executors of a session import ``decoder`` and ``migrate``, as they are here.

    They need nothing else but what Spark itself does with Arrow, and beside it ``cramjam`` for
    compressed state and fsspec with its library for checkpoints in a store.
    """
    from pyspark.sql import SparkSession

    directory = Path(tempfile.mkdtemp(prefix="migrate-package-"))
    # Spark serves the file to executors for as long as the session lives.
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive = write_package(directory / "flink_offset_migrate.zip")
    if spark.version < "4" and isinstance(spark, SparkSession):  # not Connect's
        spark.sparkContext.addPyFile(str(archive))
    else:
        spark.addArtifacts(str(archive), pyfile=True)


def write_package(path: Path) -> Path:
    """A zip of ``decoder`` and ``migrate``, for ``--py-files``; the path itself."""
    import zipfile

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in (decoder, migrate):
            (root,) = package.__path__
            for file in sorted(Path(root).rglob("*.py")):
                archive.write(file, Path(package.__name__, file.relative_to(root)))
    return path
