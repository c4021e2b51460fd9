"""Widths, styles, and colors of text on terminals and in files."""

from __future__ import annotations

import os
from typing import NamedTuple, TextIO

# Codes of Select Graphic Rendition (ECMA-48); codes that start with 3 are colors.
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


class Screen(NamedTuple):
    """The properties of the file or terminal to which text is written.

    Attributes:
        width: the terminal's columns, or None if text may have any width.
        styled: True if text has styles, and tables have horizontal lines.
        colored: True if styles have colors; bold and dim need no colors (https://no-color.org).
    """

    width: int | None
    styled: bool
    colored: bool

    @classmethod
    def of(cls, out: TextIO) -> Screen:
        """Return the screen of a file. COLUMNS, TERM, and NO_COLOR apply only to a terminal."""
        if not out.isatty():
            return cls(None, styled=False, colored=False)
        styled = os.environ.get("TERM") not in ("dumb", "unknown")
        return cls(_columns(out), styled, styled and not os.environ.get("NO_COLOR"))

    def text(self, text: str, style: str) -> str:
        """Return text in a style, as far as the screen supports the style."""
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
