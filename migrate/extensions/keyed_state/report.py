"""Write keyed states and their entries as JSON (``schemas`` has the format), CSV, or tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO

from decoder.keyed_state import Entry, KeyedState
from migrate.extensions.keyed_state.json_form import entry_json
from migrate.extensions.keyed_state.listing import StateRow, ddl, meaning, state_row
from migrate.extensions.keyed_state.type_mapping import (
    column_type,
    columns,
    namespace_type,
    value_type,
)
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, table_lines, table_text
from migrate.report.text import csv_pieces, csv_text, operator_names


def states_json(states: Sequence[KeyedState]) -> str:
    return json.dumps({"states": [state_row(state)._asdict() for state in states]}, indent=2)


def states_csv(states: Sequence[KeyedState]) -> str:
    return csv_text(StateRow._fields, map(state_row, states))


def entries_json(state: KeyedState, entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        yield json.dumps(entry_json(state, entry)) + "\n"


def entries_csv(state: KeyedState, entries: Iterable[Entry]) -> Iterator[str]:
    """Yield a header, and a row for each entry, as chunks of text.

    A string is written unchanged, a null as an empty cell, and any other value as JSON.
    """
    names = _names(state)
    rows = (map(_cell, map(entry_json(state, entry).get, names)) for entry in entries)
    return csv_pieces(names, rows)


def _names(state: KeyedState) -> list[str]:
    return [column.name for column in columns(state)]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def states_table(states: Sequence[KeyedState], out: TextIO) -> str:
    """Return a table for each operator, with a row for each state."""
    screen, lines, blank = Screen.of(out), list[str](), ""
    for _, of_operator in groupby(states, lambda state: state.operator_id):
        some = list(of_operator)
        heading = screen.text(f"operator {some[0].operator_id}", "bold")
        names = operator_names(some[0].uid, some[0].operator_name)
        lines.append(f"{blank}{heading}{names}\n")
        lines += table_lines(_columns({state.name for state in some}), some, screen)
        blank = "\n"
    return "".join(lines)


def _columns(names: set[str]) -> tuple[Column[KeyedState], ...]:
    """Return the columns of an operator's table; ``names`` are the names of all its states."""
    return (
        Column("STATE", lambda state: state.name),
        Column("KIND", lambda state: state.kind.value),
        Column("KEY", lambda state: ddl(column_type(state.key)) or "?", own_line=Line.BELOW),
        Column("NAMESPACE", lambda state: ddl(namespace_type(state)), own_line=Line.BELOW),
        Column(
            "MAP KEY",
            lambda state: ddl(column_type(state.map_key)) if state.map_key is not None else None,
            own_line=Line.BELOW,
        ),
        Column("VALUE", lambda state: ddl(value_type(state)) or "?", own_line=Line.BELOW),
        Column("MEANING", lambda state: _remarks(state, names), own_line=Line.BELOW),
    )


def _remarks(state: KeyedState, names: set[str]) -> str:
    remarks = [meaning(state, names)]
    if state.ttl:
        remarks.append("stored with its last access (TTL)")
    if state.reason is not None:
        remarks.append(f"cannot be read: {state.reason}")
    elif state.caveat is not None:
        remarks.append(state.caveat)
    return "; ".join(filter(None, remarks))


def entries_table(state: KeyedState, entries: Iterable[Entry], out: TextIO) -> str:
    """Return a table of entries; all entries must fit into memory."""
    rows = [entry_json(state, entry) for entry in entries]
    return table_text(map(_entry_column, _names(state)), rows, out)


def _entry_column(name: str) -> Column[Mapping[str, Any]]:
    return Column(
        name.upper().replace("_", "-"),
        lambda row: _cell(row[name]),
        own_line=Line.BELOW if name == "value" else None,
    )
