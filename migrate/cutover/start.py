"""The command that starts the query: run once, found again by a later run, and waited for.

It runs in a session of its own, so that neither Ctrl-C nor the end of this command ends it. A lock
is handed to it: as long as the command, or anything that it has started, is alive, the lock is
held. So a later run knows whether it still runs, also where this one was killed just after. How
it ended is written by the shell that runs it (``query.state``): a command that has handed the query
over is not run again because nobody was there to see it end.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from migrate.cutover.night import CutOverStopped, Night
from migrate.cutover.record import now
from migrate.cutover.stop import check_has_not_run_since
from migrate.errors import Refused
from migrate.log import log, timed
from migrate.report.cut_over import StartReport
from migrate.wording import seconds_of, visible

_PAUSE = 0.25
_LOG_LINES = 15
_LOG_BYTES = 8192
# $0 is the file of its state. What ends the shell's whole group is the command's to heed: the shell
# stays to tell how that ended.
_TELLING = """
trap : HUP INT TERM
echo began >"$0" || exit
"$@"
code=$?
echo $code >"$0.tmp" && mv "$0.tmp" "$0"
exit $code
"""


def runs(night: Night) -> bool:
    """Whether the command of an earlier start still runs."""
    path = night.record.folder / "query.lock"
    if not path.exists():
        return False
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


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
    if runs(night):
        return "an earlier run has started it, and the command runs"
    match ended(night):
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


def ended(night: Night) -> int | Literal["unknown"] | None:
    """The exit code of the command, once it does not run; None where it was not run."""
    path = _state_file(night)
    told = path.read_text().strip() if path.exists() else None
    if told is None:
        return None
    return int(told) if told.isdigit() else "unknown"


def check_begins_no_more(night: Night) -> None:
    """Raises Refused where the command may have handed the query over."""
    code = ended(night)
    if code not in (0, "unknown"):
        return
    how = "has ended well" if code == 0 else "was run, and how it ended is not known"
    raise Refused(
        [
            f"the command that starts the query {how}: the query may begin at any time; stop the "
            f"query, then remove {_state_file(night)}, and go back"
        ]
    )


def _state_file(night: Night) -> Path:
    return night.record.folder / "query.state"


def start(night: Night) -> str:
    """Run the command; it runs on, or ends by itself once it has handed the query over.

    Raises:
        CutOverStopped: it cannot be run; or Flink's job was started again.
    """
    spec, folder = night.spec, night.record.folder
    assert spec.start is not None
    check_has_not_run_since(night)
    words = ["/bin/sh", "-c", spec.start] if isinstance(spec.start, str) else spec.start
    with (folder / "query.lock").open("a") as lock, (folder / "query.log").open("ab") as out:
        fcntl.flock(lock, fcntl.LOCK_EX)
        night.record.change(start=StartReport(at=now(), returned=None))
        try:
            night.command = subprocess.Popen(
                ["/bin/sh", "-c", _TELLING, str(_state_file(night).absolute()), *words],
                cwd=night.file.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )
        except OSError as error:
            raise CutOverStopped(f"start: {error.strerror or error}") from error
    return f"process {night.command.pid}; what it says is in {folder / 'query.log'}"


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
                    details=_last_lines(night),
                )
            time.sleep(_PAUSE)


def _check_command(night: Night) -> None:
    """Raises CutOverStopped where the command has failed."""
    start = night.record.model.start
    if start is None or start.returned == 0 or runs(night):
        return
    code = ended(night)
    if code == "unknown":
        raise CutOverStopped(_NOBODY_KNOWS)
    night.record.change(start=start.model_copy(update={"returned": code}))
    if code == 0:
        log.info("the command that starts the query has ended well")
        return
    how = f"exit code {code}" if code is not None else "it was not run"
    raise CutOverStopped(
        f"the command that starts the query has ended: {how}", details=_last_lines(night)
    )


def _last_lines(night: Night) -> list[str]:
    """The end of what the command said; on the terminal alone, as it may hold anything."""
    path = night.record.folder / "query.log"
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _LOG_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return [f"{path}:", *("  " + visible(line) for line in lines[-_LOG_LINES:])]
