"""Provide a command's Spark session, and a zip file of the packages for its executors."""

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
from typing import TYPE_CHECKING, cast

import decoder
import migrate
from migrate.model.catalog import SPARK_FAILED, SPARK_NOT_STARTED
from migrate.model.errors import ServiceError, UsageError
from migrate.model.option_names import option
from migrate.model.secrets import redact_secrets
from migrate.model.wording import install_command

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

_APP = "migrate"
# The address of a Spark Connect server, such as sc://host:15002.
_REMOTE = "SPARK_REMOTE"
_ONLY_CONNECT = (
    "the installed PySpark contains only Spark Connect (pyspark-client), so it cannot start Spark; "
    f"set {_REMOTE} to the address of a server, connect a session first, or install the complete "
    f"PySpark with {install_command('spark')}"
)
# If this variable is set, spark-submit has started the JVM and applied all settings.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
# Masters whose executors run on this machine, in the driver's JVM and with the same Python.
_LOCAL = re.compile(r"local(\[|$)")
# The IDs of the Spark Connect sessions whose server has the package.
_HAVE_PACKAGE = set[str]()
_LAST_LINES = 4
_NOISE = ("at ", "WARNING:", "Using Spark's default log4j")
# The text that py4j or Java prints before the name of an exception.
_JAVA_PREFIX = re.compile(r"^\s*(: |Caused by: )?")
_CAUSE = re.compile(r"(\w+\.)*\w+(Error|Exception)\b|(decoder|migrate)(\.\w+)+: ")


def runs_on_spark(master: str | None) -> bool:
    """Return whether a command runs on Spark.

    A command runs on Spark if a master is set, ``spark-submit`` has started this process, or a
    session exists.

    Raises:
        UsageError: a master is set, but PySpark is not installed.
    """
    if master is not None:
        if find_spec("pyspark") is None:
            raise UsageError(
                f"{option('master')} requires PySpark, but PySpark is not installed; install it "
                f"with {install_command('spark')}"
            )
        return True
    # If PySpark has not been imported, there is no session.
    return _SUBMITTED in os.environ or bool(sys.modules.get("pyspark") and _active_session())


@contextmanager
def session(
    master: str | None, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SparkSession]:
    """Yield the active Spark session; without one, start or connect a session, and later stop it.

    Under ``spark-submit``, a session is started with the settings of ``spark-submit``.

    Args:
        master: the master of a new session; must be None if a session already exists, or under
            ``spark-submit``. If it is None, ``pyspark-client`` connects to a server.
        settings: the settings of a new session; ignored if ``master`` must be None.

    Raises:
        UsageError: a master is set although a session already exists or ``spark-submit`` started
            the process; there is no master, session, or ``spark-submit``; the master's URL is not
            valid; or Spark's JVM did not start.
        ServiceError: the session did not start for another reason, or Spark failed inside the
            ``with`` block.
    """
    active = _active_session()
    if active is not None and master is not None:
        raise UsageError(f"a Spark session already exists; omit {option('master')}")
    spark = active or _start(master, settings)
    try:
        yield spark
    except spark_errors() as error:
        raise ServiceError(SPARK_FAILED(failure=failure_of(error))) from error
    finally:
        if active is None:
            spark.stop()


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the classes of the errors that Spark raises.

    ``pyspark-client`` contains only Spark Connect, so it lacks py4j and its errors.
    """
    from pyspark.errors import PySparkException

    if find_spec("py4j") is None:
        return (PySparkException,)
    from py4j.protocol import Py4JError

    return (PySparkException, Py4JError)


def current_session() -> SparkSession:
    """Return the active session; without one, start a session with Spark's own defaults.

    ``SparkSession.builder.getOrCreate`` finds a Spark Connect session only if the server's URL is
    in the environment. With ``pyspark-client``, the builder of Spark Connect is used instead.

    Raises:
        UsageError: there is no session, and ``pyspark-client`` cannot start Spark.
    """
    active = _active_session()
    if active is not None:
        return active
    from pyspark.sql import SparkSession

    if find_spec("py4j") is not None:
        return SparkSession.builder.getOrCreate()
    return _connected_session()


def connects_to_server() -> bool:
    """Return whether ``pyspark-client`` is installed, and SPARK_REMOTE is set."""
    return _REMOTE in os.environ and find_spec("pyspark") is not None and find_spec("py4j") is None


def _connected_session() -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    try:
        # This finds a session that was connected in another thread.
        session = ConnectSession.builder.getOrCreate()
    except PySparkException as error:
        if _REMOTE not in os.environ:
            raise UsageError(_ONLY_CONNECT) from error
        # The Spark Connect builder does not read SPARK_REMOTE.
        session = ConnectSession.builder.remote(os.environ[_REMOTE]).getOrCreate()
    # PySpark 4.0's types do not state that this class replaces the classic session.
    return cast("SparkSession", session)


def _active_session() -> SparkSession | None:
    import pyspark
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    context = getattr(pyspark, "SparkContext", None)  # missing in pyspark-client
    if active is None and context is not None and context._active_spark_context is not None:
        # A different thread started the session, so it is not this thread's active session.
        active = SparkSession.builder.getOrCreate()
    return active


def _start(master: str | None, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    if _SUBMITTED in os.environ:
        if master is not None:
            raise UsageError(
                "the program runs under spark-submit, which has its own --master; pass the master "
                "to spark-submit"
            )
        return SparkSession.builder.getOrCreate()
    if master is None and connects_to_server():
        return _connected_session()
    if master is None:
        raise UsageError(
            f"no Spark session exists; pass {option('master')}, or create a session first"
        )
    if find_spec("py4j") is None:
        raise UsageError(_ONLY_CONNECT)
    from pyspark import SparkConf, SparkContext

    defaults = {
        "spark.master": master,
        "spark.app.name": _APP,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        # Connections to the driver come only from this machine, and the machine's host name may not
        # resolve.
        defaults |= dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False).setAll(list({**defaults, **settings}.items()))
    gateway = SparkContext._gateway or _launch_jvm(conf)  # a JVM outlives its session, so reuse it
    errors: tuple[type[Exception], ...] = (*spark_errors(), ValueError)
    try:
        started = SparkSession(SparkContext(conf=conf, gateway=gateway))
    except errors as error:
        reason = failure_of(error)
        if "Master URL" in reason:
            raise UsageError(f"{option('master', master)}: {reason}") from error
        raise ServiceError(SPARK_NOT_STARTED(failure=reason)) from error
    if not _LOCAL.match(master):
        add_package(started)
    return started


def _launch_jvm(conf: SparkConf) -> JavaGateway:
    """Start a JVM with a temporary working directory for its output and for Spark's own folders."""
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    work = Path(tempfile.mkdtemp(prefix="migrate-scan-"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    log = work / "log"
    with log.open("wb") as stderr:
        try:
            # PySpark has no types for this function.
            return launch_gateway(conf, {"stderr": stderr, "cwd": work})  # type: ignore[no-untyped-call]
        except (PySparkException, OSError) as error:
            output = log.read_text(errors="replace")
            reason = redact_secrets(last_lines(output))
            raise UsageError(f"Spark did not start: {reason}") from error


def failure_of(error: Exception) -> str:
    """Return Spark's error message without stack traces or secrets."""
    return redact_secrets(summarize_failure(str(error)))


def summarize_failure(message: str) -> str:
    """Return a message's first line and the last line after it that starts with an exception."""
    lines = [_JAVA_PREFIX.sub("", line).rstrip() for line in message.splitlines() if line.strip()]
    causes = [line for line in lines[1:] if _CAUSE.match(line)]
    return "; ".join([*lines[:1], *causes[-1:]]) or "no reason reported"


def last_lines(output: str) -> str:
    """Return the last lines of a JVM's output, without warnings or stack traces."""
    lines = [line.strip() for line in output.splitlines()]
    kept = [line for line in lines if line and " WARN " not in line and not line.startswith(_NOISE)]
    return "; ".join(kept[-_LAST_LINES:]) or "no reason reported"


def add_package(spark: SparkSession) -> None:
    """Send ``decoder`` and ``migrate`` to the executors of a session.

    With Spark Connect, the packages are sent to the server. In this case, ``read_checkpoints`` and
    ``read_keyed_state`` send them automatically.

    The executors also need the packages that Spark requires for Arrow. Compressed state requires
    ``cramjam``. Checkpoints in an object store require fsspec and the store's library.
    """
    directory = Path(tempfile.mkdtemp(prefix="migrate-package-"))
    # Executors may fetch the file while the session exists, so the file is removed only at exit.
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive = write_package(directory / "flink_offset_migrate.zip")
    if spark.version < "4" and not is_connect(spark):
        spark.sparkContext.addPyFile(str(archive))
    else:
        spark.addArtifacts(str(archive), pyfile=True)


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is a Spark Connect session, with no Spark in this process."""
    return "connect" in type(spark).__module__


def send_package_to_server(spark: SparkSession) -> None:
    """Send ``decoder`` and ``migrate`` to a Spark Connect server, once per session.

    The server runs functions from the client and may lack both packages. Other sessions do not need
    this call.
    """
    if not is_connect(spark):
        return
    session_id = cast("ConnectSession", spark).session_id
    if session_id not in _HAVE_PACKAGE:
        add_package(spark)
        _HAVE_PACKAGE.add(session_id)


def write_package(path: Path) -> Path:
    """Write a zip file of ``decoder`` and ``migrate`` for ``--py-files``, and return its path."""
    import zipfile

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in (decoder, migrate):
            (root,) = package.__path__
            for file in sorted(Path(root).rglob("*.py")):
                archive.write(file, Path(package.__name__, file.relative_to(root)))
    return path
