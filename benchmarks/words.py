"""Format figures, and paragraphs and tables in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from benchmarks.results import Results, Spread

# For each unit, its least shown value, its length in seconds, and its name.
_SECONDS = ((86_400 * 2, 86_400, "days"), (7_200, 3_600, "h"), (120, 60, "min"), (0.95, 1, "s"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


def seconds(value: float) -> str:
    """Return a duration with its unit: ``2.31 s``, ``84 ms``, ``3.4 h``."""
    for least, unit, name in _SECONDS:
        if value >= least:
            return f"{digits(value / unit)} {name}"
    if value >= 0.001:
        return f"{digits(value * 1e3)} ms"
    return f"{digits(value * 1e6)} µs"


def size(value: float) -> str:
    """Return a number of bytes with its unit, a power of a thousand."""
    for unit, name in _BYTES:
        if value >= unit:
            return f"{digits(value / unit)} {name}"
    return f"{digits(value)} B"


def digits(value: float) -> str:
    """Return a number with three significant digits, or without decimals from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(values: Spread) -> str:
    """Return the median of ratios, and their range: ``0.25 (0.22 to 0.31)``."""
    return f"{digits(values['median'])} ({digits(values['min'])} to {digits(values['max'])})"


def measured(results: Results, part: str) -> str:
    """Return the date of a part, and its commit if it differs from the commit of the cases.

    For example ``2026-11-23 at commit `0123abc` ``.
    """
    measurement = results["measured"][part]
    if measurement["commit"] == results["measured"]["cases"]["commit"]:
        return measurement["date"]
    return f"{measurement['date']} at commit `{measurement['commit']}`"


def paragraph(text: str) -> list[str]:
    """Return the lines of a paragraph, wrapped."""
    return textwrap.wrap(text, 100)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int = 1) -> list[str]:
    """Return the lines of a table, with the columns from ``numbers_from`` on aligned right."""
    marks = ["---" if column < numbers_from else "--:" for column in range(len(head))]
    return [f"| {' | '.join(cells)} |" for cells in (head, marks, *rows)]
