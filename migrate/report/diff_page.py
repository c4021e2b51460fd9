"""The HTML page of ``migrate diff --format html``: ``pages/diff.html``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup, escape

from migrate.model.wording import counted, printable
from migrate.planning.diff import Diff, DiffRow, Relation
from migrate.report.diff import start_text
from migrate.report.page import render_page
from migrate.report.text import difference_text

# The width and inner margin of a bar, in CSS pixels. diff.css uses the same width. The margin
# leaves room for half of the mark that shows a side's offset.
_BAR_WIDTH, _BAR_MARGIN = 240, 6
# The minimum width of a part of a bar, so that one record in a million is visible.
_LEAST_WIDTH = 2.0


def diff_page(diff: Diff, made: datetime) -> str:
    """Return the HTML page of a comparison, with the time at which it was ``made``."""
    totals, clipped = diff.totals, diff.is_clipped
    notes = dict.fromkeys(Relation, "") | {
        Relation.AHEAD: f"by {totals.offsets_ahead} offsets",
        Relation.BEHIND: f"by {totals.offsets_behind} offsets",
    }
    return render_page(
        "diff",
        title=f"{diff.left.label} and {diff.right.label}: Kafka offsets",
        diff=diff,
        relations=Relation,
        notes=notes,
        made=made.isoformat(sep=" ", timespec="seconds"),
        count=counted(len(diff.rows), "partition"),
        clipped=clipped,
        rows=[_row(row, clipped=clipped) for row in diff.rows],
    )


def _row(row: DiffRow, *, clipped: bool) -> Markup:
    """Return a row of the table.

    No template is used, because it would be four times slower for thousands of rows. Only the topic
    is escaped, because it is the only untrusted text.
    """
    left, right = start_text(row.left, row.left_offset), start_text(row.right, row.right_offset)
    log, relation = row.log, row.relation.value
    cells = [
        f'<tr data-relation="{relation}"><td>{escape(printable(row.topic))}</td>',
        _number(row.partition),
        _number(row.left_offset, left),
        _number(row.right_offset, right),
        _number(row.difference, difference_text(row.difference)),
        _number(row.records_between) if clipped else "",
        f'<td class="{relation}">{relation.replace("-", " ")}</td>',
        _number(log.start if log is not None else None),
        _number(log.end if log is not None else None),
        _number(row.lag),
        f'<td class="{relation}">{_svg(row, left, right)}</td></tr>',
    ]
    return Markup("".join(cells))


def _number(value: int | None, text: str = "") -> str:
    """Return the cell for a number; any ``text`` is shown instead of the number."""
    number = "" if value is None else str(value)
    attribute = f' data-value="{number}"' if text and text != number else ""
    return f'<td class="number"{attribute}>{text or number}</td>'


def _svg(row: DiffRow, left: str, right: str) -> str:
    bar = _bar(row)
    if bar is None:
        return ""
    log = f"log {row.log.start} to {row.log.end}, " if row.log is not None else ""
    marks = [
        f'<rect class="{css}" x="{start}" y="8" width="{width}" height="6" rx="1"/>'
        for css, start, width in bar.stretches
    ]
    if bar.left:
        marks.append(f'<path class="at-left" d="M{bar.left} 8l-4-7h8z"/>')
    if bar.right:
        marks.append(f'<path class="at-right" d="M{bar.right} 14l-4 7h8z"/>')
    label = f"{log}left {left}, right {right}"
    return f'<svg role="img" aria-label="{label}">{"".join(marks)}</svg>'


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar that shows the log, both sides, and the offsets between them, on one scale.

    Attributes:
        stretches: the CSS class, x-coordinate, and width of the log's stretch and of the stretch
            between the two sides.
        left, right: the x-coordinate of the side's offset; None for an unknown offset.
    """

    stretches: list[tuple[str, str, str]]
    left: str | None
    right: str | None


def _bar(row: DiffRow) -> _Bar | None:
    sides, log = (row.left_offset, row.right_offset), row.log
    bounds = (log.start, log.end) if log is not None else ()
    known = [offset for offset in (*bounds, *sides) if offset is not None]
    if not known:
        return None
    low, span = min(known), max(known) - min(known)

    def pixel(offset: int) -> float:
        share = (offset - low) / span if span else 0.5
        return _BAR_MARGIN + share * (_BAR_WIDTH - 2 * _BAR_MARGIN)

    def stretch(css: str, start: int, end: int) -> tuple[str, str, str]:
        width = max(pixel(end) - pixel(start), _LEAST_WIDTH)
        return css, f"{pixel(start):.1f}", f"{width:.1f}"

    stretches = [stretch("log", log.start, log.end)] if log is not None else []
    if row.difference and row.left_offset is not None and row.right_offset is not None:
        stretches.append(stretch("between", *sorted((row.left_offset, row.right_offset))))
    left, right = (f"{pixel(side):.1f}" if side is not None else None for side in sides)
    return _Bar(stretches, left, right)
