"""Typer's conversion of arguments, reproduced without pydantic."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperArgument, TyperOption

from migrate.cli.help import commands
from migrate.cli.main import load_command
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate


def _plain_values(parameter: Any) -> list[object]:
    """Return values for a parameter whose conversion does not require pydantic."""
    kind = parameter.type_descriptor.annotation
    if kind is str:
        return ["", "1", "a=b", "é", " x "]
    if kind == list[str]:
        return [["a=b"], ["", "é"], [" x "]]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [*kind, *(member.value for member in kind)]
    return []


@pytest.mark.parametrize("name", commands())
def test_argument_conversion_matches_typer(name: str) -> None:
    command = load_command(name)
    ctx = command.make_context(name, [], resilient_parsing=True)
    for parameter in command.get_params(ctx):
        if not hasattr(parameter, "type_descriptor"):
            pytest.skip("this Typer coerces without pydantic")
        typers_own = TyperOption if isinstance(parameter, TyperOption) else TyperArgument
        for value in _plain_values(parameter):
            ours = parameter.process_value(ctx, value)
            theirs = typers_own.process_value(parameter, ctx, value)
            assert (type(ours), ours) == (type(theirs), theirs)


def test_invalid_choice_error_lists_choices(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    result = migrate("inspect", chk, "--format", "sql")
    assert (result.code, result.stdout) == (2, "")
    assert "'sql' is not one of 'table', 'json', 'csv'" in " ".join(
        result.stderr.replace("│", " ").split()
    )


def test_typer_converts_path_arguments(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1, 2])})
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", chk, "--plan-out", plan, "--partitions", "t:1").code == 0
    assert migrate("to-spark", "--plan", plan).stdout == '{"t":{"1":2}}\n'


def test_invalid_choice_error_contains_no_pydantic_wording(tmp_path: Path) -> None:
    result = migrate("inspect", tmp_path, "--format", "CSV")
    assert (result.code, result.stdout) == (2, "")
    assert "'CSV' is not one of" in result.stderr
    assert "Value error" not in result.stderr
