"""The entries of a keyed state for programs, in pieces of text: JSON (an object a line), CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from itertools import islice

from decoder.keyed_state import Entry, KeyedState
from migrate.state.columns import columns
from migrate.state.json_form import entry_json

# Lines that are put together before they are written.
_LINES_AT_ONCE = 1000


def entries_json(state: KeyedState, entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        yield json.dumps(entry_json(state, entry)) + "\n"


def entries_csv(state: KeyedState, entries: Iterable[Entry]) -> Iterator[str]:
    """A header, and a row for each entry. A value with parts is its JSON; null is nothing."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = names_of(state)
    writer.writerow(names)
    rows = (map(cell, map(entry_json(state, entry).get, names)) for entry in entries)
    while text.tell():
        yield text.getvalue()
        text.seek(0)
        text.truncate()
        writer.writerows(islice(rows, _LINES_AT_ONCE))


def names_of(state: KeyedState) -> list[str]:
    return [column.name for column in columns(state)]


def cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
