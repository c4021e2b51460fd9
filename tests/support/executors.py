"""Run Spark with executors whose Python lacks this package, to test ``add_package``.

Spark's `local-cluster` starts a process for each executor, as a real cluster does. The executors'
Python has only the packages that PySpark needs for Arrow. The driver is `executors_driver.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.support.jdk import QUICK_START, find_jdk

# The packages that a release of PyArrow may need. The installed ones are linked.
_FOR_ARROW = ("pyarrow", "pyarrow.libs", "numpy", "numpy.libs")
_FOR_PANDAS = ("pandas", "pandas.libs", "dateutil", "pytz", "six", "tzdata")
_DRIVER = Path(__file__).with_name("executors_driver.py")
_SECONDS = 500


def make_bare_python(directory: Path) -> Path:
    """Make a Python environment with PyArrow and pandas, but without this package."""
    venv.create(directory, symlinks=True, with_pip=False)
    (packages,) = directory.glob("lib/python*/site-packages")
    spec = find_spec("pyarrow")
    assert spec is not None and spec.origin is not None
    origin = Path(spec.origin).parents[1]
    for name in (*_FOR_ARROW, *_FOR_PANDAS):
        for module in (origin / name, origin / f"{name}.py"):
            if module.exists():
                (packages / module.name).symlink_to(module)
    return directory / "bin" / "python"


def submit_driver(
    python: Path, root: Path, state: Path, *submit: str, master: str
) -> dict[str, Any]:
    """Submit the driver, with executors that run `python`, and return the driver's output.

    The driver reads the positions of the checkpoints under `root`, and the keyed state of `state`.
    """
    import pyspark

    with tempfile.TemporaryDirectory() as work:
        # The workers of a local cluster write into Spark's directory. This directory therefore has
        # only links to Spark's files.
        home = Path(work, "spark")
        home.mkdir()
        for entry in Path(pyspark.__path__[0]).iterdir():
            if entry.name != "work":
                (home / entry.name).symlink_to(entry)
        conf = {
            "spark.driver.extraJavaOptions": " ".join(QUICK_START),
            "spark.executor.extraJavaOptions": " ".join(QUICK_START),
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.local.dir": f"{work}/local",
            "spark.sql.warehouse.dir": f"{work}/warehouse",
            "spark.sql.shuffle.partitions": "2",
            "spark.task.maxFailures": "1",
            "spark.ui.enabled": "false",
        }
        command = [str(home / "bin" / "spark-submit"), "--master", master, *submit]
        for key, value in conf.items():
            command += ["--conf", f"{key}={value}"]
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_jdk()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(home),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": str(python),
        }
        # Executors would inherit PYTHONPATH. The driver finds PySpark without it.
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(
            [*command, str(_DRIVER), str(root), str(state)],
            env=environment,
            cwd=work,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-4000:])
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed
