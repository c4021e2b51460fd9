"""Run the core without the extensions and the keyed-state reader, in a copy of the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.extensions import EXTENSIONS
from migrate.storage.json_models import write_file
from migrate.targets.group import rollback_file

pytestmark = pytest.mark.slow  # a process for each command

ROOT = Path(__file__).parents[2]
(SAVEPOINT,) = (ROOT / "tests/golden/2.0/stop").glob("savepoint-*")
# The tests of the core that run in the copy. Other tests start processes or need extensions.
_TESTS = (
    "inputs/flink/test_extract",
    "inputs/flink/test_kafka_source",
    "inputs/test_position_inputs",
    "model/test_offset_metadata",
    "moves/test_verify_plan",
    "planning/test_obstacles",
    "planning/test_partition",
    "planning/test_plan_file",
    "planning/test_policies",
    "planning/test_recheck",
    "targets/group/test_commit",
    "targets/group/test_newer_commits",
    "targets/test_location",
)
_NOBODY = ("-b", "127.0.0.1:1", "-X", "default.api.timeout.ms=500")


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the copy."""
    copy = tmp_path_factory.mktemp("core")
    for name in ("decoder", "migrate"):
        left_out = shutil.ignore_patterns("extensions", "keyed_state", "__pycache__")
        shutil.copytree(ROOT / name, copy / name, ignore=left_out)
    shutil.copytree(
        ROOT / "tests/support", copy / "tests/support", ignore=shutil.ignore_patterns("java")
    )
    (copy / "tests/unit").mkdir()
    for name in ("__init__.py", "conftest.py", "unit/__init__.py"):
        shutil.copy(ROOT / "tests" / name, copy / "tests" / name)
    for name in _TESTS:
        test = f"tests/unit/{name}.py"
        (copy / test).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / test, copy / test)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for name in ("docs", "tests/golden", "tests/unit/field"):
        (copy / name).symlink_to(ROOT / name)
    return copy


def _run(core: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        cwd=core,
        env={**os.environ, "PYTHONPATH": str(core), "PYTEST_ADDOPTS": ""},
    )


def _migrate(core: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return _run(core, "-m", "migrate", *arguments)


def test_unit_tests_of_core_pass_without_extensions(core: Path) -> None:
    done = _run(core, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit")
    assert done.returncode == 0, done.stdout[-3000:]


def test_core_commands_work_without_extensions(core: Path, tmp_path: Path) -> None:
    location, plan = tmp_path / "query", tmp_path / "plan.json"
    partitions = ("--partitions", "orders:0-1")
    commands: dict[tuple[str | Path, ...], int] = {
        ("inspect", SAVEPOINT): 0,
        ("to-spark", SAVEPOINT, "--checkpoint-dir", location, *partitions): 0,
        ("to-spark", SAVEPOINT, "--plan-out", plan, *partitions): 0,
        ("show", plan): 0,
        ("show", location): 0,
        ("diff", SAVEPOINT, f"spark:{location}"): 0,
        ("verify", f"plan:{plan}", f"spark:{location}"): 0,
        ("explain", "not-checked"): 0,
        ("--help",): 0,
    }
    for command, code in commands.items():
        done = _migrate(core, *command)
        assert (done.returncode, done.stderr.count("Traceback")) == (code, 0), (command, done)
    rollback, committed = tmp_path / "rollback.json", {("orders", 0): Committed(3, "")}
    file = rollback_file.rollback_file(
        "commit", None, "broker:9092", GroupView("g", True, "Empty", "consumer"), committed, {}
    )
    write_file(file, rollback)
    # These commands fail only because no broker answers.
    with ThreadPoolExecutor() as pool:
        asked = (
            ("commit-group", SAVEPOINT, "--group", "g", *partitions, *_NOBODY),
            ("follow", f"spark:{location}", "--group", "g", "--once", *_NOBODY),
            ("rollback", rollback, *_NOBODY),
        )
        for done in pool.map(lambda command: _migrate(core, *command), asked):
            assert done.returncode == 6, done
            assert "127.0.0.1:1" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("extension", "command"),
    [(extension, command) for extension, names in EXTENSIONS.items() for command in names],
)
def test_command_of_missing_extension_reports_extension(
    core: Path, extension: str, command: str
) -> None:
    done = _migrate(core, command, "anything")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"migrate: migrate {command} requires the {extension} extension; it is not installed\n"
    )


def test_inspect_explains_that_keyed_queue_requires_keyed_state_extension(core: Path) -> None:
    join = ROOT / "tests/unit/field/14-delta-join/savepoint"
    done = _migrate(core, "inspect", join, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "(an async join), because the keyed_state extension is not installed" in done.stdout
