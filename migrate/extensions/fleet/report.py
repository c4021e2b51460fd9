"""An inventory as a table with one row per job, and the totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from migrate.extensions.fleet.inventory import Inventory, ScannedJob, count_by_frequency
from migrate.extensions.fleet.lag import UNREACHABLE
from migrate.model.finding import Code
from migrate.model.wording import counted
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, table_lines
from migrate.report.text import lag_text

# The descriptions of obstacles that disappear once the job is stopped with a savepoint.
_ENDED_BY_A_STOP = {
    Code.IN_FLIGHT_RECORDS.value: "in-flight-records (in an unaligned checkpoint)",
    Code.PENDING_TRANSACTIONS.value: "pending-transactions",
}

_YES = "no obstacle was found; the scan does not check whether jobs are running or were restarted"


def inventory_table(inventory: Inventory, out: TextIO, *, wide: bool = False) -> Iterator[str]:
    """Yield the lines of a table with a row for each job, and a total.

    Without ``wide``, paths under the current folder are relative to it.
    """
    here = "" if wide else f"{Path.cwd()}/"
    jobs = inventory.jobs
    unknown = sum(job.lag_unknown + job.unlisted for job in jobs)
    total_lag = lag_text(inventory.totals.lag, unknown)

    def moves(job: ScannedJob) -> str:
        return _moves_and_why(job, inventory)[0]

    def style(job: ScannedJob) -> str:
        return {"yes": "green", "check": "yellow"}.get(moves(job), "red")

    columns: tuple[Column[ScannedJob], ...] = (
        Column("MOVES", moves, style=style),
        Column("CHECKPOINT", lambda job: job.pointer.removeprefix(here), own_line=Line.BELOW),
        Column("SOURCES", lambda job: job.sources, total=True, drop_order=1),
        Column("PARTITIONS", lambda job: job.positions, total=True),
        Column(
            "LAG",
            lambda job: lag_text(job.lag, job.lag_unknown + job.unlisted),
            right=True,
            total=total_lag,
        ),
        Column("WHY", lambda job: _moves_and_why(job, inventory)[1], own_line=Line.BELOW),
    )
    return table_lines(columns, jobs, Screen.of(out), wide=wide)


def _moves_and_why(job: ScannedJob, inventory: Inventory) -> tuple[str, str]:
    """Return the MOVES and WHY cells.

    MOVES has the first value whose condition applies: ``unreadable`` if the checkpoint could not be
    read; ``no`` if there is an obstacle, or if no plan could be made; ``check`` if the user must
    check something first; or else ``yes``.
    """
    if not job.readable:
        return "unreadable", job.error_kind or ""
    if not job.movable:
        return "no", ", ".join(job.obstacles)
    plan = inventory.plans[job.pointer] if inventory.plans is not None else None
    if plan is not None and plan.file is None:
        return "no", "; ".join(plan.reasons)
    return "check" if job.to_check else "yes", ", ".join(job.to_check)


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
        unknown = sum(job.lag_unknown for job in inventory.jobs)
        unlisted = sum(job.unlisted for job in inventory.jobs)
        yield (
            f"lag: up to {counted(totals.lag, 'record')}"
            + (f", plus {counted(unknown, 'position')} with unknown lag" if unknown else "")
            + (
                f", plus {counted(unlisted, 'partition')} with records that a checkpoint lacks"
                if unlisted
                else ""
            )
        )
    if totals.lag is None and (unanswered := totals.obstacles.get(UNREACHABLE)):
        yield f"lag: unknown; the broker did not answer for {counted(unanswered, 'job')}"
    jobs: dict[str, list[ScannedJob]] = {"yes": [], "check": [], "no": [], "unreadable": []}
    for job in inventory.jobs:
        jobs[_moves_and_why(job, inventory)[0]].append(job)
    yield f"yes: {len(jobs['yes'])}" + (f" ({_YES})" if jobs["yes"] else "")
    if jobs["check"]:
        codes = count_by_frequency(code for job in jobs["check"] for code in job.to_check)
        yield f"check: {len(jobs['check'])} ({_counts(codes)})"
    if jobs["no"]:
        refused = sum(job.movable for job in jobs["no"])
        plans = {"no plan": refused} if refused else {}
        yield f"no: {len(jobs['no'])} ({_counts({**totals.obstacles, **plans})})"
    if totals.not_read:
        yield f"unreadable: {totals.not_read} ({_counts(totals.errors)})"
    if inventory.plans is not None:
        saved = sum(plan.file is not None for plan in inventory.plans.values())
        failed = len(inventory.failures)
        refused = totals.movable - saved - failed
        yield (
            f"plans: {saved} saved"
            + (f", {refused} refused" if refused else "")
            + (f", {failed} failed" if failed else "")
        )
    if ended := [words for code, words in _ENDED_BY_A_STOP.items() if code in totals.obstacles]:
        yield (
            f"if the job is running, a stop-with-savepoint resolves {' and '.join(ended)}; use "
            "`migrate cut-over`, or stop the job and scan its savepoint"
        )


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())
