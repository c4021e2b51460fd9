"""``cut_over``: a running Flink job goes on elsewhere, by a spec, step by step."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from migrate.cutover.act import ACTIONS
from migrate.cutover.beginning import restart_advice
from migrate.cutover.context import CutOverContext, CutOverStopped
from migrate.cutover.decision import Do, Done, Fail, Halt
from migrate.cutover.facts import Facts, Need, Unavailable
from migrate.cutover.going_back import back_lines, decide_back, go_back, keep_end_of_stop
from migrate.cutover.observe import observe
from migrate.cutover.record import Record, locked
from migrate.cutover.spec import read_spec
from migrate.cutover.start import watch_group
from migrate.cutover.steps import NAMES, NOTHING, STEPS, STOPPED, WRITTEN, Step
from migrate.model.errors import MigrateError, NoSuchName, Refused, UsageError
from migrate.model.log import log
from migrate.report.cut_over import CutOverRecord
from migrate.storage.files import local_path


@dataclass(frozen=True, slots=True)
class StepResult:
    """A step of a run: ``done``, ``ok`` (looked at in a dry run) or ``to do``."""

    name: str
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class CutOver:
    """What a run came to.

    Attributes:
        steps: each step, in order.
        record: what is kept of it.
        record_path: the JSON; None of a dry run.
        page_path: the page; None of a dry run.
    """

    steps: tuple[StepResult, ...]
    record: CutOverRecord
    record_path: Path | None = None
    page_path: Path | None = None


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
    """Move a running Flink job to its target, by a spec.

    Without ``execute`` a dry run: what stands in the way, and how far an earlier run came. With it
    every step is done that is not done yet; after a crash the same call goes on. One run of a spec
    at a time.

    Args:
        spec: the YAML file.
        execute: do it.
        until: the last step to do, by its name.
        back: take the target away again instead, as long as nothing has begun to read from it.
        adopt: take over a target that holds the plan, or a plan of another record, and that this
            record has not written.
        nothing_started: with ``back``: nothing has started from the target, although the facts do
            not show it.
        confirm: called once before anything is changed, with the question; it may raise.

    Raises:
        Refused: something stands in the way, or another run is at work; nothing was changed.
        CutOverStopped: a step failed once the job was being stopped; what was done stays done.
        SpecError: the spec cannot be read, or has a key or value that is not known.
        UsageError: arguments that do not go together.
        DecodeError, BrokerError, FlinkRestError: something cannot be read, or did not answer.
    """
    file = read_spec(local_path(os.fspath(spec)))
    if until is not None and until not in NAMES:
        names = ", ".join(NAMES)
        raise NoSuchName(f"--until {until}: no such step", until, NAMES, f"there are: {names}")
    if back and (until is not None or adopt):
        raise UsageError("--back goes neither with --until nor with --adopt")
    if nothing_started and not back:
        raise UsageError("--nothing-started goes with --back")

    def context(keep: bool) -> CutOverContext:
        record = Record(file, keep=keep, anew=not back)
        return CutOverContext(file, record, adopt=adopt, nothing_started=nothing_started)

    with _each_message_once():
        if not execute:
            return _dry_back(context(False)) if back else _dry_run(context(False), until)
        with locked(file.folder):
            return _back(context(True), confirm) if back else _run(context(True), until, confirm)


@contextmanager
def _each_message_once() -> Iterator[None]:
    """Log each message once: the same plan is made for several steps, with the same warnings."""
    logged: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.levelno < logging.INFO or text not in logged:
            logged.add(text)
            return True
        return False

    log.addFilter(is_new)
    try:
        yield
    finally:
        log.removeFilter(is_new)


def _decide(context: CutOverContext, step: Step) -> tuple[Facts, Done | Do]:
    """Return the facts that a step needs, and what is to be done.

    Raises:
        Refused, CutOverStopped: the cut-over cannot go on.
        Exception: the one that kept a needed fact from being read.
    """
    facts = observe(context, *step.needs)
    watch_group(context, facts)
    if isinstance(facts.started_again, Unavailable):
        log.warning(f"whether the job was started again is not known: {facts.started_again.error}")
    decision = step.decide(facts)
    if isinstance(decision, Halt | Fail):
        raise_halt(decision)
    return facts, decision


def raise_halt(decision: Halt | Fail) -> NoReturn:
    """Raise what a decision says.

    Raises:
        Refused, CutOverStopped: the cut-over cannot go on.
        Exception: the one that kept a fact from being read.
    """
    if isinstance(decision, Fail):
        raise decision.error
    if decision.is_refusal:
        raise Refused(decision.reasons)
    raise CutOverStopped(*decision.reasons)


def _title(context: CutOverContext, step: Step) -> str:
    return step.title if context.file.checkpoint_dir is not None else step.group_title


def _left_before(context: CutOverContext, step: Step) -> str:
    """Return what is so if a run stops before the action of a step."""
    if step.before != NOTHING or context.savepoint is None:
        return step.before
    return WRITTEN if context.record.model.written is not None else STOPPED


def _steps(until: str | None) -> Iterator[Step]:
    for step in STEPS:
        yield step
        if step.name == until:
            return


# -- dry runs --------------------------------------------------------------------------------------


def _dry_run(context: CutOverContext, until: str | None) -> CutOver:
    results: list[StepResult] = []
    steps = list(_steps(until))
    for step in steps:
        facts, decision = _decide(context, step)
        if isinstance(decision, Done):
            results.append(StepResult(step.name, "done", decision.reason))
        elif decision.action.changes:
            break
        else:
            text = ACTIONS[decision.action](context, facts)
            results.append(StepResult(step.name, "ok", text))
    rest = (StepResult(step.name, "to do", _title(context, step)) for step in steps[len(results) :])
    return CutOver((*results, *rest), context.record.model)


_BACK_NEEDS = (Need.JOB, Need.TARGET, Need.STARTED_AGAIN)


def _dry_back(context: CutOverContext) -> CutOver:
    _, lines, restart = _plan_back(context)
    results = [StepResult("back", "to do", line) for line in (*lines, restart)]
    return CutOver(tuple(results), context.record.model)


def _plan_back(context: CutOverContext) -> tuple[Facts, list[str], str]:
    """Return the facts, what going back does, and how Flink's job goes on then.

    Raises:
        Refused, CutOverStopped: it cannot be gone back.
    """
    facts = observe(context, *_BACK_NEEDS)
    if decision := decide_back(facts):
        raise_halt(decision)
    keep_end_of_stop(context, facts)
    if context.savepoint is None:
        raise Refused(["the job was not stopped, so there is nothing to go back from"])
    facts = observe(context, *_BACK_NEEDS)
    return facts, list(back_lines(context, facts)), restart_advice(facts)


# -- runs ------------------------------------------------------------------------------------------


def _run(
    context: CutOverContext, until: str | None, confirm: Callable[[str], None] | None
) -> CutOver:
    record = context.record
    with _recorded(context, f"until {until}" if until is not None else "execute") as progress:
        results = []
        for step in _steps(until):
            progress.name, progress.left = step.name, _left_before(context, step)
            with _failure_recorded(record, step):
                facts, decision = _decide(context, step)
            title = _title(context, step)
            if isinstance(decision, Do) and decision.action.changes and confirm is not None:
                # "No" changes nothing.
                changed, progress.changed = progress.changed, False
                confirm(f"go on with {step.name} ({title}), up to {until or NAMES[-1]}?")
                progress.changed, confirm = changed, None
                with _failure_recorded(record, step):  # the world may have changed meanwhile
                    facts, decision = _decide(context, step)
            if isinstance(decision, Done):
                log.info(f"{step.name}: {decision.reason}")
                record.found_done(step.name, decision.reason)
                results.append(StepResult(step.name, "done", decision.reason))
                continue
            log.info(f"{step.name}: {title}")
            progress.changed = progress.changed or decision.action.changes
            progress.left = step.left
            began = time.monotonic()
            with _failure_recorded(record, step):
                text = ACTIONS[decision.action](context, facts)
            record.step(step.name, "done", text, time.monotonic() - began)
            log.info(f"{step.name} done: {text}")
            results.append(StepResult(step.name, "done", text))
        if until in (None, NAMES[-1]):
            record.change(state="done")
    return CutOver(tuple(results), record.model, record.path, record.page)


@contextmanager
def _failure_recorded(record: Record, step: Step) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    except Exception as error:
        record.step(step.name, "failed", str(error), time.monotonic() - began)
        raise


def _back(context: CutOverContext, confirm: Callable[[str], None] | None) -> CutOver:
    with _recorded(context, "back"):
        facts, lines, restart = _plan_back(context)
        if confirm is not None:
            confirm(f"go back: {'; '.join(lines) or 'forget this record'}?")
            facts, lines, restart = _plan_back(context)  # the world may have changed meanwhile
        for line in lines:
            log.info(line)
        go_back(context, facts)
    done = (StepResult("back", "done", line) for line in lines)
    results = (*done, StepResult("back", "to do", restart))
    return CutOver(results, context.record.model, context.record.path, context.record.page)


@dataclass(slots=True)
class _Progress:
    """Where a run is.

    Attributes:
        name: the step.
        left: what is so if the run stops there.
        changed: whether the step, or one before, has begun to change something.
    """

    name: str
    left: str
    changed: bool


_BACK_LEFT = "the target is as it was, or taken away in part"


@contextmanager
def _recorded(context: CutOverContext, command: str) -> Iterator[_Progress]:
    """Keep one run in the record; say what is left where it does not come to its end.

    Raises:
        CutOverStopped: in the place of Refused, where something was changed already.
    """
    record, flink = context.record, context.record.model.flink
    name, left = ("back", _BACK_LEFT) if command == "back" else (STEPS[0].name, STEPS[0].before)
    progress = _Progress(name, left, flink.job_id is not None or flink.savepoint is not None)
    record.begin_run(command)
    try:
        yield progress
    except Refused as refused:
        record.end_run(f"refused at {progress.name}")
        if not progress.changed or command == "back":
            raise
        _say_what_is_left(progress, context, "mend what is refused, then the same command goes on")
        raise CutOverStopped(*refused.reasons) from refused
    except (MigrateError, OSError) as error:
        record.end_run(f"failed at {progress.name}: {error}")
        _say_what_is_left(progress, context)
        raise
    except BaseException as error:
        record.end_run(f"interrupted at {progress.name} ({type(error).__name__})")
        _say_what_is_left(progress, context)
        raise
    record.end_run("done")


def _say_what_is_left(
    progress: _Progress, context: CutOverContext, way_on: str = "the same command goes on from here"
) -> None:
    log.warning(f"stopped at {progress.name}: {progress.left}")
    log.info(way_on)
    if advice := restart_advice(observe(context, Need.TARGET, Need.STARTED_AGAIN)):
        log.info(f"or {advice}" if advice.startswith("start ") else advice)
