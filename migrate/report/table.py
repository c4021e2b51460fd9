"""Tables as text.

If a table is wider than the terminal, these steps make it narrower until it fits:

1. Headings are written on two lines.
2. The least important columns are omitted. The last line of the output lists the omitted columns.
3. Long cells (a topic, an operator's states) are written on separate lines.

Words and numbers are never shortened or broken. ``rich`` tables are not used, because
they take seconds for ten thousand rows and shorten numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from textwrap import wrap
from typing import Generic, Literal, TextIO, TypeVar

from migrate.model.option_names import option
from migrate.model.wording import printable
from migrate.report.screen import Screen

_Row = TypeVar("_Row")

_GAP = "  "
_BELOW = "    "  # indents a cell that is written below its row


class Line(Enum):
    """The position of a long cell's separate line: above or below the cell's row."""

    ABOVE = "above"  # written once for consecutive rows with the same cell
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Column(Generic[_Row]):
    """A column; it is omitted if all of its cells are empty.

    Attributes:
        heading: the heading; it is broken into two lines only at a space or after a hyphen.
        cell: a function that returns the value of the cell in a row, or None for an empty cell.
            Control characters in a string are escaped.
        right: True to right-align the cells; a column with a number is always right-aligned.
        style: a function that returns the style of the cell in a row on a terminal.
        total: the text in the totals line; True for the sum of the numbers in the cells.
        wide: True to show the column only with ``--wide``.
        drop_order: the order in which columns are omitted if the table is too wide, highest number
            first; a column with 0 is never omitted.
        own_line: the position of a cell's separate line if the table is too wide; None for no
            separate line.
    """

    heading: str
    cell: Callable[[_Row], str | int | None]
    right: bool = False
    style: Callable[[_Row], str] | None = None
    total: str | Literal[True] = ""
    wide: bool = False
    drop_order: int = 0
    own_line: Line | None = None


def table_text(
    columns: Iterable[Column[_Row]], rows: Sequence[_Row], out: TextIO, *, wide: bool = False
) -> str:
    """Return the lines from ``table_lines`` as one string for ``out``, a file or a terminal."""
    return "".join(table_lines(columns, rows, Screen.of(out), wide=wide))


def table_lines(
    columns: Iterable[Column[_Row]], rows: Sequence[_Row], screen: Screen, *, wide: bool = False
) -> Iterator[str]:
    """Yield the lines of a table, each with its newline; yield nothing if there are no rows.

    ``wide`` shows all non-empty columns, and one line for each row, at any width.
    """
    chosen = [column for column in columns if wide or not column.wide]
    filled = [_Filled(column, rows) for column in chosen]
    filled = [filled_column for filled_column in filled if any(filled_column.cells)]
    left_out: list[str] = []
    if screen.width is not None and not wide:
        left_out = _fit(filled, screen.width)
    if filled:
        yield from _lines(filled, rows, screen)
    if left_out:
        hidden = f"not shown: {', '.join(left_out)}; {option('wide', True)} shows every column"
        yield screen.text(hidden, "dim") + "\n"


class _Filled(Generic[_Row]):
    """A column with the texts of its cells, and the layout of its heading and cells."""

    def __init__(self, column: Column[_Row], rows: Sequence[_Row]) -> None:
        values = list(map(column.cell, rows))
        numbers = [value for value in values if isinstance(value, int)]
        self.column = column
        self.cells = list(map(_cell_text, values))
        self.right = column.right or bool(numbers)
        self.heading = [column.heading]
        total = column.total if isinstance(column.total, str) else str(sum(numbers))
        self.total = total if len(rows) > 1 else ""
        self.own_line: Line | None = None
        self._least = max(map(_length, (*self.cells, self.total)))

    @property
    def width(self) -> int:
        return max(self._least, *map(_length, self.heading))


def _cell_text(value: str | int | None) -> str:
    if value is None:
        return ""
    text = str(value)
    return text if text.isprintable() else printable(text)


def _fit(filled: list[_Filled[_Row]], width: int) -> list[str]:
    """Make the columns fit a width if possible; return the headings of omitted columns."""
    left_out: list[str] = []
    if _width(filled) > width:
        for filled_column in filled:
            filled_column.heading = _two_lines(filled_column.column.heading)
    for filled_column in sorted(filled, key=lambda filled: -filled.column.drop_order):
        if filled_column.column.drop_order and _width(filled) > width:
            filled.remove(filled_column)
            left_out.append(filled_column.column.heading)
    for line in (Line.BELOW, Line.ABOVE):
        for filled_column in reversed(filled):
            if filled_column.column.own_line is line and _width(filled) > width:
                filled_column.own_line = line
    return left_out


def _width(filled: Sequence[_Filled[_Row]]) -> int:
    inline = [column.width for column in filled if column.own_line is None]
    return sum(inline) + len(_GAP) * (len(inline) - 1) + len(_indent(filled))


def _indent(filled: Sequence[_Filled[_Row]]) -> str:
    return _GAP if any(column.own_line is Line.ABOVE for column in filled) else ""


def _two_lines(heading: str) -> list[str]:
    """Break a heading into two lines of nearly equal length."""
    breaks = [at + 1 for at, letter in enumerate(heading) if letter in "- "]
    split = [[heading[:at].rstrip(), heading[at:]] for at in breaks]
    return min(split, key=lambda lines: max(map(len, lines)), default=[heading])


def _lines(filled: Sequence[_Filled[_Row]], rows: Sequence[_Row], screen: Screen) -> Iterator[str]:
    above, below, inline = (
        [column for column in filled if column.own_line is line]
        for line in (Line.ABOVE, Line.BELOW, None)
    )
    widths = [column.width for column in inline]
    indent = _indent(filled)
    rule = indent + screen.text("─" * (_width(filled) - len(indent)), "dim") + "\n"

    def line(texts: Iterable[str], styles: Iterable[str]) -> str:
        cells = []
        for column, width, text, style in zip(inline, widths, texts, styles, strict=True):
            shown, padding = screen.text(text, style), " " * (width - _length(text))
            cells.append(padding + shown if column.right else shown + padding)
        return f"{indent}{_GAP.join(cells)}".rstrip() + "\n"

    bold = ["bold"] * len(inline)
    height = max(len(column.heading) for column in inline)
    for texts in zip(*([""] * (height - len(c.heading)) + c.heading for c in inline), strict=True):
        yield line(texts, bold)
    if screen.styled:
        yield rule
    for shared, group in groupby(range(len(rows)), lambda at: [c.cells[at] for c in above]):
        yield from (f"{text}\n" for text in shared if text)
        for number in group:
            styles = (c.column.style(rows[number]) if c.column.style else "" for c in inline)
            yield line((column.cells[number] for column in inline), styles)
            for column in below:
                yield from _below(column, number, indent + _BELOW, screen)
    totals = [column.total for column in inline]
    if any(totals):
        if screen.styled:
            yield rule
        yield line([totals[0] or "total", *totals[1:]], bold)


def _below(column: _Filled[_Row], number: int, indent: str, screen: Screen) -> Iterator[str]:
    """Yield the lines that show a cell below its row, after the column's heading.

    The lines are wrapped between words.
    """
    if not column.cells[number]:
        return
    lines = wrap(
        f"{column.column.heading.lower()}: {column.cells[number]}",
        max(screen.width or 0, len(indent) + 1),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (f"{line}\n" for line in lines)


def _length(text: str) -> int:
    """Return the width of a string in terminal columns; some characters take two columns."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # imported here, because the import takes time

    return cell_len(text)
