"""Keyed states and their entries as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TextIO

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from decoder.keyed_state import Entry, KeyedState
from migrate.report.state_entries import cell, names_of
from migrate.report.states import ddl
from migrate.report.text import console_for, print_whole, width_of
from migrate.state.columns import column_type, namespace_type, value_type
from migrate.state.json_form import entry_json
from migrate.state.meaning import meaning
from migrate.wording import visible

# Spaces before the lines about a state that do not fit beside it.
_INDENT = 4


def states_table(states: Sequence[KeyedState], out: TextIO) -> str:
    """A table for each operator. On a terminal that is too narrow for it, each state has some lines
    instead."""
    console, text = console_for(out)
    blank = ""
    for _, of_operator in groupby(states, lambda state: state.operator_id):
        some = list(of_operator)
        console.print(Text(blank), end="")
        console.print(_heading(some[0]), soft_wrap=True)
        table = _table(some)
        fits = width_of(console, table) <= console.width
        console.print(table if fits else Group(*_entries(some)))
        blank = "\n"
    return text.getvalue()


def _heading(state: KeyedState) -> Text:
    names = [f"uid {state.uid}" if state.uid else "", state.operator_name or ""]
    told = ", ".join(visible(name) for name in names if name)
    heading = Text(f"operator {state.operator_id}", style="bold")
    return heading.append(f" ({told})" if told else "", style="not bold")


def _table(states: Sequence[KeyedState]) -> Table:
    """Columns that none of the states has anything in are left out."""
    cells = [_cells(state, states) for state in states]
    shown = [name for name in cells[0] if any(row[name] for row in cells)]
    table = Table(*shown, box=None)
    for row in cells:
        table.add_row(*(Text(visible(row[name])) for name in shown))
    return table


def _cells(state: KeyedState, beside: Sequence[KeyedState]) -> dict[str, str]:
    """What stands in each column."""
    told = [meaning(state, {other.name for other in beside})]
    if state.ttl:
        told.append("kept with its last access (TTL)")
    if state.reason is not None:
        told.append(f"cannot be read: {state.reason}")
    map_key = column_type(state.map_key) if state.map_key is not None else None
    return {
        "state": state.name,
        "kind": state.kind.value,
        "key": ddl(column_type(state.key)) or "?",
        "namespace": ddl(namespace_type(state)) or "",
        "map key": ddl(map_key) or "",
        "value": ddl(value_type(state)) or "?",
        "what it is": "; ".join(filter(None, told)),
    }


def _entries(states: Sequence[KeyedState]) -> Iterator[Text | Padding]:
    """Some lines for each state."""
    for state in states:
        cells = _cells(state, states)
        name, kind, told = (cells.pop(name) for name in ("state", "kind", "what it is"))
        yield Text(visible(f" {name} ({kind})"))
        types = ", ".join(f"{column} {type_}" for column, type_ in cells.items() if type_)
        for line in filter(None, (told, types)):
            yield Padding(Text(visible(line)), (0, 0, 0, _INDENT))


def entries_table(state: KeyedState, entries: Iterable[Entry], out: TextIO) -> str:
    """A table, as wide as the terminal where ``out`` is one; of entries that are few."""
    console, text = console_for(out)
    names = names_of(state)
    table = Table(box=None)
    for name in names:
        table.add_column(name.replace("_", " "), overflow="fold")
    for entry in entries:
        told = entry_json(state, entry)
        table.add_row(*(Text(visible(cell(told[name]))) for name in names))
    print_whole(console, table)
    return text.getvalue()
