"""Has the job stopped? What there is to say of it before a consumer group is changed.

A group without members is no proof: KafkaSource joins none, and a running job overwrites what is
committed at its next checkpoint.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from decoder import DecodeError
from migrate.api.arguments import Request
from migrate.api.planning import check_unmoved
from migrate.api.telling import log
from migrate.spark_query import is_query
from migrate.stopped import look_beside
from migrate.storage import Files, MissingExtra

if TYPE_CHECKING:
    from migrate.plan_file import PlanFile

# How far two reads lie apart, in checkpoint intervals: no checkpoint comes exactly on time.
_INTERVALS = 2.0
# In seconds: no less, as a checkpoint of a busy job takes a while in itself; and what a user may be
# asked to wait for.
_SHORTEST, _LONGEST = 3.0, 60.0

_WAYS_TO_PROVE = "--flink-rest URL asks Flink, and a stop-with-savepoint is proof in itself"


def interval_of(saved: PlanFile) -> float | None:
    """How often the job takes a checkpoint, in seconds; None where that does not show or matter."""
    checkpoint = saved.checkpoint
    if is_query(checkpoint.pointer) or checkpoint.stopped:
        return None
    try:
        beside = look_beside(checkpoint.pointer, checkpoint.id, Files())
    except (DecodeError, MissingExtra):
        return None
    return beside.interval if beside is not None else None


def tell_what_runs(
    saved: PlanFile, interval: float | None, flink_rest: str | None
) -> tuple[str, ...]:
    """Tell what is known without waiting; the jobs that Flink still has, in lines, to refuse for.

    Args:
        interval: what ``interval_of`` said.
        flink_rest: the address of a JobManager, where one is to be asked.

    Raises:
        FlinkRestError: Flink was to be asked, and did not answer.
    """
    running = _ask_flink(flink_rest) if flink_rest is not None else ()
    if running:
        return running
    if is_query(saved.checkpoint.pointer):
        log.info("Spark commits to no group: these offsets stand still until this is run again")
    elif saved.checkpoint.stopped:
        log.info(
            "stopped: this savepoint is the job's last output, unless it was started from it again"
        )
    elif flink_rest is None:
        log.warning(
            "not proven stopped: KafkaSource joins no group, so that a running job does not show "
            "here, and would overwrite these offsets at its next checkpoint; "
            f"{_watch(interval)}; {_WAYS_TO_PROVE}"
        )
    return ()


def _watch(interval: float | None) -> str:
    if interval is None:
        return "how often it takes a checkpoint does not show here"
    if _apart(interval) > _LONGEST:
        return f"it takes a checkpoint about every {interval:.0f} s, too long to wait for here"
    return f"--execute looks twice, {_apart(interval):.0f} s apart"


def look_twice(request: Request, saved: PlanFile, interval: float | None) -> None:
    """Just before asking: did anything move in longer than the job takes to its next checkpoint?

    Nothing is waited for where that would show nothing: beside a savepoint, where the interval does
    not show, and where it is too long.

    Raises:
        Refused: the job runs.
    """
    if interval is None or _apart(interval) > _LONGEST:
        return
    planned_at = datetime.fromisoformat(saved.created_at)
    # A plan may be of another machine, whose clock is ahead of this one's.
    passed = max(0.0, (datetime.now(timezone.utc) - planned_at).total_seconds())
    wait = _apart(interval) - passed
    if wait > 0:
        log.info(f"waiting {wait:.0f} s for a checkpoint that a running job would take")
        time.sleep(wait)
    if not check_unmoved(request, saved):
        return
    apart = (datetime.now(timezone.utc) - planned_at).total_seconds()
    group = saved.source_group
    watched = f"group {group} has not moved, and " if group is not None else ""
    log.info(
        f"{watched}no checkpoint was completed in {apart:.0f} s; they came about every "
        f"{interval:.1f} s: the job seems stopped, where this is its own checkpoint directory"
    )


def _apart(interval: float) -> float:
    return max(_INTERVALS * interval, _SHORTEST)


def _ask_flink(url: str) -> tuple[str, ...]:
    from migrate.flink_rest import unfinished_jobs

    running = tuple(
        f"Flink still has job {job.job_id} ({job.name}), {job.state}; if it is the one "
        "that moves, stop it with a savepoint first, or leave --flink-rest out"
        for job in unfinished_jobs(url)
    )
    if not running:
        log.info("Flink has no job that has not ended")
    return running
