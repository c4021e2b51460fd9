"""Draws tables for people.

A table that is wider than the terminal gives way in this order, and never inside a word or a
number: headings go on two lines; columns that matter least are left out, and the last line names
them; what has a line of its own to go to (a long topic, an operator's states) goes there. What
is too wide even then is drawn as it is, and the terminal wraps it.

Drawn by hand: rich takes seconds for ten thousand rows, and shortens numbers to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from textwrap import wrap
from typing import Generic, TypeVar

from migrate.report.text import Screen, number_text

_Row = TypeVar("_Row")

_GAP = "  "
_BELOW = "    "  # before a cell that goes below its row


class Line(Enum):
    """The line of its own that a cell goes to where its row is too long."""

    ABOVE = "above"  # once for rows in sequence that have the same there
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Column(Generic[_Row]):
    """A column, left out where every row is empty there.

    Attributes:
        heading: may be broken after a hyphen and at a space.
        cell: the text of a row, without control characters.
        right: aligned to the right, as numbers are.
        style: of a row's text on a terminal.
        total: what the numbers come to; empty where they do not add up.
        wide: shown with ``--wide`` alone.
        spare: left out of a terminal that is too narrow, the highest first; 0 never is.
        apart: where cells go when all that is not enough.
    """

    heading: str
    cell: Callable[[_Row], str]
    right: bool = False
    style: Callable[[_Row], str] | None = None
    total: str = ""
    wide: bool = False
    spare: int = 0
    apart: Line | None = None


def numbers(
    heading: str,
    number: Callable[[_Row], int | None],
    *,
    total_of: Iterable[_Row] = (),
    wide: bool = False,
    spare: int = 0,
) -> Column[_Row]:
    """A column of numbers, empty where there is none.

    Args:
        total_of: the rows, where their numbers add up.
    """
    known = [told for told in map(number, total_of) if told is not None]
    return Column(
        heading,
        lambda row: number_text(number(row)),
        right=True,
        total=str(sum(known)) if known else "",
        wide=wide,
        spare=spare,
    )


def draw(
    columns: Iterable[Column[_Row]], rows: Sequence[_Row], screen: Screen, *, wide: bool = False
) -> Iterator[str]:
    """The lines of a table, each with its newline; none where there are no rows.

    Args:
        wide: every column that is not empty, each row on one line, however narrow the terminal.
    """
    chosen = [one for one in columns if wide or not one.wide]
    cells = ((one, list(map(one.cell, rows))) for one in chosen)
    filled = [_Filled(one, texts) for one, texts in cells if any(texts)]
    left_out: list[str] = []
    if screen.width is not None and not wide:
        left_out = _fit(filled, screen.width)
    if filled:
        yield from _lines(filled, rows, screen)
    if left_out:
        told = f"not shown: {', '.join(left_out)}; --wide shows every column"
        yield screen.text(told, "dim") + "\n"


@dataclass(slots=True)
class _Filled(Generic[_Row]):
    """A column with its cells, and how it is drawn: its heading's lines, and where cells go."""

    column: Column[_Row]
    cells: list[str]
    heading: list[str] = field(init=False)
    total: str = field(init=False)
    apart: Line | None = None
    _least: int = field(init=False)

    def __post_init__(self) -> None:
        self.heading = [self.column.heading]
        self.total = self.column.total if len(self.cells) > 1 else ""
        self._least = max(map(_length, (*self.cells, self.total)))

    @property
    def width(self) -> int:
        return max(self._least, *map(_length, self.heading))


def _fit(filled: list[_Filled[_Row]], width: int) -> list[str]:
    """Make the columns fit that width, as far as they can; the headings of those taken away."""
    left_out: list[str] = []
    if _width(filled) > width:
        for one in filled:
            one.heading = _two_lines(one.column.heading)
    for one in sorted(filled, key=lambda one: -one.column.spare):
        if one.column.spare and _width(filled) > width:
            filled.remove(one)
            left_out.append(one.column.heading)
    for line in (Line.BELOW, Line.ABOVE):
        for one in reversed(filled):
            if one.column.apart is line and _width(filled) > width:
                one.apart = line
    return left_out


def _width(filled: Sequence[_Filled[_Row]]) -> int:
    inline = [one.width for one in filled if one.apart is None]
    return sum(inline) + len(_GAP) * (len(inline) - 1) + len(_indent(filled))


def _indent(filled: Sequence[_Filled[_Row]]) -> str:
    return _GAP if any(one.apart is Line.ABOVE for one in filled) else ""


def _two_lines(heading: str) -> list[str]:
    """As narrow as its words allow."""
    breaks = [at + 1 for at, letter in enumerate(heading) if letter in "- "]
    split = [[heading[:at].rstrip(), heading[at:]] for at in breaks]
    return min(split, key=lambda lines: max(map(len, lines)), default=[heading])


def _lines(filled: Sequence[_Filled[_Row]], rows: Sequence[_Row], screen: Screen) -> Iterator[str]:
    above = [one for one in filled if one.apart is Line.ABOVE]
    below = [one for one in filled if one.apart is Line.BELOW]
    inline = [one for one in filled if one.apart is None]
    widths = [one.width for one in inline]
    indent = _indent(filled)
    rule = indent + screen.text("─" * (_width(filled) - len(indent)), "dim") + "\n"

    def line(texts: Iterable[str], styles: Iterable[str]) -> str:
        cells = []
        for one, width, text, style in zip(inline, widths, texts, styles, strict=True):
            shown, padding = screen.text(text, style), " " * (width - _length(text))
            cells.append(padding + shown if one.column.right else shown + padding)
        return f"{indent}{_GAP.join(cells)}".rstrip() + "\n"

    bold = ["bold"] * len(inline)
    height = max(len(one.heading) for one in inline)
    for at in range(height):
        empty = [height - len(one.heading) for one in inline]  # headings stand on the rows
        yield line(
            (one.heading[at - e] if at >= e else "" for one, e in zip(inline, empty, strict=True)),
            bold,
        )
    if screen.styled:
        yield rule
    for shared, places in groupby(range(len(rows)), lambda at: [one.cells[at] for one in above]):
        yield from (f"{text}\n" for text in shared if text)
        for at in places:
            styles = (
                one.column.style(rows[at]) if one.column.style is not None else "" for one in inline
            )
            yield line((one.cells[at] for one in inline), styles)
            for one in below:
                yield from _below(one, at, indent + _BELOW, screen)
    totals = [one.total for one in inline]
    if any(totals):
        if screen.styled:
            yield rule
        yield line(["total" if not totals[0] else totals[0], *totals[1:]], bold)


def _below(one: _Filled[_Row], at: int, indent: str, screen: Screen) -> Iterator[str]:
    """A cell with its heading on lines of their own, broken between words alone."""
    if not one.cells[at]:
        return
    width = max(screen.width or 0, len(indent) + 1)
    lines = wrap(
        f"{one.column.heading.lower()}: {one.cells[at]}",
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (f"{line}\n" for line in lines)


def _length(text: str) -> int:
    """In columns of a terminal, of which some scripts take two for a letter."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # where it is of use: its import takes time

    return cell_len(text)
