"""Run the steps of a cut-over, or roll it back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from decoder import DecodeError
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.check_commands import rehearse
from migrate.extensions.cutover.context import (
    BEING_ROLLED_BACK,
    ROLLED_BACK,
    STOP_REQUESTED,
    UNCHANGED,
    CutOverContext,
)
from migrate.extensions.cutover.decide import (
    CHANGES_OR_WAITS,
    Action,
    Decision,
    Done,
    start_yourself,
)
from migrate.extensions.cutover.downtime import LAST_STEP, DowntimePrediction, downtime
from migrate.extensions.cutover.downtime_inputs import predict_downtime
from migrate.extensions.cutover.facts import Facts, JobToStop, Unavailable
from migrate.extensions.cutover.observe import observe
from migrate.extensions.cutover.preflight import check_location_writable
from migrate.extensions.cutover.read_spec import read_spec
from migrate.extensions.cutover.record import Record, check_writable, locked, now
from migrate.extensions.cutover.report import CutOverRecord
from migrate.extensions.cutover.roll_back import (
    ADVICE_NEEDS,
    plan_roll_back,
    record_roll_back,
    restart_advice,
)
from migrate.extensions.cutover.spec_keys import CHOSEN, SPEC_KEYS, each_message_once
from migrate.extensions.cutover.start import warn_of_failed_command, watch_group
from migrate.extensions.cutover.steps import ACTIONS, ALL_DONE, NAMES, STEPS, Step
from migrate.model.errors import (
    CutOverStopped,
    MigrateError,
    NoSuchName,
    Refused,
    UsageError,
    add_notes,
)
from migrate.model.log import log
from migrate.model.option_names import option, spec_notation
from migrate.model.warning import warn
from migrate.planning import Plan
from migrate.storage.new_file import check_separate
from migrate.storage.uris import local_path

_APPLY, _BACK = "apply", "back"
# The codes of the reasons that a rerun would find again.
_RERUN_CANNOT_HELP = frozenset(
    template.code
    for template in (
        catalog.RESTARTED_JOB,
        catalog.RESTARTED_JOB_AND_READERS,
        catalog.TARGET_START_DIFFERS,
        catalog.TARGET_START_UNKNOWN,
    )
)
# The advice if stopping the job was interrupted. The reasons in ``CutOverStopped`` contain advice.
_WHILE_STOPPING = (
    "do not start the Flink job, because Flink may still stop it; a rerun records its savepoint"
)


@dataclass(frozen=True, slots=True)
class StepResult:
    """A step of a run; ``state`` is ``done``, ``ok`` (checked in a dry run), or ``to do``."""

    name: str
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class CutOver:
    """The result of a run.

    Attributes:
        record_path: the record's JSON file, or None for a dry run.
        page_path: the record's HTML page, or None for a dry run.
        prediction: the predicted downtime, if this is a dry run before the stop; None otherwise.
        plan: the plan that a dry run made, or None.
        plan_path: the file of the saved plan, or None for a dry run.
        next_step: the name of the first step after ``until``, or None if all steps are done.
    """

    steps: tuple[StepResult, ...]
    record: CutOverRecord
    record_path: Path | None = None
    page_path: Path | None = None
    prediction: DowntimePrediction | None = None
    plan: Plan | None = None
    plan_path: Path | None = None
    next_step: str | None = None


@spec_notation(SPEC_KEYS, CHOSEN)
def cut_over(
    spec: str | os.PathLike[str],
    *,
    execute: bool = False,
    until: str | None = None,
    back: bool = False,
    adopt: bool = False,
    nothing_started: bool = False,
    confirm: Callable[[str], None] | None = None,
) -> CutOver:
    """Move a running Flink job to its target, as described by a spec.

    Without ``execute``, check for obstacles and show the progress of earlier runs (a dry run). If
    the ``check`` step is not done yet, the dry run also runs the ``rehearse`` command from the
    spec. With ``execute``, run every step that is not done yet, under a lock on the record's
    folder. After a crash, repeat the call to resume.

    Args:
        spec: the YAML file.
        execute: True to make changes.
        until: the name of the last step to run.
        back: True to undo the write to the target. The run refuses this if readers have started, or
            might have started, from the target (see ``nothing_started``).
        adopt: True to adopt a target that was written by another cut-over or a person. A checkpoint
            location must contain this plan. A group may contain another move's offsets instead.
            Also, True to move a savepoint that another cut-over has moved or will move.
        nothing_started: with ``back``, the user's statement that no readers have started from the
            target. It is required if the run cannot rule out that readers have started.
        confirm: a function that is called once with a question, before the first change. If it
            raises an error, the run stops.

    Raises:
        Refused: an obstacle was found, or another run is active. This run has changed nothing.
        CutOverStopped: the cut-over cannot continue, or a step was refused after a change.
            Completed steps are not undone.
        InputError: the spec cannot be read, or it contains an unknown key or value.
        UsageError: the arguments contradict each other, or the record's folder is not writable.
        DecodeError, BrokerError, FlinkRestError, OSError: a file cannot be read or written, or a
            service did not answer.
    """
    file = read_spec(local_path(os.fspath(spec)))
    check_separate({"checkpoint_dir": file.spec.target.checkpoint_dir, "record": file.folder})
    if until is not None and until not in NAMES:
        names = ", ".join(NAMES)
        raise NoSuchName(
            f"{option('until', until)}: no such step", until, NAMES, f"the steps are: {names}"
        )
    if back and (until is not None or adopt):
        raise UsageError(
            f"{option('back')} cannot be combined with {option('until')} or {option('adopt')}"
        )
    if nothing_started and not back:
        raise UsageError(f"{option('nothing_started')} requires {option('back')}")

    with each_message_once(), locked(file.folder) if execute else nullcontext():
        record = Record(file, write=execute, replace_rolled_back=not back)
        context = CutOverContext(
            file, record, adopt=adopt, until=until, nothing_started=nothing_started
        )
        if not execute:
            if back:
                return CutOver(tuple(_dry_roll_back(context)), record.model)
            results, prediction = _dry_run(context)
            plan = context.previewed_plan
            return CutOver(tuple(results), record.model, prediction=prediction, plan=plan)
        results = _roll_back(context, confirm) if back else _run(context, confirm)
        return CutOver(
            tuple(results),
            record.model,
            record.path,
            record.page,
            plan_path=record.plan_path,
            next_step=None if until in (None, NAMES[-1]) else NAMES[NAMES.index(until) + 1],
        )


def _decide(context: CutOverContext, step: Step) -> tuple[Facts, Decision]:
    """Return the facts and the decision for a step; for errors, see ``Step.decide``."""
    facts = observe(context, *step.needs)
    watch_group(context, facts)
    if "started again" in step.needs:
        _warn_if_restart_unseen(facts)
    return facts, step.decide(facts)


def _warn_if_restart_unseen(facts: Facts) -> None:
    """Warn if this run might fail to detect a restarted job."""
    if isinstance(facts.started_again, Unavailable):
        warn(catalog.RESTART_UNDETERMINED(error=str(facts.started_again.error)))
    elif facts.spec.flink.rest is None:
        warn(catalog.RESTART_UNSEEN())


def _steps(until: str | None) -> Sequence[Step]:
    return STEPS[: NAMES.index(until) + 1] if until is not None else STEPS


# -- dry runs --------------------------------------------------------------------------------------


def _dry_run(context: CutOverContext) -> tuple[Sequence[StepResult], DowntimePrediction | None]:
    results, prediction = list[StepResult](), None
    steps = _steps(context.until)
    for step in steps:
        facts, decision = _decide(context, step)
        if isinstance(decision, Done):
            results.append(StepResult(step.name, "done", decision.reason))
        elif decision in CHANGES_OR_WAITS:
            if decision is Action.STOP and isinstance(facts.job, JobToStop):
                prediction = predict_downtime(context, facts.job)
            break
        else:
            text = ACTIONS[decision](context, facts)
            results.append(StepResult(step.name, "ok", text))
    rest = [
        StepResult(step.name, "to do", _text_to_do(context, step)) for step in steps[len(results) :]
    ]
    if rest:
        check_writable(context.record.folder)
    if any(result.name == _APPLY for result in rest):  # ``check`` may have been done earlier
        check_location_writable(context)
    checked = any(result.name == "check" and result.state == "ok" for result in results)
    if context.spec.rehearse is not None and checked:
        results.append(StepResult("rehearse", "ok", rehearse(context)))
    return [*results, *rest], prediction


def _text_to_do(context: CutOverContext, step: Step) -> str:
    if step.name == "start" and context.spec.start is None:
        return start_yourself(context.spec)
    return step.title_of(context.spec.target.is_group)


def _dry_roll_back(context: CutOverContext) -> Sequence[StepResult]:
    undo, advice = plan_roll_back(context)
    check_writable(context.record.folder)
    lines = [undo.line, advice.text] if undo is not None else [advice.text]
    return [StepResult(_BACK, "to do", line) for line in lines]


# -- runs ------------------------------------------------------------------------------------------


class _Progress:
    """The progress of a run.

    Args:
        step: the name of the current step.
        state: a function that describes the state of the job and the target during a step.
        result: the result of a complete run, as a sentence.
        changed: True if this run or an earlier run has started a change; False for a rollback.

    Attributes:
        is_asking: True while the run waits for the user's answer.
        is_done: True once the step is done.
    """

    def __init__(self, step: str, state: Callable[[], str], result: str, *, changed: bool) -> None:
        self.result, self.changed, self.is_asking = result, changed, False
        self.begin(step, state)

    def begin(self, step: str, state: Callable[[], str]) -> None:
        """Start a step, or restart the step's clock after the user's answer."""
        self.step, self.state, self._began = step, state, time.monotonic()
        self.is_done = False

    def end(self, state: Callable[[], str]) -> None:
        """End a step; ``state`` describes the state after the step."""
        self.is_done, self.state = True, state

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began


def _run(context: CutOverContext, confirm: Callable[[str], None] | None) -> Sequence[StepResult]:
    record, until, results = context.record, context.until, list[StepResult]()
    flink, steps = record.model.flink, _steps(until)
    # If the spec has a savepoint, this cut-over does not stop the job.
    stopped = flink.savepoint is not None and not context.spec.stopped_by_others
    changed = flink.job_id is not None or stopped or record.model.written is not None
    result = "the cut-over is complete"
    if until not in (None, NAMES[-1]):
        result = f"every step up to {until} is done"
    state = partial(_state, context, steps[0])
    progress = _Progress(steps[0].name, state, result, changed=changed)
    command = f"until {until}" if until is not None else "execute"
    with _recorded_run(context, command, progress):
        for number, step in enumerate(steps, 1):
            title = step.title_of(context.spec.target.is_group)
            progress.begin(step.name, partial(_state, context, step))
            facts, decision = _decide(context, step)
            if confirm is not None and decision in CHANGES_OR_WAITS:
                progress.is_asking, asked_at = True, now()
                confirm(f"continue with {step.name} ({title}), up to {until or NAMES[-1]}?")
                confirm, progress.is_asking = None, False
                record.add_question(asked_at)
                progress.begin(step.name, progress.state)
                facts, decision = _decide(context, step)  # the facts may have changed
            after = partial(_state, context, STEPS[number] if number < len(STEPS) else None)
            if isinstance(decision, Done):
                text = decision.reason
                log.info(f"{step.name}: {text}")
                progress.end(after)
                record.add_done_step(step.name, text)
            else:
                log.info(f"{step.name}: {title}")
                progress.changed = progress.changed or decision in CHANGES_OR_WAITS
                text = ACTIONS[decision](context, facts)
                progress.end(after)
                # A step's time includes the time to decide on it, including any wait for Flink.
                record.add_step(step.name, "done", text, progress.seconds)
                log.info(f"{step.name} done: {text}")
            results.append(StepResult(step.name, "done", text))
            if step.name == LAST_STEP and record.model.downtime is None:
                record.change(downtime=downtime(record.model))
        if until in (None, NAMES[-1]):
            warn_of_failed_command(context)
            record.change(state="done")
    return results


def _state(context: CutOverContext, step: Step | None) -> str:
    """Describe the state of the job and the target during a step.

    If ``step`` is None, describe the state after the last step.
    """
    return (step.state or context.state) if step is not None else ALL_DONE


def _roll_back(
    context: CutOverContext, confirm: Callable[[str], None] | None
) -> Sequence[StepResult]:
    context.target_state = UNCHANGED
    result = "the rollback is complete"
    progress = _Progress(_BACK, lambda: context.target_state, result, changed=False)
    with _recorded_run(context, _BACK, progress):
        undo, advice = plan_roll_back(context)
        if confirm is not None:
            confirm(f"roll back: {undo.line if undo is not None else 'discard this record'}?")
            undo, advice = plan_roll_back(context)  # the facts may have changed
        results = [StepResult(_BACK, "to do", advice.text)]
        if undo is not None:
            log.info(undo.line)
            results.insert(0, StepResult(_BACK, "done", undo.line))
            context.target_state = BEING_ROLLED_BACK
            undo.call()
            context.target_state = ROLLED_BACK
        record_roll_back(context)
    return results


@contextmanager
def _recorded_run(context: CutOverContext, command: str, progress: _Progress) -> Iterator[None]:
    """Record one run; if the run fails, log the state of the job and the target.

    The notes attached to the error say how to continue, and whether the Flink job may be restarted.
    If the run was refused before any change, or if the user answered "no", there is no log and
    there are no notes.

    Raises:
        CutOverStopped: a step was refused after a change had been made.
    """
    record = context.record
    record.begin_run(command)
    try:
        yield
    except BaseException as error:
        name, when = progress.step, "after" if progress.is_done else "at"
        next_step = f"rerun the command to resume{'' if progress.is_done else ' from this step'}"
        if isinstance(error, Refused):
            end = f"refused {when} {name}"
            next_step = "fix the cause of the refusal, and rerun the command to resume"
        elif isinstance(error, MigrateError | DecodeError | OSError):
            end = f"failed {when} {name}: {error}"
        else:
            end = f"interrupted {when} {name} ({type(error).__name__})"
        unfinished = not (progress.is_done or progress.is_asking or name == _BACK)
        if isinstance(error, Exception) and unfinished:
            with suppress(OSError):  # ``end_run`` tries again to write the same file
                record.add_step(name, "failed", str(error), progress.seconds)
        is_recorded = _record_end(record, error, end)
        # If the user answers "no", raise ``Refused`` even if an earlier run has changed something.
        if isinstance(error, Refused) and (progress.is_asking or not progress.changed):
            if is_recorded:
                error.written = f"the record {record.folder}"
            raise
        warn(catalog.RUN_STOPPED(when=when, step=name, state=progress.state()))
        codes = error.codes if isinstance(error, MigrateError) else ()
        notes = [] if _RERUN_CANNOT_HELP.intersection(codes) else [next_step]
        advice = restart_advice(observe(context, *ADVICE_NEEDS))
        if advice.text:
            notes.append(f"or {advice.text}" if advice.may_start and notes else advice.text)
        elif context.stop_state == STOP_REQUESTED and not isinstance(error, CutOverStopped):
            notes.append(_WHILE_STOPPING)
        stopped = CutOverStopped(*error.reasons) if isinstance(error, Refused) else error
        if isinstance(error, Exception):
            add_notes(stopped, *notes)
        else:  # no message follows
            for note in notes:
                log.info(note)
        if stopped is error:
            raise
        raise stopped from error
    try:
        record.end_run("done")
    except OSError as error:
        add_notes(error, f"{progress.result}; rerun the command to write this file")
        raise


def _record_end(record: Record, error: BaseException, end: str) -> bool:
    """Record how a failed run ended, and return whether it could be recorded.

    If the end cannot be recorded, for example on a full disk, add a note to ``error``. The problem
    is not raised, because it would hide the state of the job and the target.
    """
    try:
        record.end_run(end, error.codes if isinstance(error, MigrateError) else ())
    except OSError as problem:
        reason = problem.strerror or str(problem)
        if getattr(error, "filename", None) != problem.filename:  # not yet in ``error``
            add_notes(error, f"{problem.filename or record.path} was not written: {reason}")
        return False
    return True
