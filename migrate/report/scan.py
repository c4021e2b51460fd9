"""An inventory as a table with a row for each job, and the totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from migrate.fleet.inventory import Inventory, ScannedJob
from migrate.model.wording import counted, printable
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, numbers, table_lines

if TYPE_CHECKING:
    from migrate.fleet.inventory import BulkPlan


def inventory_table(inventory: Inventory, out: TextIO, *, wide: bool = False) -> Iterator[str]:
    """Yield the lines of a table: a row for each job, and a total.

    Paths below the current folder are shown relative to that folder, or with ``wide`` in full.
    """
    here = "" if wide else f"{Path.cwd()}/"
    jobs = inventory.jobs

    def style(job: ScannedJob) -> str:
        if _moves(job, inventory) != "yes":
            return "red"
        return "yellow" if job.to_check else "green"

    columns: tuple[Column[ScannedJob], ...] = (
        Column("MOVES", lambda job: _moves(job, inventory), style=style),
        Column(
            "CHECKPOINT",
            lambda job: printable(job.pointer.removeprefix(here)),
            own_line=Line.BELOW,
        ),
        numbers("SOURCES", lambda job: job.sources, total_of=jobs, drop_order=1),
        numbers("PARTITIONS", lambda job: job.positions, total_of=jobs),
        Column("LAG", _lag, right=True, total=_total_lag(jobs)),
        Column("WHY NOT", lambda job: _why_not(job, inventory), own_line=Line.BELOW),
    )
    return table_lines(columns, jobs, Screen.of(out), wide=wide)


def _moves(job: ScannedJob, inventory: Inventory) -> str:
    if not job.readable:
        return "unreadable"
    return "yes" if job.movable and _refused(job, inventory.plans) is None else "no"


def _refused(job: ScannedJob, plans: Mapping[str, BulkPlan] | None) -> BulkPlan | None:
    """Return the refused plan of a job; None if its plan was saved, or no plans were made."""
    plan = plans[job.pointer] if plans is not None else None
    return plan if plan is not None and plan.file is None else None


def _why_not(job: ScannedJob, inventory: Inventory) -> str:
    if not job.readable:
        return job.error_kind or ""
    if not job.movable:
        return ", ".join(job.obstacles)
    refused = _refused(job, inventory.plans)
    if refused is not None:
        return printable("; ".join(refused.reasons))
    return f"check {', '.join(job.to_check)}" if job.to_check else ""


def _total_lag(jobs: Sequence[ScannedJob]) -> str:
    known = [job.lag for job in jobs if job.lag is not None]
    unknown = any(job.lag_unknown for job in jobs)
    return f"{sum(known)}{'+?' if unknown else ''}" if known else ""


def _lag(job: ScannedJob) -> str:
    """Return the lag of a job, with ``+?`` if the lag of some positions is not known."""
    if job.lag is None:
        return ""
    return f"{job.lag}+?" if job.lag_unknown else str(job.lag)


def summary_lines(inventory: Inventory) -> Iterator[str]:
    """Yield the totals of all jobs."""
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
    check = f" (check before: {_counts(totals.to_check)})" if totals.to_check else ""
    yield f"can move: {totals.movable}{check}"
    if totals.blocked:
        yield f"cannot move: {totals.blocked} ({_counts(totals.obstacles)})"
    if totals.unreadable:
        yield f"unreadable: {totals.unreadable} ({_counts(totals.errors)})"
    if inventory.plans is not None:
        saved = sum(plan.file is not None for plan in inventory.plans.values())
        failed = len(inventory.failures)
        refused = totals.movable - saved - failed
        yield (
            f"plans: {saved}"
            + (f"; {refused} that can move were refused" if refused else "")
            + (f"; {failed} that can move failed" if failed else "")
        )


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())
