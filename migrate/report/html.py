"""Self-contained pages: what each is made of, and that of ``migrate diff --format html``.

A page asks for nothing from anywhere, and its content security policy lets it neither: of scripts
and styles only its own run, known by their hashes. Names come from files that anyone may have
written: they reach the page as escaped text alone, and no script builds anything of them.

What the page of a diff looks like and does is in ``diff_page/``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import datetime
from html import escape
from importlib.resources import files
from string import Template

from migrate.model.positions import PositionSet
from migrate.model.wording import counted, printable
from migrate.planning.diff import Diff, DiffRow, DiffTotals, Relation
from migrate.report.diff import start_text
from migrate.report.text import difference_text, number_text

# The bars, in CSS pixels: as wide as page.css makes them, with room for half a mark on both ends.
_BAR_WIDTH, _BAR_MARGIN = 240, 6
# So that a difference of one record in a million is still seen.
_LEAST_WIDTH = 2.0

_COLUMNS = (
    ("topic", "text"),
    ("partition", "number"),
    ("left", "number"),
    ("right", "number"),
    ("difference", "number"),
    ("offsets between", "number"),
    ("relation", "text"),
    ("log start", "number"),
    ("log end", "number"),
)


def part(*names: str) -> str:
    """A file of a page, by the folder that is beside this module, and its name."""
    return files("migrate.report").joinpath(*names).read_text(encoding="utf-8")


def page(folder: str, policy: str, **fields: str) -> str:
    """A page: the head of every page, and ``page.html`` of its folder, filled in.

    Args:
        policy: the page's content security policy.
    """
    text = part("page_head.html") + part(folder, "page.html")
    return Template(text).substitute(fields, policy=policy, style=part(folder, "page.css"))


def source_hash(text: str) -> str:
    """How a content security policy names a style or a script that it lets run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def page_text(text: str) -> str:
    """All of a page is ASCII: it is the same in whatever encoding it is written down."""
    return escape(printable(text)).encode("ascii", "xmlcharrefreplace").decode()


# -- the page of a diff ----------------------------------------------------------------------------


def diff_page(diff: Diff, made: datetime) -> str:
    """The page.

    Args:
        diff: what is shown.
        made: the time that the page names as its own.
    """
    style, script = part("diff_page", "page.css"), part("diff_page", "page.js")
    policy = (
        f"default-src 'none'; style-src '{source_hash(style)}'; "
        f"script-src '{source_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    return page(
        "diff_page",
        policy,
        script=script,
        title=page_text(f"{diff.left.label} and {diff.right.label}: Kafka offsets"),
        left=_side(diff.left),
        right=_side(diff.right),
        made=page_text(made.isoformat(sep=" ", timespec="seconds")),
        totals="".join(_totals(diff.totals)),
        count=counted(len(diff.rows), "partition"),
        columns="".join(_columns()),
        rows="\n".join(map(_row, diff.rows)),
    )


def _side(side: PositionSet) -> str:
    return page_text(side.label + (f" ({side.note})" if side.note else ""))


def _totals(totals: DiffTotals) -> Iterator[str]:
    """A number to read, and a button that shows those partitions alone."""
    yield _total("", "partitions", totals.partitions, "")
    notes = {
        Relation.AHEAD: f"by {totals.offsets_ahead} offsets",
        Relation.BEHIND: f"by {totals.offsets_behind} offsets",
    }
    for relation in Relation:
        count = totals.of(relation)
        note = notes.get(relation, "") if count else ""
        yield _total(relation.value, relation.value.replace("-", " "), count, note)


def _total(relation: str, name: str, count: int, note: str) -> str:
    disabled = "" if count else " disabled"
    return (
        f'<button type="button" data-relation="{relation}" '
        f'aria-pressed="{"false" if relation else "true"}"{disabled}>'
        f'{name}<b class="{relation}">{count}</b><small>{note}</small></button>'
    )


def _columns() -> Iterator[str]:
    for name, kind in _COLUMNS:
        css = ' class="number"' if kind == "number" else ""
        yield f'<th scope="col" data-kind="{kind}"{css}><button type="button">{name}</button></th>'
    yield '<th scope="col"><span>where they stand</span></th>'


def _row(row: DiffRow) -> str:
    relation = row.relation.value
    log = row.log
    cells = (
        f"<td>{page_text(row.topic)}</td>",
        _number(row.partition),
        _number(row.left_offset, start_text(row.left, row.left_offset)),
        _number(row.right_offset, start_text(row.right, row.right_offset)),
        _number(row.difference, difference_text(row.difference)),
        _number(row.records_between),
        f'<td class="{relation}">{relation.replace("-", " ")}</td>',
        _number(log.start if log is not None else None),
        _number(log.end if log is not None else None),
        f'<td class="{relation}">{_bar(row)}</td>',
    )
    return f'<tr data-relation="{relation}">{"".join(cells)}</tr>'


def _number(value: int | None, shown: str | None = None) -> str:
    """A cell that sorts by its value, whatever it shows."""
    number = number_text(value)
    if shown is None or shown == number:
        return f'<td class="number">{number}</td>'
    return f'<td class="number" data-value="{number}">{page_text(shown)}</td>'


# -- bars ----------------------------------------------------------------------------------------


def _bar(row: DiffRow) -> str:
    """The log, both sides and what lies between them, on one scale; the sides point at it."""
    bounds = (row.log.start, row.log.end) if row.log is not None else ()
    known = [
        offset for offset in (*bounds, row.left_offset, row.right_offset) if offset is not None
    ]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known)

    def place(offset: int) -> float:
        share = (offset - low) / span if span else 0.5
        return _BAR_MARGIN + share * (_BAR_WIDTH - 2 * _BAR_MARGIN)

    marks = []
    if row.log is not None:
        marks.append(_stretch("log", place(row.log.start), place(row.log.end)))
    if row.difference and row.left_offset is not None and row.right_offset is not None:
        ends = sorted((place(row.left_offset), place(row.right_offset)))
        marks.append(_stretch("between", *ends))
    if row.left_offset is not None:
        x = place(row.left_offset)
        marks.append(f'<path class="at-left" d="M{x:.1f} 8l-4-7h8z"/>')
    if row.right_offset is not None:
        x = place(row.right_offset)
        marks.append(f'<path class="at-right" d="M{x:.1f} 14l-4 7h8z"/>')
    return f'<svg role="img" aria-label="{page_text(_in_words(row))}">{"".join(marks)}</svg>'


def _stretch(css: str, start: float, end: float) -> str:
    width = max(end - start, _LEAST_WIDTH)
    return f'<rect class="{css}" x="{start:.1f}" y="8" width="{width:.1f}" height="6" rx="1"/>'


def _in_words(row: DiffRow) -> str:
    log = f"log {row.log.start} to {row.log.end}, " if row.log is not None else ""
    left = start_text(row.left, row.left_offset)
    right = start_text(row.right, row.right_offset)
    return f"{log}left {left}, right {right}"
