"""Numbers as text, rows as CSV, and the properties of the terminal that text is written to."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TextIO

from migrate.model.wording import printable

LINES_AT_ONCE = 1000  # how many lines are joined before they are written


def number_text(number: int | None, unknown: str = "") -> str:
    """Return a number in digits, or ``unknown`` for None."""
    return unknown if number is None else str(number)


def difference_text(difference: int | None) -> str:
    """Return a number with its sign, or an empty text for None."""
    return f"{difference:+d}" if difference else number_text(difference)


def operator_names(uid: str | None, name: str | None) -> str:
    """Return an operator's uid and name in parentheses; empty if it has neither."""
    names = ", ".join(printable(text) for text in (f"uid {uid}" if uid else None, name) if text)
    return f" ({names})" if names else ""


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a header and rows as CSV."""
    return "".join(csv_pieces(columns, rows))


def csv_pieces(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield a header and rows as CSV, in pieces of up to ``LINES_AT_ONCE`` lines."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    rows = iter(rows)
    while text.tell():
        yield text.getvalue()
        text.seek(0)
        text.truncate()
        writer.writerows(islice(rows, LINES_AT_ONCE))


# Codes of Select Graphic Rendition (ECMA-48); codes that begin with 3 are colours.
_CODES = {
    "bold": ("1",),
    "dim": ("2",),
    "red": ("31",),
    "green": ("32",),
    "yellow": ("33",),
    "magenta": ("35",),
    "bold red": ("1", "31"),
}
_NARROW = 80


@dataclass(frozen=True, slots=True)
class Screen:
    """The properties of the file or terminal that text is written to.

    Attributes:
        width: the terminal's columns, or None if text may have any width.
        styled: whether styles and rules are drawn.
        colored: whether styles have a colour (https://no-color.org allows bold without it).
    """

    width: int | None
    styled: bool
    colored: bool

    @classmethod
    def of(cls, out: TextIO) -> Screen:
        """Return the screen of a file. For a terminal, COLUMNS, TERM and NO_COLOR are respected."""
        if not out.isatty():
            return cls(None, styled=False, colored=False)
        styled = os.environ.get("TERM") not in ("dumb", "unknown")
        return cls(_columns(out), styled, styled and not os.environ.get("NO_COLOR"))

    def text(self, text: str, style: str) -> str:
        """Return text in a style (``""`` is no style), if the screen has styles and colours."""
        codes = _CODES[style] if style and text and self.styled else ()
        shown = [code for code in codes if self.colored or not code.startswith("3")]
        return f"\x1b[{';'.join(shown)}m{text}\x1b[0m" if shown else text


def _columns(out: TextIO) -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(out.fileno()).columns or _NARROW
    except OSError:
        return _NARROW
