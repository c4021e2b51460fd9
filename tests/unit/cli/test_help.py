"""``--help``, ``python -m migrate``, and the first flags of a new user."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fsspec.registry import _registry

from migrate.cli.help import commands
from migrate.cli.main import load_command
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate


@pytest.fixture(autouse=True)
def _at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", commands())
def test_help_text_is_complete_and_fits_80_columns(name: str) -> None:
    """Regression: The help had truncated metavars, such as ``offs…``, and ``<bool>`` for each flag.

    The text of the options was only 22 columns wide.
    """
    shown = migrate(name, "--help").stdout
    text = " ".join(shown.split())
    assert "<bool>" not in shown
    command = load_command(name)
    for parameter in command.get_params(command.make_context(name, [], resilient_parsing=True)):
        assert " ".join(parameter.help.split()) in text
        if parameter.metavar is not None:
            assert f" {parameter.metavar} " in text
        for flag in parameter.opts if parameter.param_type_name == "option" else ():
            assert f" {flag}" in text
    assert "None" not in shown  # not "[default: None]" for a required option
    commands = ("  $ migrate ", "  # ")
    assert all(len(line) <= 80 for line in shown.splitlines() if not line.startswith(commands))


@pytest.mark.parametrize("name", commands())
def test_short_help_fits_on_a_screen(name: str) -> None:
    """Regression: The short help of to-spark had 107 lines."""
    shown = migrate(name, "-h").stdout
    assert len(shown.splitlines()) <= 45
    assert shown.count("  $ migrate ") == 2
    every_option = migrate(name, "--help").stdout
    daily, every = (
        set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M)) for text in (shown, every_option)
    )
    assert daily < every or (name == "explain" and shown == every_option)


def test_command_list_fits_on_one_screen() -> None:
    assert len(migrate("-h").stdout.splitlines()) <= 50


@pytest.mark.parametrize("name", commands())
def test_help_lists_commands_that_require_execute_option(name: str) -> None:
    """A command is listed under "(only with --execute)" if and only if it has this option."""
    commands = migrate("--help").stdout
    section = commands.partition("(only with --execute)\n")[2].partition("\n\n")[0]
    assert (f"  {name} " in section) == ("--execute" in migrate(name, "-h").stdout)


@pytest.mark.parametrize(
    "option",
    [
        "--on-expired HOW [default: fail; or earliest]",
        "--on-beyond-end HOW [default: fail; or latest]",
        "--new-partitions HOW [default: as-flink; or fail, earliest, latest]",
        "--gone fail|skip [default: fail]",
        "--merge-sources HOW [default: fail; or min]",
    ],
    ids=lambda option: option.split()[0],
)
def test_help_lists_values_of_policy_options(option: str) -> None:
    flag, default = option.split(" [")
    shown = " ".join(migrate("to-spark", "--help").stdout.split())
    assert re.search(rf" {re.escape(flag)} [^\[]+ \[{re.escape(default)} ", shown)


def test_short_help_contains_only_common_options() -> None:
    first, rest = migrate("to-spark", "-h").stdout, migrate("to-spark", "--help").stdout
    daily = ("--checkpoint-dir", "--bootstrap-servers", "--source", "--format")
    for common in (*daily, "--sink", "--source-group", "--flink-rest"):
        assert f"{common} " in first
    for rare in ("-X", "--topic-map", "--on-expired", "--spark-version", "--verbose"):
        assert rare in rest and rare + " " not in first
    # The notes of commit-group recommend this option.
    assert "--flink-rest " in migrate("commit-group", "-h").stdout


def test_help_wraps_on_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    shown = migrate("inspect", "--help").stdout
    assert all(len(line) <= 50 for line in shown.split("\n\nExamples\n")[0].splitlines())


def test_command_list_contains_summary_of_each_command() -> None:
    shown = " ".join(migrate("--help").stdout.split())
    for name, line in commands().items():
        assert f" {name} {line}" in shown


def test_python_m_migrate_prints_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "migrate", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == migrate("--version").stdout


@pytest.mark.parametrize("command", ["commit-group", "rollback"])
def test_dry_run_option_is_accepted_but_not_with_execute(command: str, tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    group = ["--group", "g"] if command == "commit-group" else []
    what: list[str | Path] = [command, chk, *group]
    both = migrate(*what, "-b", "127.0.0.1:1", "--dry-run", "--execute", "--yes")
    assert (both.code, both.stderr) == (2, "migrate: --execute cannot be combined with --dry-run\n")
    alone = migrate(*what, "-b", "127.0.0.1:1", "--dry-run", "-X", "nonsense=1")
    assert alone.code in (2, 3)  # accepted; the error concerns a different argument
    assert "--dry-run" not in alone.stderr


def test_help_command_matches_help_option() -> None:
    """Regression: The error was "No such command 'help'". git and docker have such a command."""
    assert migrate("help").stdout == migrate("--help").stdout
    assert migrate("help", "to-spark").stdout == migrate("to-spark", "--help").stdout
    assert migrate("help", "nothing").code == 2


def test_version_has_a_short_flag() -> None:
    assert migrate("-V").stdout == migrate("--version").stdout


@pytest.mark.parametrize(
    ("name", "option", "alias", "argument"),
    [
        *(
            (name, "--allow-ran-on", "--allow-kept-running", "allow_ran_on")
            for name in ("to-spark", "to-flink", "commit-group")
        ),
        *(
            (name, "--allow-moved-on", "--allow-newer-commits", "allow_moved_on")
            for name in ("commit-group", "follow", "verify", "verify-state")
        ),
        ("cut-over", "--back", "--roll-back", "back"),
    ],
)
def test_alias_sets_same_argument_as_option(
    name: str, option: str, alias: str, argument: str
) -> None:
    command = load_command(name)
    assert f"{option}, {alias}" in migrate(name, "--help").stdout
    for flag in (option, alias):
        with command.make_context(name, [flag], resilient_parsing=True) as context:
            changed = {key for key, value in context.params.items() if value is True}
            assert changed == {argument}


@pytest.mark.parametrize("form", ["--bootstrap-server {}", "--bootstrap-server={}"])
def test_bootstrap_server_alias_is_accepted(tmp_path: Path, form: str) -> None:
    """Regression: The error was "No such option: --bootstrap-server"."""
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    option = form.format("http://broker:9092").split()
    for command in (("to-spark", chk), ("commit-group", chk, "--group", "g"), ("scan", tmp_path)):
        result = migrate(*command, *option)
        assert (result.code, result.stdout) == (2, "")
        assert "http://broker:9092 is not a broker's address" in result.stderr
    twice = migrate("to-spark", chk, "-b", "a:1", "--bootstrap-server", "b:1")
    assert "--bootstrap-servers takes one value, but was passed 2" in " ".join(twice.stderr.split())
    assert migrate("inspect", chk, "--bootstrap-server", "b:1").code == 2


@pytest.mark.parametrize(
    ("receipt", "install"),
    [
        ("pipx_metadata.json", "pipx install --force"),
        ("uv-receipt.toml", "uv tool install --force"),
        ("pyvenv.cfg", "pip install"),
    ],
)
def test_error_for_missing_extra_suggests_installer_of_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receipt: str, install: str
) -> None:
    """Regression: Under pipx, the suggested pip command changed a different environment."""
    (tmp_path / receipt).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(_registry, "s3", raising=False)  # registered by an earlier test
    message = migrate("inspect", "s3://bucket/chk-1").stderr
    assert f"{install} '.[s3]' in a clone, or {install} 'FILE.whl[s3]'" in message
