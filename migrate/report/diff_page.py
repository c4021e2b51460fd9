"""The HTML page of ``migrate diff --format html``: ``pages/diff.html``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from migrate.model.wording import counted
from migrate.planning.diff import Diff, DiffRow, Relation
from migrate.report.diff import start_text
from migrate.report.page import render_page
from migrate.report.text import difference_text

# Width and inner margin of a bar in CSS pixels. diff.css has the same width. The margin has room
# for half of a mark for a side's offset.
_BAR_WIDTH, _BAR_MARGIN = 240, 6
# The minimum width of a part of a bar, so that one record of a million is visible.
_LEAST_WIDTH = 2.0


def diff_page(diff: Diff, made: datetime) -> str:
    """Return the HTML page of a comparison with the time when it was ``made``."""
    totals = diff.totals
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
        clipped=diff.is_clipped,
        rows=[
            (
                row,
                start_text(row.left, row.left_offset),
                start_text(row.right, row.right_offset),
                difference_text(row.difference),
                _bar(row),
            )
            for row in diff.rows
        ],
    )


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar with the log, both sides and the offsets between them, on one scale in CSS pixels.

    Attributes:
        stretches: the CSS class, x coordinate and width of the log's stretch, and of the stretch
            between the two sides.
        left, right: the x coordinate of the side's offset; None for an unknown offset.
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
