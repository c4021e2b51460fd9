"""Keyed states and their entries as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO

from decoder.keyed_state import Entry, KeyedState
from migrate.report.screen import Screen
from migrate.report.state_entries import cell, names_of
from migrate.report.table import Column, Line, draw
from migrate.state.columns import column_type, namespace_type, value_type
from migrate.state.json_form import entry_json
from migrate.state.listing import ddl
from migrate.state.meaning import meaning
from migrate.wording import visible


def states_table(states: Sequence[KeyedState], out: TextIO) -> str:
    """A table for each operator."""
    screen, lines, blank = Screen.of(out), list[str](), ""
    for _, of_operator in groupby(states, lambda state: state.operator_id):
        some = list(of_operator)
        lines.append(blank + _heading(some[0], screen))
        lines += draw(_COLUMNS, [_cells(state, some) for state in some], screen)
        blank = "\n"
    return "".join(lines)


def _heading(state: KeyedState, screen: Screen) -> str:
    names = [f"uid {state.uid}" if state.uid else "", state.operator_name or ""]
    told = ", ".join(visible(name) for name in names if name)
    heading = screen.text(f"operator {state.operator_id}", "bold")
    return f"{heading}{f' ({told})' if told else ''}\n"


def _column(name: str, apart: Line | None) -> Column[Mapping[str, str]]:
    return Column(name.upper(), lambda cells: visible(cells[name]), apart=apart)


_COLUMNS = (
    *(_column(name, None) for name in ("state", "kind")),
    *(_column(name, Line.BELOW) for name in ("key", "namespace", "map key", "value", "what it is")),
)


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


def entries_table(state: KeyedState, entries: Iterable[Entry], out: TextIO) -> str:
    """A table of entries that are few."""
    told = [entry_json(state, entry) for entry in entries]
    columns: list[Column[Mapping[str, Any]]] = [
        Column(
            name.upper().replace("_", "-"),
            lambda row, name=name: visible(cell(row[name])),  # type: ignore[misc]
            apart=Line.BELOW if name == "value" else None,
        )
        for name in names_of(state)
    ]
    return "".join(draw(columns, told, Screen.of(out)))
