"""Help text: ``-h`` shows a command's common options, and ``--help`` shows all of its options.

No text is truncated. Typer's own help truncates metavars and leaves only 22 of 80 columns for the
text.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from migrate.model.extensions import CHANGE, READ, RUN, WRITE, declared

# Typer has no public names for context and parameter types, so they are Any here.

# The width of the help, in columns.
_WIDEST = 100
_NARROWEST = 40
# If an option's flags and metavar have more characters than this, its text starts on the next line.
_LONGEST_LABEL = 25
_OPTIONS = "Options"
# The title of the last section, for the options in ``_COMMON_FLAGS``.
_LAST_TITLE = "Messages"
_COMMON_FLAGS = frozenset(
    ("-v", "-q", "--version", "--install-completion", "--show-completion", "-h", "--help")
)

Row = tuple[str, str]


def command_help(command: Any, ctx: Any, *, all_options: bool = True) -> str:
    """Return the help of a command.

    Args:
        command: the Typer command.
        ctx: the command's context.
        all_options: True to show everything. False to show the first options section, the first
            paragraph, and two examples.
    """
    arguments: list[Any] = []
    options: list[Any] = []
    for parameter in command.get_params(ctx):
        (arguments if parameter.param_type_name == "argument" else options).append(parameter)
    names = (str(a.metavar) if a.required else f"[{a.metavar}]" for a in arguments)
    usage = " ".join([*names, "[OPTIONS]"])
    paragraphs = list(_paragraphs(command.help))
    sections = list(_sections(options))
    shown = examples()[command.name].splitlines()
    everything = [paragraphs, sections, shown]
    if not all_options:
        paragraphs, sections, shown = paragraphs[:1], sections[:1], shown[:4]
    blocks = [
        f"Usage: migrate {command.name} {usage}",
        *paragraphs,
        *_section("Arguments", [(parameter.metavar, _text(parameter)) for parameter in arguments]),
        *sections,
        "\n".join((_bold("Examples"), *(f"  {line}" for line in shown))),
    ]
    if [paragraphs, sections, shown] != everything:
        blocks.append(f"To list every option, run `migrate {command.name} --help`.")
    return "\n\n".join(blocks) + "\n"


def group_help(group: Any, ctx: Any) -> str:
    """Return the help of ``migrate`` itself, from Typer's group of all commands and its context."""
    blocks = [
        "Usage: migrate COMMAND [OPTIONS]",
        *_paragraphs(group.help),
        *(
            block
            for title, rows in _sections_of_commands().items()
            for block in _section(title, rows.items())
        ),
        *_sections(group.get_params(ctx)),
        "`migrate COMMAND -h` shows a command's common options, and `--help` shows all options.",
    ]
    return "\n\n".join(blocks) + "\n"


def _sections(options: Iterable[Any]) -> Iterator[str]:
    """Yield the ``Options`` section, then the other sections, and then the common options."""
    sections: dict[str, list[Row]] = {_OPTIONS: []}
    common: list[Row] = []
    for option in options:
        row = (_flags(option), _text(option))
        if not _COMMON_FLAGS.isdisjoint(option.opts):
            common.append(row)
        else:
            sections.setdefault(option.rich_help_panel or _OPTIONS, []).append(row)
    for title, rows in (*sections.items(), (_LAST_TITLE, common)):
        yield from _section(title, rows)


def _flags(option: Any) -> str:
    names = ", ".join(sorted((*option.opts, *option.secondary_opts), key=len))
    if option.is_flag:
        return names
    return f"{names} {option.metavar or '|'.join(_choices(option)) or 'TEXT'}"


def _choices(parameter: Any) -> list[str]:
    """Return the values that a parameter accepts; an empty list if there is no fixed set."""
    described = getattr(parameter, "type_descriptor", None)  # since Typer 0.29
    kind = getattr(described, "annotation", None)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    return list(getattr(getattr(parameter, "type", None), "choices", ()))


def _text(parameter: Any) -> str:
    help, default = str(parameter.help), parameter.default
    if parameter.param_type_name == "argument":
        return help
    if parameter.required:
        return f"{help} [required]"
    if parameter.is_flag or default is None:
        return help
    shown = str(default.value if isinstance(default, Enum) else default)
    others = [choice for choice in _choices(parameter) if choice != shown and choice not in help]
    more = f"; or {', '.join(others)}" if parameter.metavar is not None and others else ""
    return f"{help} [default: {shown}{more}]"


def _section(title: str, rows: Iterable[Row]) -> Iterator[str]:
    lines = list(_lines(list(rows)))
    if lines:
        yield "\n".join((_bold(title), *lines))


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    column = 4 + max((len(name) for name, _ in rows if len(name) <= _LONGEST_LABEL), default=0)
    for name, text in rows:
        wrapped = textwrap.wrap(
            text, _width() - column, break_long_words=False, break_on_hyphens=False
        )
        if len(name) <= _LONGEST_LABEL and wrapped:
            yield f"  {name}".ljust(column) + wrapped.pop(0)
        else:
            yield f"  {name}"
        for line in wrapped:
            yield " " * column + line


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield textwrap.fill(" ".join(paragraph.split()), _width())


def _width() -> int:
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))


def _bold(text: str) -> str:
    on_a_terminal = sys.stdout is not None and sys.stdout.isatty()
    return f"\033[1m{text}\033[0m" if on_a_terminal and not os.environ.get("NO_COLOR") else text


# The core commands. The help line of each command is also the docstring summary of its function.
_SECTIONS = {
    READ: {
        "inspect": "Show a checkpoint's positions by source, its state by operator, and findings.",
        "diff": "Show two sets of positions side by side.",
        "show": "Show a saved plan, a rollback file, or a Spark query's progress.",
        "verify": "Check after a move that the target started at the checkpoint's positions.",
        "explain": "Explain the code of a warning, a finding, or a refusal, such as not-checked.",
    },
    WRITE: {
        "to-spark": "Print startingOffsets for a Spark query, or write its checkpoint location.",
    },
    CHANGE: {
        "commit-group": "Commit a checkpoint's positions as a consumer group's offsets.",
        "rollback": "Restore a consumer group's offsets from the rollback file of a change.",
    },
    RUN: {
        "follow": "Commit a Spark query's progress as a consumer group's offsets, to monitor its "
        "lag.",
    },
}
CORE_COMMANDS = {name: line for rows in _SECTIONS.values() for name, line in rows.items()}

_EXAMPLES = {
    "inspect": """\
# The newest complete checkpoint of a job
$ migrate inspect checkpoints/JOB_ID
# All positions as JSON
$ migrate inspect s3://bucket/savepoints/savepoint-1 --format json
# The retained checkpoints of a job
$ migrate inspect checkpoints/JOB_ID --list
""",
    "to-spark": """\
# startingOffsets, compared with the Kafka log
$ migrate to-spark savepoint-1 -b broker:9092
# A checkpoint location with the start offsets, and code for the query
$ migrate to-spark savepoint-1 -b broker:9092 --checkpoint-dir s3://bucket/query --format python
# One source of several
$ migrate to-spark savepoint-1 -b broker:9092 --source topic:orders
# A plan to review
$ migrate to-spark savepoint-1 -b broker:9092 --plan-out plan.json
# Apply the reviewed plan
$ migrate to-spark --plan plan.json -b broker:9092 --checkpoint-dir /data/query
""",
    "commit-group": """\
# Preview the changes
$ migrate commit-group savepoint-1 --group orders -b broker:9092
# Commit, after one question on the terminal
$ migrate commit-group savepoint-1 --group orders -b broker:9092 --execute
# Refuse the commit if the source group or the JobManager shows that the job kept running
$ migrate commit-group savepoint-1 --group orders -b broker:9092 --source-group flink-orders \
--flink-rest http://jobmanager:8081
""",
    "rollback": """\
# Preview the restored offsets
$ migrate rollback rollback-orders-20260102T030405.000000Z.json
# Restore the offsets
$ migrate rollback rollback-orders-20260102T030405.000000Z.json --execute
""",
    "diff": """\
# Compare a checkpoint with a group
$ migrate diff savepoint-1 group:orders -b broker:9092
# Show the lag of a Spark query
$ migrate diff spark:/data/query broker:latest -b broker:9092
# Write an HTML page to share
$ migrate diff savepoint-1 spark:/data/query --format html
""",
    "show": """\
# Review a plan
$ migrate show plan.json
# Show the offsets in a rollback file
$ migrate show rollback-orders-20260102T030405.json
# Show the start offsets of a query that has not run
$ migrate show spark:/data/query
""",
    "explain": """\
# Explain the code at the end of a warning
$ migrate explain not-checked
# List all codes
$ migrate explain
""",
    "verify": """\
# Check the start offsets of a query
$ migrate verify savepoint-1 spark:/data/query
# Check a group's offsets before its consumers start
$ migrate verify savepoint-1 group:orders -b broker:9092
# Run Spark on a copy of the location, and check its start offsets
$ migrate verify savepoint-1 spark:/data/query --run -b broker:9092
""",
    "follow": """\
# Report the lag of a query until Ctrl-C
$ migrate follow spark:/data/query --group orders -b broker:9092
# Run from cron, with a metrics file for Prometheus
$ migrate follow spark:/data/query --group orders -b broker:9092 --once --metrics-file \
/var/lib/node_exporter/orders.prom
""",
}


def commands() -> dict[str, str]:
    """Return the help line of each command, in the order of the help."""
    return {name: line for rows in _sections_of_commands().values() for name, line in rows.items()}


def examples() -> dict[str, str]:
    """Return the examples of each command."""
    more = {name: text.examples for name, text in declared("COMMANDS").items()}
    return {**_EXAMPLES, **more}


def _sections_of_commands() -> dict[str, dict[str, str]]:
    sections = {title: dict(rows) for title, rows in _SECTIONS.items()}
    for name, text in declared("COMMANDS").items():
        sections[text.section][name] = text.line
    return sections
