"""How every table is written: cells, CSV, and the console that draws tables into text.

Tables are drawn into text first, so that all data leaves through one function for stdout.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:  # rich takes time to import; CSV has no use for it
    from rich.console import Console
    from rich.table import Table


def number_text(number: int | None, unknown: str = "") -> str:
    """In digits; empty, or ``unknown``, where there is none."""
    return unknown if number is None else str(number)


def difference_text(difference: int | None) -> str:
    """With its sign; empty where there is none."""
    return f"{difference:+d}" if difference else number_text(difference)


def csv_text(columns: Iterable[str], rows: Iterable[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


# Columns of text that goes to a file or a pipe: wider than any table here, so that none is cut.
_UNBOUNDED = 1000


def console_for(out: TextIO) -> tuple[Console, io.StringIO]:
    """A console, and the text it draws into: as wide as the terminal where ``out`` is one; else as
    wide as what is drawn."""
    from rich.console import Console

    terminal = out.isatty()
    text = io.StringIO()
    width = None if terminal else _UNBOUNDED
    return Console(file=text, force_terminal=terminal, width=width), text


def print_whole(console: Console, table: Table) -> None:
    """Print a table with nothing cut: on a narrower terminal its lines wrap.

    rich would shorten numbers to fit, and a number without its last digits is another one.
    """
    narrow = console.width
    if narrow >= _UNBOUNDED:
        console.print(table)
        return
    console.width = max(narrow, width_of(console, table))
    console.print(table)
    console.width = narrow


def width_of(console: Console, table: Table) -> int:
    """How wide a table is with nothing cut and nothing wrapped."""
    from rich.measure import Measurement

    unbounded = console.options.update(max_width=_UNBOUNDED)
    return Measurement.get(console, unbounded, table).maximum
