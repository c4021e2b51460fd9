"""Options in messages: the notations, their scope, and the names that the messages use."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache, partial
from itertools import chain
from pathlib import Path
from string import Formatter
from threading import Thread
from typing import NamedTuple

import pytest

import migrate
from migrate.cli.help import CORE_COMMANDS
from migrate.cli.main import load_command
from migrate.model.explanations import read_catalogs
from migrate.model.extensions import EXTENSIONS
from migrate.model.option_names import Value, command_line_notation, option, spec_notation
from migrate.model.policies import OnExpired

_KEYS = {
    "on_expired": "move.on-expired",
    "one_cluster": "move.one-cluster",
    "topic_map": "move.topic-map",
}


# -- notations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "call", "flag"),
    [
        ("on_expired", OnExpired.EARLIEST, 'on_expired="earliest"', "--on-expired earliest"),
        ("one_cluster", True, "one_cluster=True", "--one-cluster"),
        ("source", "b\u00fcro", 'source="b\u00fcro"', "--source b\u00fcro"),
        ("source", 'a"b\\', r'source="a\"b\\"', '--source a"b\\'),
        ("source", "", 'source=""', "--source "),
        ("topic_map", {"old": "new"}, "topic_map={'old': 'new'}", "--topic-map old=new"),
        ("sample", 10, "sample=10", "--sample 10"),
        ("source_group", None, "source_group", "--source-group"),
        ("stopped_at_ms", None, "stopped_at_ms", "--stopped-at"),
        ("kafka_properties", {"a": "b"}, "kafka_properties={'a': 'b'}", "-X a=b"),
        ("plan_out", "FILE", "--plan-out FILE", "--plan-out FILE"),  # only a flag
        ("all_", True, "--all", "--all"),
    ],
)
def test_option_is_written_as_command_line_flag_or_python_argument(
    name: str, value: Value, call: str, flag: str
) -> None:
    assert option(name, value) == call
    with command_line_notation():
        assert option(name, value) == flag


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("on_expired", OnExpired.EARLIEST, "move.on-expired: earliest"),
        ("on_expired", "earliest", "move.on-expired: earliest"),
        ("on_expired", None, "move.on-expired"),
        ("one_cluster", True, "move.one-cluster: true"),
        ("topic_map", {"old": "new"}, "move.topic-map: {old: new}"),
    ],
)
def test_option_is_written_as_spec_key_in_spec_notation(name: str, value: Value, key: str) -> None:
    with spec_notation(_KEYS):
        assert option(name, value) == key


def test_option_without_spec_key_is_written_as_flag_or_python_argument() -> None:
    with spec_notation(_KEYS):
        assert option("back", True) == "back=True"
    with command_line_notation(), spec_notation(_KEYS):
        assert option("back", True) == "--back"
        assert option("one_cluster", True) == "move.one-cluster: true"


# -- scope ----------------------------------------------------------------------------------------


def test_new_thread_uses_command_line_notation_but_not_spec_notation() -> None:
    seen: list[str] = []
    with command_line_notation(), spec_notation(_KEYS):
        thread = Thread(target=lambda: seen.append(option("one_cluster", True)))
        thread.start()
        thread.join()
        assert option("one_cluster", True) == "move.one-cluster: true"
    assert seen == ["--one-cluster"]


@pytest.mark.parametrize("notation", [command_line_notation, partial(spec_notation, _KEYS)])
def test_option_notation_is_restored_after_error(
    notation: Callable[[], AbstractContextManager[None]],
) -> None:
    with pytest.raises(KeyError), notation():
        raise KeyError
    assert option("one_cluster", True) == "one_cluster=True"
    with command_line_notation():
        with pytest.raises(KeyError), notation():
            raise KeyError
        assert option("one_cluster", True) == "--one-cluster"


# -- names ----------------------------------------------------------------------------------------


class _Parameter(NamedTuple):
    """The parameter of a function that takes the name of an option."""

    position: int
    name: str


@cache
def _modules() -> dict[Path, ast.Module]:
    root = Path(migrate.__path__[0])
    return {path: ast.parse(path.read_text()) for path in sorted(root.rglob("*.py"))}


def _calls(tree: ast.AST, function: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name == function:
                yield node


def _passed(call: ast.Call, parameter: _Parameter) -> ast.expr | None:
    """Return the expression that a call passes for a parameter, or None."""
    if len(call.args) > parameter.position:
        return call.args[parameter.position]
    return next((word.value for word in call.keywords if word.arg == parameter.name), None)


def _imports_option(tree: ast.Module) -> bool:
    """Return whether ``option`` is the function of migrate.model.option_names in this module."""
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "migrate.model.option_names"
        and "option" in {alias.name for alias in node.names}
        for node in ast.walk(tree)
    )


def _named_parameters() -> dict[str, _Parameter]:
    """Return the parameter for the option name, by function.

    The functions are ``option`` and each function that passes a parameter on to it.
    """
    found = {"option": _Parameter(0, "name")}
    functions = [
        function
        for tree in _modules().values()
        if _imports_option(tree)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
    ]
    while True:
        before = len(found)
        for function in functions:
            parameters = [parameter.arg for parameter in function.args.args]
            for called, parameter in list(found.items()):
                for call in _calls(function, called):
                    passed = _passed(call, parameter)
                    if isinstance(passed, ast.Name) and passed.id in parameters:
                        at = _Parameter(parameters.index(passed.id), passed.id)
                        found.setdefault(function.name, at)
        if len(found) == before:
            return found


def test_options_in_messages_exist() -> None:
    names = {
        parameter.name
        for command in (*CORE_COMMANDS, *chain.from_iterable(EXTENSIONS.values()))
        for parameter in load_command(command).params
    }
    for public in migrate.__all__:
        if inspect.isfunction(function := getattr(migrate, public)):
            names |= inspect.signature(function).parameters.keys()
    parameters = _named_parameters()
    assert {"option", "check_new_file", "parse_choice"} <= parameters.keys()
    used = {
        (str(path), call.lineno, passed.value)
        for path, tree in _modules().items()
        for function, parameter in parameters.items()
        if function != "option" or _imports_option(tree)
        for call in _calls(tree, function)
        if isinstance(passed := _passed(call, parameter), ast.Constant)
    }
    for template in read_catalogs().values():
        for text in (template.what, template.way_out):
            for _, field, _, _ in Formatter().parse(text):
                if field is not None and field.startswith("option."):
                    used.add((template.code, 0, field.removeprefix("option.")))
    assert len(used) > 100
    assert [at for at in sorted(used) if at[2] not in names] == []
