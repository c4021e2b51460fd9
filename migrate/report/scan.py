"""An inventory as a table with a row for each job, and the totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from migrate.fleet.inventory import Inventory, ScannedJob, most_frequent
from migrate.model.wording import counted, printable
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, numbers, table_lines

if TYPE_CHECKING:
    from migrate.fleet.inventory import JobPlan


def inventory_table(inventory: Inventory, out: TextIO, *, wide: bool = False) -> Iterator[str]:
    """Yield the lines of a table: a row for each job, and a total.

    Paths below the current folder are shown relative to that folder; with ``wide``, in full.
    """
    here = "" if wide else f"{Path.cwd()}/"
    jobs = inventory.jobs

    def style(job: ScannedJob) -> str:
        return {"yes": "green", "check": "yellow"}.get(_moves(job, inventory), "red")

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
        Column("WHY", lambda job: _why(job, inventory), own_line=Line.BELOW),
    )
    return table_lines(columns, jobs, Screen.of(out), wide=wide)


def _moves(job: ScannedJob, inventory: Inventory) -> str:
    """Return the cell MOVES.

    Returns:
        ``yes`` without an obstacle, ``check`` if there is something to check first, ``no`` with an
        obstacle or if its plan was refused or failed, or ``unreadable``.
    """
    if not job.readable:
        return "unreadable"
    if not job.movable or _without_plan(job, inventory.plans) is not None:
        return "no"
    return "check" if job.to_check else "yes"


def _without_plan(job: ScannedJob, plans: Mapping[str, JobPlan] | None) -> JobPlan | None:
    """Return the result of a job's planning if no plan was saved, because it was refused or failed.

    Otherwise, or if no plans were made, return None.
    """
    plan = plans[job.pointer] if plans is not None else None
    return plan if plan is not None and plan.file is None else None


def _why(job: ScannedJob, inventory: Inventory) -> str:
    if not job.readable:
        return job.error_kind or ""
    if not job.movable:
        return ", ".join(job.obstacles)
    without_plan = _without_plan(job, inventory.plans)
    if without_plan is not None:
        return printable("; ".join(without_plan.reasons))
    return ", ".join(job.to_check)


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
    """Yield lines with the totals of all jobs and plans."""
    totals = inventory.totals
    unreadable = inventory.unreadable - totals.unlistable
    unread = f", {unreadable} of them unreadable" if unreadable else ""
    savepoints = f" and {counted(totals.savepoints, 'savepoint')}" if totals.savepoints else ""
    yield (
        f"{counted(totals.jobs, 'job')}{savepoints}, {counted(totals.positions, 'position')}; "
        f"{counted(inventory.checkpoints - totals.unlistable, 'checkpoint')} read{unread}"
    )
    if totals.lag is not None:
        yield f"lag: up to {counted(totals.lag, 'record')}"
    jobs = {
        moves: [job for job in inventory.jobs if _moves(job, inventory) == moves]
        for moves in ("yes", "check", "no")
    }
    yield f"yes: {len(jobs['yes'])} (no obstacle was found)"
    if jobs["check"]:
        codes = most_frequent(code for job in jobs["check"] for code in job.to_check)
        yield f"check: {len(jobs['check'])} ({_counts(codes)})"
    if jobs["no"]:
        refused = sum(job.movable for job in jobs["no"])
        plans = {"no plan": refused} if refused else {}
        yield f"no: {len(jobs['no'])} ({_counts({**totals.obstacles, **plans})})"
    if totals.unreadable:
        yield f"unreadable: {totals.unreadable} ({_counts(totals.errors)})"
    if inventory.plans is not None:
        saved = sum(plan.file is not None for plan in inventory.plans.values())
        failed = len(inventory.failures)
        refused = totals.movable - saved - failed
        yield (
            f"plans: {saved} saved"
            + (f", {refused} refused" if refused else "")
            + (f", {failed} failed" if failed else "")
        )


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())
