"""``cut_over``: a running job of Flink goes on elsewhere, by a spec, step by step."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrate.cutover.going_back import go_back, way_to_restart, what_goes_back
from migrate.cutover.night import CutOverStopped, Night
from migrate.cutover.record import Record, locked
from migrate.cutover.spec import SpecFile, read_spec
from migrate.cutover.steps import NAMES, STEPS, Step
from migrate.errors import MigrateError, NoSuchName, Refused, UsageError
from migrate.log import log
from migrate.report.cut_over import CutOverRecord
from migrate.storage.files import local_path


@dataclass(frozen=True, slots=True)
class StepTold:
    """A step as a run found it, or did it."""

    name: str
    state: str
    told: str


@dataclass(frozen=True, slots=True)
class CutOver:
    """What a run came to.

    Attributes:
        steps: each step, in order: ``done``, ``ok`` (looked at), ``to do``.
        record: what is kept of it.
        record_path: the JSON; None of a dry run.
        page_path: the page; None of a dry run.
    """

    steps: tuple[StepTold, ...]
    record: CutOverRecord
    record_path: Path | None = None
    page_path: Path | None = None


def cut_over(
    spec: str | os.PathLike[str],
    *,
    execute: bool = False,
    until: str | None = None,
    back: bool = False,
    confirm: Callable[[str], None] | None = None,
) -> CutOver:
    """Move a running job of Flink to its target, by a spec.

    Without ``execute`` a dry run: what stands in the way, and how far an earlier run came. With it
    every step is done that is not done yet; after a crash the same call goes on. One run of a spec
    at a time.

    Args:
        spec: the YAML file.
        execute: do it.
        until: the last step to do, by its name.
        back: instead, take the target away again, as long as it has written nothing.
        confirm: called once before anything is changed, with the question; it may raise.

    Raises:
        Refused: something stands in the way, or another run is at work; nothing was changed.
        CutOverStopped: a step failed once the job was being stopped; what was done stays done.
        SpecError: the spec cannot be read, or says what nobody knows.
        UsageError: arguments that do not go together.
        DecodeError, BrokerError, FlinkRestError: something cannot be read, or did not answer.
    """
    with _told_once():
        return _cut_over(spec, execute, until, back, confirm)


def _cut_over(
    spec: str | os.PathLike[str],
    execute: bool,
    until: str | None,
    back: bool,
    confirm: Callable[[str], None] | None,
) -> CutOver:
    file = read_spec(local_path(os.fspath(spec)))
    if until is not None and until not in NAMES:
        names = ", ".join(NAMES)
        raise NoSuchName(f"--until {until}: no such step", until, NAMES, f"there are: {names}")
    if back and until is not None:
        raise UsageError("--back and --until: one of them")
    if not execute:
        night = Night(file, Record(file, keep=False, anew=not back))
        return _dry_back(night) if back else _dry_run(night, until)
    with locked(file.folder):
        night = Night(file, Record(file, keep=True, anew=not back))
        return _back(night, confirm) if back else _carry_out(night, file, until, confirm)


@contextmanager
def _told_once() -> Iterator[None]:
    """The same plan is made for several steps: what it warns of is told once."""
    told: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.levelno < logging.INFO or text not in told:
            told.add(text)
            return True
        return False

    log.addFilter(is_new)
    try:
        yield
    finally:
        log.removeFilter(is_new)


# -- dry ----------------------------------------------------------------------------------------


def _dry_run(night: Night, until: str | None) -> CutOver:
    told: list[StepTold] = []
    reached = True
    for step in _steps(until):
        if not reached:
            told.append(StepTold(step.name, "to do", step.title))
            continue
        done = step.done(night)
        if done is not None:
            told.append(StepTold(step.name, "done", done))
        elif step.changes:
            told.append(StepTold(step.name, "to do", step.title))
            reached = False
        else:
            told.append(StepTold(step.name, "ok", step.do(night)))
    return CutOver(tuple(told), night.record.model)


def _dry_back(night: Night) -> CutOver:
    lines = what_goes_back(night)
    told = [StepTold("back", "to do", line) for line in lines]
    return CutOver((*told, StepTold("back", "to do", way_to_restart(night))), night.record.model)


# -- for good -----------------------------------------------------------------------------------


def _carry_out(
    night: Night, file: SpecFile, until: str | None, confirm: Callable[[str], None] | None
) -> CutOver:
    record = night.record
    with _run(night, f"until {until}" if until is not None else "execute") as at:
        told = []
        for step in _steps(until):
            at.name = step.name
            if at.changed or not step.changes:
                at.left = step.left
            done = step.done(night)
            if done is not None:
                log.info(f"{step.name}: {done}")
                record.found_done(step.name, done)
                told.append(StepTold(step.name, "done", done))
                continue
            if step.changes and confirm is not None:
                # "No" changes nothing.
                changed, at.changed = at.changed, False
                confirm(f"go on with {step.name} ({step.title}), up to {until or NAMES[-1]}?")
                at.changed, confirm = changed, None
            log.info(f"{step.name}: {step.title}")
            at.changed, at.left = at.changed or step.changes, step.left
            began = time.monotonic()
            try:
                what = step.do(night)
            except Exception as error:
                record.step(step.name, "failed", str(error), time.monotonic() - began)
                raise
            record.step(step.name, "done", what, time.monotonic() - began)
            log.info(f"{step.name} done: {what}")
            told.append(StepTold(step.name, "done", what))
        if until in (None, NAMES[-1]):
            record.change(state="done")
    return CutOver(tuple(told), record.model, record.path, record.page)


def _back(night: Night, confirm: Callable[[str], None] | None) -> CutOver:
    with _run(night, "back"):
        lines = what_goes_back(night)
        if confirm is not None:
            confirm(f"go back: {'; '.join(lines) or 'forget this record'}?")
        for line in lines:
            log.info(line)
        go_back(night)
    told = (*(StepTold("back", "done", line) for line in lines),)
    restart = StepTold("back", "to do", way_to_restart(night))
    return CutOver((*told, restart), night.record.model, night.record.path, night.record.page)


@dataclass(slots=True)
class _At:
    """Where a run is: at which step, what is so if it stops there, and whether it, or one before,
    has begun to change something."""

    name: str
    left: str
    changed: bool


_BACK = "the target is as it was, or taken away in part"


@contextmanager
def _run(night: Night, asked: str) -> Iterator[_At]:
    """One run in the record; what is left, where it does not come to its end.

    Raises:
        CutOverStopped: in the place of Refused, where something was changed already.
    """
    record = night.record
    known = record.model.flink
    name, left = ("back", _BACK) if asked == "back" else (STEPS[0].name, STEPS[0].left)
    at = _At(name, left, changed=known.job_id is not None or known.savepoint is not None)
    record.begin_run(asked)
    try:
        yield at
    except Refused as refused:
        record.end_run(f"refused at {at.name}")
        if not at.changed or asked == "back":
            raise
        _tell_what_is_left(at, night)
        raise CutOverStopped(*refused.reasons) from refused
    except (MigrateError, OSError) as error:
        record.end_run(f"failed at {at.name}: {error}")
        _tell_what_is_left(at, night)
        raise
    except BaseException as error:
        record.end_run(f"interrupted at {at.name} ({type(error).__name__})")
        _tell_what_is_left(at, night)
        raise
    record.end_run("done")


def _tell_what_is_left(at: _At, night: Night) -> None:
    log.warning(f"stopped at {at.name}: {at.left}")
    log.info("the same command goes on from here; --back goes back as long as nothing is written")
    if night.savepoint() is None:
        return
    if _may_have_begun(night):
        log.info("Flink's job must not go on from its savepoint, unless nothing has been written")
    else:
        log.info(f"or {way_to_restart(night)}")


def _may_have_begun(night: Night) -> bool:
    """Whether the target may have begun to write: then Flink's job would repeat it."""
    if night.record.model.moved_with is None:
        return False
    try:
        return night.begun()
    except (MigrateError, OSError):
        return True


def _steps(until: str | None) -> Iterator[Step]:
    for step in STEPS:
        yield step
        if step.name == until:
            return
