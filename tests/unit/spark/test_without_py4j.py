"""Import ``migrate.spark`` with ``pyspark-client``. This package has Spark Connect, but lacks py4j.

A new process hides ``py4j`` and ``pyspark.core``, because ``pyspark-client`` 4.0.0 lacks both.
PySpark then takes the code paths of ``pyspark-client`` (``is_remote_only`` in PySpark 4.0.0).
"""

from __future__ import annotations

import subprocess
import sys

import pytest

_HIDE = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "py4j" or name.startswith("pyspark.core"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.partition(".")[0] == "py4j" else found(name, package)
)
sys.meta_path.insert(0, Hidden())
import pyspark.util
assert pyspark.util.is_remote_only()
"""


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _HIDE + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def test_every_name_in_spark_package_can_be_imported_without_py4j() -> None:
    """Regression: ``from migrate.spark import rehearse`` imported py4j."""
    printed = _run(
        "import migrate.spark\n"
        "for name in migrate.spark.__all__:\n"
        "    assert getattr(migrate.spark, name) is not None\n"
        "assert not [name for name in sys.modules if name.startswith('py4j')]\n"
        "from migrate.spark import rehearse, prime\n"
        "print(rehearse.__name__, prime.__name__, len(migrate.spark.__all__) > 10)\n"
    )
    assert printed == "rehearse prime True\n"


@pytest.mark.parametrize("master", ["None", "'local[1]'"])
def test_error_without_spark_session_explains_limit_of_spark_connect(master: str) -> None:
    printed = _run(
        "from migrate.model.errors import UsageError\n"
        "from migrate.spark.session import runs_on_spark, session, spark_errors\n"
        "print(runs_on_spark(None), [error.__name__ for error in spark_errors()])\n"
        "try:\n"
        f"    with session({master}):\n"
        "        pass\n"
        "except UsageError as error:\n"
        "    print(error)\n"
    )
    first, second, _ = printed.split("\n", 2)
    assert first == "False ['PySparkException']"
    reason = "no Spark session exists" if master == "None" else "contains only Spark Connect"
    assert reason in second


def test_existing_spark_connect_session_is_found_without_url() -> None:
    """Regression: ``rehearse`` failed with CONNECT_URL_NOT_SET. The test needs no server."""
    printed = _run(
        "import os, threading\n"
        "from pyspark.sql import SparkSession\n"
        "connected = SparkSession.builder.remote('sc://127.0.0.1:1').getOrCreate()\n"
        "from migrate.spark.session import current_session\n"
        "found = [current_session()]\n"
        "thread = threading.Thread(target=lambda: found.append(current_session()))\n"
        "thread.start()\n"
        "thread.join()\n"
        "print([session is connected for session in found], flush=True)\n"
        "os._exit(0)\n"  # a normal exit would wait for the session's server
    )
    assert printed == "[True, True]\n"


def test_pyspark_client_without_session_is_refused() -> None:
    printed = _run(
        "from migrate.model.errors import UsageError\n"
        "from migrate.spark.session import current_session\n"
        "try:\n"
        "    current_session()\n"
        "except UsageError as error:\n"
        "    print(error)\n"
    )
    assert "contains only Spark Connect" in printed and "connect a session first" in printed
