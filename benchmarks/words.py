"""Figures as people read them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from benchmarks.results import Results, Spread

_SECONDS = ((86_400 * 2, 86_400, "days"), (7_200, 3_600, "h"), (120, 60, "min"), (0.95, 1, "s"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


def seconds(value: float) -> str:
    """``2.31 s``, ``84 ms``, ``3.4 h``."""
    for least, unit, name in _SECONDS:
        if value >= least:
            return f"{digits(value / unit)} {name}"
    if value >= 0.001:
        return f"{digits(value * 1e3)} ms"
    return f"{digits(value * 1e6)} µs"


def size(value: float) -> str:
    """Of bytes, by powers of a thousand."""
    for unit, name in _BYTES:
        if value >= unit:
            return f"{digits(value / unit)} {name}"
    return f"{digits(value)} B"


def digits(value: float) -> str:
    """Three of them, and none after the point of what is above a hundred."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(values: Spread) -> str:
    """``0.25 (0.22 to 0.31)``: the median, and how far it went."""
    return f"{digits(values['median'])} ({digits(values['min'])} to {digits(values['max'])})"


def measured(results: Results, part: str) -> str:
    """``2026-11-23 at commit `0123abc` ``, the commit only if it differs from that of the cases."""
    part_measured = results["measured"][part]
    if part_measured["commit"] == results["measured"]["cases"]["commit"]:
        return part_measured["date"]
    return f"{part_measured['date']} at commit `{part_measured['commit']}`"


def paragraph(text: str, first: str = "", others: str = "") -> list[str]:
    """Its lines, filled; ``first`` and ``others`` begin them."""
    return textwrap.wrap(text, 100, initial_indent=first, subsequent_indent=others)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int = 1) -> list[str]:
    """Of Markdown; the columns from ``numbers_from`` on are numbers."""
    marks = ["---" if column < numbers_from else "--:" for column in range(len(head))]
    return [f"| {' | '.join(cells)} |" for cells in (head, marks, *rows)]
