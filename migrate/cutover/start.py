"""The command that starts the query: run once, found again by a later run, and waited for."""

from __future__ import annotations

import time
from collections.abc import Callable

from migrate.cutover.night import CutOverStopped, Night
from migrate.cutover.record import now
from migrate.cutover.stop import check_has_not_run_since
from migrate.errors import Refused
from migrate.log import log, timed
from migrate.report.cut_over import StartReport
from migrate.wording import seconds_of

_PAUSE = 0.25


def started(night: Night) -> str | None:
    """That the query was started, and has not failed; None where it is to be started.

    Raises:
        CutOverStopped: it may have been started.
    """
    begun = night.begun()
    if night.location is None and begun:
        return "it has begun already"
    if night.location is not None and night.first_batch() is not None:
        return "it has committed a batch already"
    if night.spec.start is None:
        return "it has begun already" if begun else "the spec names no command: start it now"
    if night.starting.runs():
        return "an earlier run has started it, and the command runs"
    match night.starting.ended():
        case None:
            # Somebody else's, which must not get a second one beside it.
            return "it has begun already" if begun else None
        case 0:
            return "an earlier run has started it, and the command has ended well"
        case "unknown" if begun:
            return "an earlier run has started it, and it has begun"
        case "unknown":
            raise CutOverStopped(_NOBODY_KNOWS)
        case _:
            return None  # it failed: of a batch that it had planned the next makes the same


_NOBODY_KNOWS = (
    "an earlier run has run the command that starts the query, and how that ended is not known "
    "(did the machine go down?): see whether the query runs, start it yourself if it does not, and "
    "run this again once it has begun a batch"
)


def check_begins_no_more(night: Night) -> None:
    """Raises Refused where the command may have handed the query over."""
    code = night.starting.ended()
    if code not in (0, "unknown"):
        return
    how = "has ended well" if code == 0 else "was run, and how it ended is not known"
    raise Refused(
        [
            f"the command that starts the query {how}: the query may begin at any time; stop the "
            f"query, then remove {night.starting.state}, and go back"
        ]
    )


def start(night: Night) -> str:
    """Run the command; it runs on, or ends by itself once it has handed the query over.

    Raises:
        CutOverStopped: it cannot be run; or Flink's job was started again.
    """
    asked, starting = night.spec.start, night.starting
    assert asked is not None
    check_has_not_run_since(night)
    night.record.change(start=StartReport(at=now(), returned=None))
    try:
        number = starting.run(asked, night.file.home)
    except OSError as error:
        raise CutOverStopped(f"start: {error.strerror or error}") from error
    return f"process {number}; what it says is in {starting.log}"


def await_begin(night: Night) -> str:
    """Wait for the first batch that is committed; of a group, for its consumers.

    Raises:
        CutOverStopped: the command failed, or it took too long.
    """
    if night.file.checkpoint_dir is None:
        _await(night, night.begun)
        return "its consumers have joined, or committed"
    _await(night, lambda: night.first_batch() is not None)
    return f"batch {night.first_batch()} is committed"


def _await(night: Night, done: Callable[[], bool]) -> None:
    patience = night.spec.timeouts.first_batch
    deadline = time.monotonic() + seconds_of(patience)
    with timed("waiting for the first batch"):
        while not done():
            _check_command(night)
            if time.monotonic() > deadline:
                raise CutOverStopped(
                    f"nothing was committed in {patience} (timeouts.first-batch); without new "
                    "records a query commits no batch: run this again to wait on",
                    details=night.starting.last_lines(),
                )
            time.sleep(_PAUSE)


def _check_command(night: Night) -> None:
    """Raises CutOverStopped where the command has failed."""
    start = night.record.model.start
    if start is None or start.returned == 0 or night.starting.runs():
        return
    code = night.starting.ended()
    if code == "unknown":
        raise CutOverStopped(_NOBODY_KNOWS)
    night.record.change(start=start.model_copy(update={"returned": code}))
    if code == 0:
        log.info("the command that starts the query has ended well")
        return
    how = f"exit code {code}" if code is not None else "it was not run"
    raise CutOverStopped(
        f"the command that starts the query has ended: {how}", details=night.starting.last_lines()
    )
