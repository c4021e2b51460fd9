"""The table of a cut-over: the steps in their order.

``stop`` is the point of no return: from there on Flink has ended the job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from migrate.cutover.decide_stop import decide_check, decide_clean, decide_stop
from migrate.cutover.decide_target import (
    decide_apply,
    decide_first_batch,
    decide_plan,
    decide_start,
    decide_verify,
    decide_verify_again,
)
from migrate.cutover.decision import Decision
from migrate.cutover.facts import Facts, Need


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        name: as ``--until`` names it.
        title: what it does where the target is a checkpoint location.
        group_title: what it does where the target is a group.
        needs: the facts that ``decide`` asks for.
        decide: the next action, or why there is none.
        before: what is so if a run stops before the action of this step.
        left: what is so if a run stops in the action.
    """

    name: str
    title: str
    group_title: str
    needs: Sequence[Need]
    decide: Callable[[Facts], Decision]
    before: str
    left: str


NOTHING = "nothing was changed, and the job runs on"
STOPPED = "Flink's job has stopped, and this run has not written the target"
WRITTEN = "Flink's job has stopped, and an earlier run has written the target"
_IN_PART = "Flink's job has stopped, and the target is not written, or in part"
_READY = "the target is written, and this run has started nothing from it"


_TARGET = (Need.TARGET, Need.STARTED_AGAIN)


def _step(
    name: str,
    title: str,
    needs: Sequence[Need],
    decide: Callable[[Facts], Decision],
    left: str,
    *,
    before: str | None = None,
    group: str | None = None,
) -> Step:
    return Step(name, title, group or title, needs, decide, before or left, left)


STEPS: Sequence[Step] = (
    _step("check", "look for what stands in the way", (Need.JOB,), decide_check, NOTHING),
    _step(
        "stop",
        "stop the job with a savepoint",
        (Need.JOB,),
        decide_stop,
        "Flink was asked to stop the job, and may still do so",
        before=NOTHING,
    ),
    _step(
        "clean",
        "check that the stop was clean",
        (Need.SAVEPOINT, Need.ENDED_JOB),
        decide_clean,
        STOPPED,
    ),
    _step("plan", "plan from the savepoint", (Need.TARGET,), decide_plan, STOPPED),
    _step(
        "apply",
        "write the checkpoint location",
        _TARGET,
        decide_apply,
        _IN_PART,
        before=STOPPED,
        group="commit for the group",
    ),
    _step(
        "verify",
        "check where the query will start",
        _TARGET,
        decide_verify,
        _READY,
        group="check where the consumers will start",
    ),
    _step(
        "start",
        "start the query",
        _TARGET,
        decide_start,
        _READY,
        group="start the consumers",
    ),
    _step(
        "first-batch",
        "wait for the first batch",
        (Need.TARGET,),
        decide_first_batch,
        "the query was started, and has not committed a batch yet",
        group="wait for members or commits of the group",
    ),
    _step(
        "verify-again",
        "check where the query began",
        _TARGET,
        decide_verify_again,
        "the target has begun, and was not seen to have begun right",
        group="check where the consumers began",
    ),
)
NAMES = tuple(step.name for step in STEPS)
