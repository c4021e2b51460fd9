"""An inventory for people: a line for each job, and what they come to together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from migrate.commands.scan import Inventory
from migrate.fleet.inventory import ScannedJob
from migrate.report.text import number_text
from migrate.wording import counted, visible

if TYPE_CHECKING:
    from migrate.commands.scan_plans import BulkPlan

_COLUMNS = ("checkpoint", "sources", "partitions", "lag", "moves", "why not")
# Which of them are numbers.
_RIGHT = frozenset({"sources", "partitions", "lag"})


def inventory_table(inventory: Inventory) -> Iterator[str]:
    """A header and a line for each job, with newlines; nothing is cut, however wide it gets.

    Drawn by hand: rich takes seconds for ten thousand rows.
    """
    rows = [_COLUMNS, *(_row(job, _plan_of(job, inventory.plans)) for job in inventory.jobs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for name, cell, width in zip(_COLUMNS, row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip() + "\n"


def _plan_of(job: ScannedJob, plans: Mapping[str, BulkPlan] | None) -> BulkPlan | None:
    return plans[job.pointer] if plans is not None else None


def _row(job: ScannedJob, plan: BulkPlan | None) -> tuple[str, ...]:
    if not job.readable:
        moves, why_not = "unreadable", job.error_kind or ""
    elif not job.movable:
        moves, why_not = "no", ", ".join(job.obstacles)
    elif plan is not None and plan.file is None:
        moves, why_not = "no", visible("; ".join(plan.reasons))
    else:
        moves, why_not = "yes", f"check {', '.join(job.to_check)}" if job.to_check else ""
    return (
        visible(job.pointer),
        number_text(job.sources),
        number_text(job.positions),
        _lag(job),
        moves,
        why_not,
    )


def _lag(job: ScannedJob) -> str:
    """With a mark where that of some positions is not known."""
    if job.lag is None:
        return ""
    return f"{job.lag}+?" if job.lag_unknown else str(job.lag)


def summary_lines(inventory: Inventory) -> Iterator[str]:
    """What the jobs come to, in a few lines."""
    totals = inventory.totals
    unreadable = inventory.unreadable - totals.nowhere
    unread = f", {unreadable} of them unreadable" if unreadable else ""
    savepoints = f" and {counted(totals.savepoints, 'savepoint')}" if totals.savepoints else ""
    yield (
        f"{counted(totals.jobs, 'job')}{savepoints}, {counted(totals.positions, 'position')}; "
        f"{counted(inventory.checkpoints - totals.nowhere, 'checkpoint')} read{unread}"
    )
    if totals.lag is not None:
        yield f"lag: up to {counted(totals.lag, 'record')}"
    check = f" (check before: {_told(totals.to_check)})" if totals.to_check else ""
    yield f"can move: {totals.movable}{check}"
    if totals.blocked:
        yield f"cannot move: {totals.blocked} ({_told(totals.obstacles)})"
    if totals.unreadable:
        yield f"unreadable: {totals.unreadable} ({_told(totals.errors)})"
    if inventory.plans is not None:
        made = sum(plan.file is not None for plan in inventory.plans.values())
        failed = len(inventory.failures)
        refused = totals.movable - made - failed
        yield (
            f"plans: {made}"
            + (f"; {refused} that can move were refused" if refused else "")
            + (f"; {failed} that can move failed" if failed else "")
        )


def _told(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{what} {number}" for what, number in numbers.items())
