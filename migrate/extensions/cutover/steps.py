"""List the steps of a cut-over in order, and the function of each action."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from migrate.extensions.cutover import (
    decide,
    make_plan,
    preflight,
    start,
    stop_job,
    verify_start,
    write_target,
)
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.decide import Action, Decision
from migrate.extensions.cutover.facts import Facts, Need, Unavailable


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a cut-over.

    Attributes:
        name: the name that ``--until`` accepts.
        title: a description of the step.
        needs: the facts that ``rule`` uses.
        state: the state of the job and the target until the step is done. If empty,
            ``CutOverContext.state`` applies.
        group_title: a description of the step if the target is a group. If empty, ``title``
            applies.
    """

    name: str
    title: str
    needs: Sequence[Need]
    rule: Callable[[Facts], Decision]
    state: str = ""
    group_title: str = ""

    def title_of(self, is_group: bool) -> str:
        return (self.group_title if is_group else "") or self.title

    def decide(self, facts: Facts) -> Decision:
        """Return the next action, or the reason that there is none.

        Raises:
            Refused, CutOverStopped: the cut-over cannot continue.
            Exception: a required fact could not be read.
        """
        if isinstance(facts.target, Unavailable):
            raise facts.target.error
        return self.rule(facts)


_TARGET: Sequence[Need] = ("target", "started again", "other cut-overs")

STEPS: Sequence[Step] = (
    Step("check", "find obstacles", ("job", "other cut-overs"), decide.decide_check),
    Step("stop", "stop the job with a savepoint", ("job",), decide.decide_stop),
    Step("clean", "check that the stop was clean", ("savepoint", "ended job"), decide.decide_clean),
    Step("plan", "plan from the savepoint", ("target", "other cut-overs"), decide.decide_plan),
    Step(
        "apply",
        "write the checkpoint location",
        _TARGET,
        decide.decide_apply,
        group_title="commit for the group",
    ),
    Step(
        "verify",
        "check the query's start offsets",
        _TARGET,
        decide.decide_verify,
        group_title="check the consumers' start offsets",
    ),
    Step(
        "start", "start the query", _TARGET, decide.decide_start, group_title="start the consumers"
    ),
    Step(
        "first-batch",
        "wait for the first batch",
        ("target",),
        decide.decide_first_batch,
        "the target was written, but this run has not seen a batch or commit",
        "wait for members or commits of the group",
    ),
    Step(
        "verify-again",
        "check the actual start offsets of the query",
        _TARGET,
        decide.decide_verify_again,
        "readers have started from the target, but this run has not verified their start",
        "check the actual start offsets of the consumers",
    ),
)
# The state of the job and the target after the last step.
ALL_DONE = "readers have started from the target, and their start is verified"
NAMES = tuple(step.name for step in STEPS)

ACTIONS: Mapping[Action, Callable[[CutOverContext, Facts], str]] = {
    Action.CHECK: preflight.check,
    Action.STOP: stop_job.stop,
    Action.AWAIT_STOP: stop_job.await_stop,
    Action.RECORD_SAVEPOINT: stop_job.record_savepoint,
    Action.RECORD_CLEAN_STOP: stop_job.record_clean_stop,
    Action.PLAN: make_plan.make_plan,
    Action.WRITE: write_target.write,
    Action.ADOPT: write_target.adopt,
    Action.RECORD_WRITTEN: write_target.record_written,
    Action.VERIFY: verify_start.verify_target,
    Action.START: start.start,
    Action.AWAIT_FIRST_BATCH: start.await_first_batch,
}
