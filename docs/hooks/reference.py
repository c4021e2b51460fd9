"""The parts of the reference that are generated from the program when the site is built."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import typer

from migrate.cli.main import app
from migrate.model.explanations import read_catalogs, read_explanations
from migrate.model.finding import Code
from migrate.model.option_names import command_line_notation
from migrate.moves import options
from migrate.moves.declare_options import options_of

_ROOT = Path(__file__).parents[2]
_SCHEMAS = _ROOT / "docs/schemas"
_FINDINGS = {code.value for code in Code}
_WIDTH = 88  # of a line on the page, in characters
_HELP_SECONDS = 60

Schema = dict[str, Any]


def generated(name: str) -> str:
    """Return what replaces the comment ``<!-- generated: name -->`` in a page."""
    match name.split():
        case ["commands"]:
            return "\n".join(_commands())
        case ["findings"]:
            return "\n".join(_explanations(_FINDINGS))
        case ["warnings"]:
            return "\n".join(
                _explanations(read_explanations().keys() - {code.value for code in Code})
            )
        case ["messages"]:
            return "\n".join(_messages())
        case ["options", arguments]:
            return "\n".join(_options(getattr(options, arguments)))
        case ["schema", schema]:
            return "\n".join(_schema(json.loads((_SCHEMAS / f"{schema}.schema.json").read_text())))
        case ["newer-commits", commit, *paths]:
            return _newer_commits(commit, paths)
    raise ValueError(f"nothing generates {name!r}")


def _newer_commits(commit: str, paths: list[str]) -> str:
    """Return a sentence about the number of commits after ``commit`` that touch ``paths``."""
    command = ["git", "rev-list", "--count", f"{commit}..HEAD", "--", *paths]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_ROOT)
    except (OSError, subprocess.CalledProcessError):
        return "Git could not count the newer commits when this site was built."
    count = int(done.stdout)
    if count == 0:
        return "No newer commit changes the measured code."
    return f"{count:,} newer commit{'s change' if count > 1 else ' changes'} the measured code."


# --- commands


def _commands() -> Iterator[str]:
    """Yield a section with the output of `--help` for each command."""
    group = typer.main.get_command(app)
    context = group.make_context("migrate", [], resilient_parsing=True)
    names = group.list_commands(context)  # type: ignore[attr-defined]  # typed as any command
    with ThreadPoolExecutor() as pool:
        yield from _help("migrate", _run())
        for name, text in zip(names, pool.map(_run, names), strict=True):
            yield from _help(f"migrate {name}", text)


def _help(heading: str, text: str) -> Iterator[str]:
    yield f"## {heading}"
    yield ""
    yield "```text"
    yield text
    yield "```"
    yield ""


def _run(*command: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MIGRATE_")}
    done = subprocess.run(
        [Path(sys.executable).with_name("migrate"), *command, "--help"],
        env={**env, "COLUMNS": str(_WIDTH), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=_HELP_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"migrate {' '.join(command)} --help: {done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


# --- findings and warnings


def _explanations(codes: Set[str]) -> Iterator[str]:
    """Yield a table of codes, each with a link to the section that explains more."""
    yield "| Code | Severity | Meaning | Remedy |"
    yield "| --- | --- | --- | --- |"
    explanations = read_explanations()
    for code in sorted(codes):
        explanation = explanations[code]
        link = f" ([details](../{explanation.section}))" if explanation.section else ""
        text = f"{explanation.meaning}{link}"
        yield f"| `{code}` | {explanation.severity} | {text} | {explanation.advice} |"


def _messages() -> Iterator[str]:
    """Yield a table of the messages in the catalogs, with flags for the options."""
    yield "| Code | Kind | Message | Remedy |"
    yield "| --- | --- | --- | --- |"
    with command_line_notation():
        for code, template in sorted(read_catalogs().items()):
            message = template.placeholders()
            what, way_out = (text.replace("|", "\\|") for text in (message.what, message.way_out))
            yield f"| `{code}` | {template.kind.value} | {what} | {way_out} |"


# --- arguments of several calls


def _options(arguments: type) -> Iterator[str]:
    """Yield a table of the options that arguments of calls declare."""
    yield f"**{arguments.__name__}**: {inspect.getdoc(arguments)}"
    yield ""
    yield "| Argument | Description |"
    yield "| --- | --- |"
    for name, (kind, option) in options_of(arguments).items():
        # The calls read no environment variables, and take a mapping for a repeatable option.
        text = re.sub(r" Repeatable\.| \[env: \w+\]", "", option.help)
        members = ", ".join(getattr(kind, "__members__", {}).values())
        choices = f" One of {members}." if members else ""
        yield f"| `{name}` | {text}{choices} |"
    yield ""


# --- JSON


def _schema(schema: Schema) -> Iterator[str]:
    """Yield a table of fields for the document, and one for each type of object in it."""
    definitions: dict[str, Schema] = schema.get("$defs", {})
    yield from _fields("The document", schema, definitions)
    for name, definition in definitions.items():
        if "properties" in definition:
            yield from _fields(name, definition, definitions)


def _fields(name: str, schema: Schema, definitions: dict[str, Schema]) -> Iterator[str]:
    yield f"**{name}**"
    yield ""
    if description := schema.get("description"):
        yield " ".join(description.replace("``", "`").split())
        yield ""
    yield "| Field | Type | Description |"
    yield "| --- | --- | --- |"
    required = schema.get("required", [])
    for field, form in schema["properties"].items():
        notes = [] if field in required else ["optional"]
        if description := form.get("description"):
            notes.append(" ".join(description.replace("``", "`").split()))
        yield f"| `{field}` | {_type(form, definitions)} | {'; '.join(notes)} |"
    yield ""


def _type(form: Schema, definitions: dict[str, Schema]) -> str:
    """Return a short description of a JSON Schema's type: an object's name, or the values."""
    match form:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            definition = definitions[name]
            return name if "properties" in definition else _type(definition, definitions)
        case {"anyOf": list(forms)} | {"oneOf": list(forms)}:
            return " or ".join(dict.fromkeys(_type(option, definitions) for option in forms))
        case {"const": value}:
            return f"`{json.dumps(value)}`"
        case {"enum": list(values)}:
            return ", ".join(f"`{json.dumps(value)}`" for value in values)
        case {"type": "array", "items": dict(items)}:
            return f"array of {_type(items, definitions)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object of {_type(values, definitions)}"
        case {"type": str(name)}:
            return name
    return "any"
