"""Arguments become what Typer itself would make of them, and without pydantic."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from migrate.cli.main import COMMANDS, load_command
from migrate.cli.typer_classes import _Coercion
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate


def _no_need() -> Any:
    raise AssertionError("left to Typer")


def _plain_values(parameter: Any) -> list[object]:
    """What such a parameter is given, that needs no pydantic."""
    kind = parameter.type_descriptor.annotation
    if kind is str:
        return [None, "", "1", "a=b", "é", " x "]
    if kind == list[str]:
        return [None, ["a=b"], ("", "é"), [" x "]]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [None, *kind, *(member.value for member in kind)]
    return [None]


@pytest.mark.parametrize("name", COMMANDS)
def test_plain_values_become_what_typer_makes_of_them(name: str) -> None:
    command = load_command(name)
    ctx = command.make_context(name, [], resilient_parsing=True)
    for parameter in command.params:
        if not hasattr(parameter, "get_runtime_param"):
            pytest.skip("this Typer coerces without pydantic")
        typers_own = type(parameter).get_runtime_param(parameter)
        for value in _plain_values(parameter):
            ours = _Coercion(_no_need).coerce(value, parameter, ctx)
            theirs = typers_own.coerce(value, param=parameter, ctx=ctx)
            assert (type(ours), ours) == (type(theirs), theirs)


def test_what_is_none_of_them_is_told_by_typer(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    result = migrate("inspect", chk, "--format", "sql")
    assert (result.code, result.stdout) == (2, "")
    assert "'sql' is not one of 'table', 'json', 'csv'" in " ".join(
        result.stderr.replace("│", " ").split()
    )


def test_paths_are_left_to_typer(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1, 2])})
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", chk, "--plan-out", plan, "--partitions", "t:1").code == 0
    assert migrate("to-spark", "--plan", plan).stdout == '{"t":{"1":2}}\n'


def test_what_is_wrong_is_told_in_no_librarys_words(tmp_path: Path) -> None:
    result = migrate("inspect", tmp_path, "--format", "CSV")
    assert (result.code, result.stdout) == (2, "")
    assert "'CSV' is not one of" in result.stderr
    assert "Value error" not in result.stderr
