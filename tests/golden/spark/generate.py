"""Regenerate the golden checkpoint locations, each with the Spark version in its name.

    python -m tests.golden.spark.generate [NAME…]     # such as 4.1; without one, all

State stores are omitted, because they make up most of the bytes, and no test reads them. The log of
the file source contains the path of the folder that it read, so this folder gets a neutral name.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from tests.golden.spark.jobs import GOLDEN, MANIFEST, topics
from tests.support.kafka import Broker
from tests.support.spark_versions import ROOT, VENV_RELEASE, environments, minor_version

_RUN = "tests.golden.spark.run"
_FOLDER = re.compile(rb'file:///[^"]*/')


def generate(name: str) -> list[dict[str, Any]]:
    """Write the checkpoint locations of one minor version of Spark; return the manifest entries."""
    in_venv = name == minor_version(VENV_RELEASE)
    version = VENV_RELEASE if in_venv else environments()[name].version
    with Broker() as broker, tempfile.TemporaryDirectory(prefix="spark-golden-") as work:
        for topic, partitions in topics(version).items():
            broker.create_topic(topic, partitions)
        arguments = (broker.bootstrap_servers, work)
        if in_venv:
            command = [sys.executable, "-m", _RUN, *arguments]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        else:
            environments()[name].make()
            done = environments()[name].run(_RUN, *arguments)
        if done.returncode != 0:
            raise RuntimeError(f"Spark {version}: {done.stderr}")
        told = json.loads(done.stdout)
        assert told["spark"] == version
        shutil.rmtree(GOLDEN / name, ignore_errors=True)
        without_state = shutil.ignore_patterns("state")
        shutil.copytree(work, GOLDEN / name, ignore=without_state)
    _forget_the_machine(name)
    return _entries(name, version, told["jobs"])


def _forget_the_machine(name: str) -> None:
    for path in (GOLDEN / name).glob("*/sources/*/0"):
        content = path.read_bytes()
        neutral = _FOLDER.sub(b"file:///data/", content)
        if neutral != content:
            path.write_bytes(neutral)
            path.with_name(".0.crc").unlink(missing_ok=True)


def _entries(name: str, version: str, jobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{name}/{job}",
            "spark": version,
            **said,
            "files": {
                str(path.relative_to(GOLDEN)): sha256(path.read_bytes()).hexdigest()
                for path in sorted((GOLDEN / name / job).rglob("*"))
                if path.is_file()
            },
        }
        for job, said in jobs.items()
    ]


def has_golden(name: str) -> bool:
    """Return whether checkpoint locations of this minor version of Spark exist."""
    return any(entry["name"].startswith(f"{name}/") for entry in _manifest())


def renew(name: str) -> None:
    """Write the checkpoint locations of one minor version of Spark, and update the manifest."""
    entries = generate(name)
    kept = [entry for entry in _manifest() if not entry["name"].startswith(f"{name}/")]
    ordered = sorted([*kept, *entries], key=lambda entry: str(entry["name"]))
    text = json.dumps({"checkpoints": ordered}, indent=2)
    MANIFEST.write_text(text + "\n", encoding="ascii")


def _manifest() -> list[dict[str, Any]]:
    if not MANIFEST.exists():
        return []
    entries: list[dict[str, Any]] = json.loads(MANIFEST.read_text())["checkpoints"]
    return entries


def main(names: list[str]) -> None:
    for name in names or sorted({minor_version(name) for name in (VENV_RELEASE, *environments())}):
        renew(name)


if __name__ == "__main__":
    main(sys.argv[1:])
