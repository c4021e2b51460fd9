"""Make environments with versions of Spark that differ from .venv, and run programs in them.

An environment is a folder in the cache with PySpark and py4j, by their locked hashes. The folder
comes first on Python's path, and so replaces the PySpark in .venv.

    python -m tests.support.spark_versions 4.1                        # make the environment
    python -m tests.support.spark_versions 4.1 pytest tests/integration/test_spark_seed.py
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from jgo.util.toml import tomllib

from tests.support.jars import cache_dir, classpath

LOCK = Path(__file__).with_suffix(".toml")
ROOT = Path(__file__).parents[2]
# The release of PySpark in .venv; it needs no environment.
VENV_RELEASE = version("pyspark")


class SparkVersionError(RuntimeError):
    """An environment cannot be made."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a version of Spark, installed or not.

    Attributes:
        name: the minor version of Spark, such as ``4.1``.
        version: the release of Spark.
    """

    name: str
    version: str
    requirements: tuple[str, ...]

    @property
    def path(self) -> Path:
        return cache_dir() / "pyspark" / self.version

    @property
    def is_made(self) -> bool:
        return self.path.is_dir()

    def make(self) -> None:
        """Install PySpark and fetch its Kafka connector, if they are not in the cache.

        Raises:
            SparkVersionError: PySpark cannot be installed.
        """
        classpath(f"spark-{self.version}")
        if self.is_made:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.path.parent) as staging:
            requirements = Path(staging, "requirements.txt")
            requirements.write_text("\n".join(self.requirements), encoding="ascii")
            stage = Path(staging, "stage")
            # PySpark is a source archive. The locked tools in .venv build it.
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            command += ["--no-build-isolation", "--require-hashes", "--target", str(stage)]
            made = subprocess.run(
                [*command, "-r", str(requirements)], capture_output=True, text=True, check=False
            )
            if made.returncode != 0:
                raise SparkVersionError(f"PySpark {self.version}: {made.stderr.strip()}")
            shutil.rmtree(stage / "bin", ignore_errors=True)  # its scripts contain the stage folder
            stage.rename(self.path)

    def variables(self) -> dict[str, str]:
        """Return the environment variables that let Python find this PySpark first."""
        path = os.pathsep.join([str(self.path), str(ROOT)])
        return {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}

    def run(self, module: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a Python module with this PySpark, and capture its output."""
        return subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            env=self.variables(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )


def minor_version(release: str) -> str:
    """Return the minor version of a release: 4.0 for 4.0.0."""
    return ".".join(release.split(".")[:2])


@cache
def environments() -> Mapping[str, Environment]:
    """Return every locked environment, by the minor version of Spark."""
    with LOCK.open("rb") as file:
        locked = tomllib.load(file)
    return {
        name: Environment(name, entry["version"], tuple(entry["requirements"]))
        for name, entry in locked.items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.spark_versions",
        description="Make the environment of a Spark, and run a Python module in it.",
    )
    parser.add_argument("name", choices=environments(), help="a line of Spark")
    parser.add_argument("module", nargs="?", help="such as pytest")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(argv)
    environment = environments()[chosen.name]
    environment.make()
    if chosen.module is None:
        print(environment.path)
        return 0
    command = [sys.executable, "-m", chosen.module, *chosen.arguments]
    return subprocess.run(command, env=environment.variables(), cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
