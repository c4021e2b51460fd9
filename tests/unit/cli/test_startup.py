"""Check the imports of each command, because start-up dominates the time of small commands.

Each command runs as a process and prints its loaded modules at its end.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from migrate.cli.help import commands
from migrate.cli.main import load_function
from tests.support.checkpoints import splits, write_source

pytestmark = pytest.mark.slow  # each test starts a process

ROOT = Path(__file__).parents[3]

# No command requires these modules if it queries no service and reads only local files.
_NEVER = {
    "asyncio",
    "confluent_kafka",
    "fsspec",
    "http",
    "javaproperties",
    "jinja2",
    "multiprocessing",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
    "ssl",
    "urllib.request",
}
# Reading a checkpoint does not require the options and checks of moves, or Kafka.
_OF_MOVES = {
    "migrate.cli.kafka_environment",
    "migrate.inputs.flink.choose_source",
    "migrate.inputs.plan_input",
    "migrate.kafka",
    "migrate.model.cluster_snapshot",
    "migrate.model.policies",
    "migrate.model.secrets",
    "migrate.model.topic_pattern",
    "migrate.moves.options",
    "migrate.planning",
}
# A move from a checkpoint to a new query in the job's cluster does not require these modules.
_OF_OTHER_MOVES = {
    "importlib.metadata",
    "migrate.inputs.hudi_text",
    "migrate.inputs.spark_query",
    "migrate.kafka",
    "migrate.moves.find_copies",
    "migrate.moves.plan_origin",
    "migrate.moves.spark_sources",
    "migrate.moves.translate",
    "migrate.planning.verify",
    "migrate.sinks.delta",
    "migrate.sinks.hudi",
    "migrate.sinks.iceberg",
    "migrate.sinks.paimon",
    "migrate.sinks.spark_files",
}
_OF_TABLES = {"migrate.report.screen", "migrate.report.table"}
_UNDER_A_HOOK = """
import atexit, json, sys
before = set(sys.modules)
atexit.register(lambda: print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr))
from migrate.cli import main
main()
"""


def _loaded(*arguments: str | Path) -> set[str]:
    """Return the modules that a run of ``migrate`` has loaded, without those of Python itself."""
    done = subprocess.run(
        [sys.executable, "-c", _UNDER_A_HOOK, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "_MIGRATE_COMPLETE": ""},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    loaded: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(loaded)


def _among(loaded: set[str], unwanted: set[str]) -> set[str]:
    """Return the modules and packages in ``unwanted`` that were loaded at least in part."""
    return {
        name for name in unwanted if any(f"{module}.".startswith(f"{name}.") for module in loaded)
    }


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["inspect", "CHK"], {"pydantic", "rich", "mmh3", *_OF_MOVES}),
        (
            ["inspect", "CHK", "--format", "json"],
            {"pydantic", "rich", "mmh3", *_OF_MOVES, *_OF_TABLES},
        ),
        (
            ["inspect", "CHK", "--format", "csv"],
            {"pydantic", "rich", "mmh3", *_OF_MOVES, *_OF_TABLES},
        ),
        (["state", "CHK", "--format", "json"], {"pydantic", "rich", "mmh3", "migrate.planning"}),
        (["to-spark", "CHK"], {"rich", "migrate.report", "migrate.spark", *_OF_OTHER_MOVES}),
        (["scan", "CHK"], {"pydantic", "rich", "mmh3"}),
        (["explain", "not-checked"], {"pydantic", "mmh3", "decoder", "migrate.moves", *_OF_TABLES}),
        (
            ["--help"],
            {"pydantic", "mmh3", "decoder", "migrate.inputs.flink.extract", "migrate.report"},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_command_loads_only_required_modules(
    tmp_path: Path, arguments: list[str], unwanted: set[str]
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    loaded = _loaded(*(chk if argument == "CHK" else argument for argument in arguments))
    assert _among(loaded, _NEVER | unwanted) == set()
    # Only the module of the command that ran is loaded, and no other command.
    modules = {name: load_function(name).__module__ for name in commands()}
    ran = {modules[arguments[0]]} if arguments[0] in commands() else set()
    assert set(modules.values()) & loaded == ran


@pytest.mark.parametrize("name", sorted(_OF_MOVES | _OF_OTHER_MOVES | _OF_TABLES))
def test_modules_in_lists_of_unwanted_imports_exist(name: str) -> None:
    """A misspelled module in these lists would never be detected as loaded."""
    assert find_spec(name) is not None


def test_startup_check_detects_loaded_modules(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    looked_for = {"migrate.report.table", "decoder.kafka", "asyncio"}
    assert _among(_loaded("inspect", chk), looked_for) == looked_for - {"asyncio"}


def test_library_loads_no_heavy_modules() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, migrate; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert _among(set(done.stdout.split()), _NEVER | {"pydantic", "rich", "typer", "decoder"}) == (
        set()
    )


@pytest.mark.parametrize("name", commands())
def test_command_summary_is_first_paragraph_of_its_help(name: str) -> None:
    help_text = inspect.getdoc(load_function(name))
    assert help_text is not None
    assert " ".join(help_text.split("\n\n")[0].split()) == commands()[name]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("migrate insp", ["inspect"]),
        ("migrate inspect --form", ["--format"]),
        ("migrate inspect --format ", ["table", "json", "csv"]),
        ("migrate verify --source", ["--source"]),
    ],
)
def test_shell_completes_commands_and_options(typed: str, offered: list[str]) -> None:
    words = typed.split(" ")
    done = subprocess.run(
        [sys.executable, "-c", "import sys\nsys.argv = ['migrate']\n" + _MAIN],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={
            **os.environ,
            "_MIGRATE_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(words) - 1),
        },
    )
    assert done.stdout.split() == offered


_MAIN = "from migrate.cli import main\nmain()"
