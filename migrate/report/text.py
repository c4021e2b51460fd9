"""How numbers are written for people, rows as CSV, and what text is drawn for."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO


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


# Select Graphic Rendition (ECMA-48); those that begin with 3 are colours.
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
    """How text looks there.

    Attributes:
        width: the terminal's columns; None where text may be as wide as it gets.
        styled: whether styles and rules are drawn.
        colored: whether styles have a colour (https://no-color.org: bold and the like may stay).
    """

    width: int | None
    styled: bool
    colored: bool

    @classmethod
    def of(cls, out: TextIO) -> Screen:
        """That of ``out``: COLUMNS, TERM and NO_COLOR count where it is a terminal."""
        if not out.isatty():
            return cls(None, styled=False, colored=False)
        styled = os.environ.get("TERM") not in ("dumb", "unknown")
        return cls(_columns(out), styled, styled and not os.environ.get("NO_COLOR"))

    def text(self, text: str, style: str) -> str:
        """Text in that style (``""`` is none), as far as there are styles."""
        codes = _CODES[style] if style and text and self.styled else ()
        shown = [code for code in codes if self.colored or not code.startswith("3")]
        return f"\x1b[{';'.join(shown)}m{text}\x1b[0m" if shown else text


def _columns(out: TextIO) -> int:
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(out.fileno()).columns or _NARROW
    except OSError:
        return _NARROW
