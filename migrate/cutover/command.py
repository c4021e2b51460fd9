"""A command of the user's: run once, found again by a later run.

It runs in a session of its own, so that neither Ctrl-C nor the end of this program ends it. A lock
is handed to it: as long as the command, or anything that it has started, is alive, the lock is
held. So a later run knows whether it still runs, also where this one was killed just after. How
it ended is written by the shell that runs it: a command that has done its work is not run again
because nobody was there to see it end.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from migrate.wording import visible

_LOG_LINES = 15
_LOG_BYTES = 8192
_CODE_DIGITS = 3  # exit codes end with 255
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


class Command:
    """A command, and what it leaves in the record's folder.

    Attributes:
        log: what it said.
        state: that it began, then its exit code.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._lock = folder / f"{name}.lock"
        self.log, self.state = folder / f"{name}.log", folder / f"{name}.state"
        # Where this run has started it.
        self._process: subprocess.Popen[bytes] | None = None

    def runs(self) -> bool:
        """Whether it runs, whoever started it."""
        if not self._lock.exists():
            return False
        with self._lock.open("a") as lock:
            try:
                # Shared: two that look at once are not taken for the command.
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def ended(self) -> int | Literal["unknown"] | None:
        """Its exit code, once it does not run; None where it was not run."""
        if not self.state.exists():
            return None
        code = self.state.read_bytes().strip()
        return int(code) if code.isdigit() and len(code) <= _CODE_DIGITS else "unknown"

    def run(
        self, asked: str | Sequence[str], home: Path, environment: Mapping[str, str] | None = None
    ) -> int:
        """Run it, a line of the shell or words, in a folder; the number of its process.

        Raises:
            OSError: it cannot be run.
        """
        words = ["/bin/sh", "-c", asked] if isinstance(asked, str) else asked
        with self._lock.open("a") as lock, self.log.open("ab") as out:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _TELLING, str(self.state.absolute()), *words],
                cwd=home,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )
        return self._process.pid

    def last_lines(self) -> list[str]:
        """The end of what it said; for the terminal alone, as it may hold anything."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return [f"{self.log}:", *("  " + visible(line) for line in lines[-_LOG_LINES:])]
