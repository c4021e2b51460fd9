"""A command of the user's: run once, and found again by a later run.

It runs in a session of its own, so that neither Ctrl-C nor the end of this program ends it. It
inherits a lock that is held as long as the command, or a process that it has started, is alive. So
a later run knows whether it still runs. The shell around it writes its exit code, so that a command
that ended unseen is not run again.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from migrate.model.wording import printable

_LOG_LINES = 15
_LOG_BYTES = 8192
_CODE_DIGITS = 3  # exit codes end with 255
# $0 is the state file. The shell survives a signal to its process group, which ends the command,
# and writes the exit code.
_RUN_AND_WRITE_CODE = """
trap : HUP INT TERM
echo began >"$0" || exit
"$@"
code=$?
echo $code >"$0.tmp" && mv "$0.tmp" "$0"
exit $code
"""


class Command:
    """A command, and its files in the record's folder.

    Attributes:
        log: the file of its output.
        state: the file with "began", then with its exit code.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._lock = folder / f"{name}.lock"
        self.log, self.state = folder / f"{name}.log", folder / f"{name}.state"
        # Where this run has started it.
        self._process: subprocess.Popen[bytes] | None = None

    def is_running(self) -> bool:
        """Return whether it runs, whichever run started it."""
        if not self._lock.exists():
            return False
        with self._lock.open("a") as lock:
            try:
                # Shared: two that look at once are not taken for the command.
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def exit_code(self) -> int | Literal["unknown"] | None:
        """Return its exit code, ``unknown`` where it is missing, or None where it was never run."""
        if not self.state.exists():
            return None
        code = self.state.read_bytes().strip()
        return int(code) if code.isdigit() and len(code) <= _CODE_DIGITS else "unknown"

    def run(
        self, command: str | Sequence[str], home: Path, environment: Mapping[str, str] | None = None
    ) -> int:
        """Start it in a folder, and return the number of its process.

        Args:
            command: a line of the shell, or the words of a command.
            home: the folder.
            environment: variables that are added to those of this process.

        Raises:
            OSError: it cannot be run.
        """
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else command
        with self._lock.open("a") as lock, self.log.open("ab") as out:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _RUN_AND_WRITE_CODE, str(self.state.absolute()), *words],
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
        """Return the end of its output, for the terminal alone: it may hold secrets."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return [f"{self.log}:", *("  " + printable(line) for line in lines[-_LOG_LINES:])]
