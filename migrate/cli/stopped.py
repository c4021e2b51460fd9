"""Has the job stopped? What there is to say of it before a consumer group is changed.

A group without members is no proof: KafkaSource joins none, and a running job overwrites what is
committed at its next checkpoint.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone

from decoder import DecodeError
from migrate.cli.planning import Move, Request, check_unmoved
from migrate.cli.streams import say
from migrate.plan_file import PlanFile
from migrate.spark_query import is_query
from migrate.stopped import look_beside
from migrate.storage import Files, MissingExtra

# How far two reads lie apart, in checkpoint intervals: no checkpoint comes exactly on time.
_INTERVALS = 2.0
# In seconds: no less, as a checkpoint of a busy job takes a while in itself; and what a user may be
# asked to wait for.
_SHORTEST, _LONGEST = 3.0, 60.0

_WAYS_TO_PROVE = "--flink-rest URL asks Flink, and a stop-with-savepoint is proof in itself"


def tell_what_runs(saved: PlanFile, flink_rest: str | None) -> list[str]:
    """Tell what is known without waiting; the jobs that Flink still has, in lines, to refuse for.

    Raises:
        FlinkRestError: Flink was to be asked, and did not answer.
    """
    running = _ask_flink(flink_rest) if flink_rest is not None else []
    if not running:
        _tell_whether_it_stopped(saved, asked=flink_rest is not None)
    return running


def _tell_whether_it_stopped(saved: PlanFile, *, asked: bool) -> None:
    if is_query(saved.checkpoint.pointer):
        say("Spark commits to no group: these offsets stand still until this is run again")
        return
    if saved.checkpoint.stopped:
        say("stopped: this savepoint is the job's last output, unless it was started from it again")
        return
    if asked:
        return
    interval = _interval(saved)
    if interval is None:
        watch = "how often it takes a checkpoint does not show here"
    elif _apart(interval) > _LONGEST:
        watch = f"it takes a checkpoint about every {interval:.0f} s, too long to wait for here"
    else:
        watch = f"--execute looks twice, {_apart(interval):.0f} s apart"
    say(
        "not proven stopped: KafkaSource joins no group, so that a running job does not show here, "
        f"and would overwrite these offsets at its next checkpoint; {watch}; {_WAYS_TO_PROVE}"
    )


def look_twice(request: Request, move: Move) -> None:
    """Just before asking: did anything move in longer than the job takes to its next checkpoint?

    Nothing is waited for where that would show nothing: beside a savepoint, where the interval does
    not show, and where it is too long.

    Raises:
        Refused: the job runs.
    """
    interval = None if move.saved.checkpoint.stopped else _interval(move.saved)
    if interval is None or _apart(interval) > _LONGEST:
        return
    planned_at = datetime.fromisoformat(move.saved.created_at)
    # A plan may be of another machine, whose clock is ahead of this one's.
    passed = max(0.0, (datetime.now(timezone.utc) - planned_at).total_seconds())
    wait = _apart(interval) - passed
    if wait > 0:
        say(f"waiting {wait:.0f} s for a checkpoint that a running job would take")
        time.sleep(wait)
    if not check_unmoved(request, move):
        return
    apart = (datetime.now(timezone.utc) - planned_at).total_seconds()
    group = move.saved.source_group
    watched = f"group {group} has not moved, and " if group is not None else ""
    say(
        f"{watched}no checkpoint was completed in {apart:.0f} s; they came about every "
        f"{interval:.1f} s: the job seems stopped, where this is its own checkpoint directory"
    )


def _apart(interval: float) -> float:
    return max(_INTERVALS * interval, _SHORTEST)


def _interval(saved: PlanFile) -> float | None:
    if is_query(saved.checkpoint.pointer):
        return None
    try:
        beside = look_beside(saved.checkpoint.pointer, saved.checkpoint.id, Files())
    except (DecodeError, MissingExtra):
        return None
    return beside.interval if beside is not None else None


def _ask_flink(url: str) -> list[str]:
    from migrate.flink_rest import unfinished_jobs
    from migrate.report.text import visible

    running = [
        f"Flink still has job {job.job_id} ({visible(job.name)}), {job.state}; if it is the one "
        "that moves, stop it with a savepoint first, or leave --flink-rest out"
        for job in unfinished_jobs(url)
    ]
    if not running:
        say("Flink has no job that has not ended")
    return running
