"""Run a user's command, and read its status in the same run of ``migrate`` or in a later one.

The command has its own session, so it survives Ctrl-C and the end of ``migrate``. The command
counts as running while it or one of its child processes holds an inherited file lock. The shell
around the command writes the exit code to a file for later runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from migrate.model.wording import clipped, printable

# "running" while the command or any process that it started is alive; then the exit code, or
# "unknown" if no code was written. None if the command has never been run.
CommandStatus = int | Literal["running", "unknown"] | None

_SHOWN_LINES = 15  # after a failure
_LAST_LINES, _LINE_WIDTH = 5, 120  # while the command runs, or after it has succeeded
_SEARCHED_LINES = 200  # the lines that ``error_lines`` searches
_SEARCHED_BYTES = 1 << 16
_CODE_DIGITS = 3  # the highest exit code is 255
# The time at the start of a log line, as in "26/11/29 21:02:10", "2026-11-29T21:02:10.123Z", or
# "[2026-11-29 21:02:10,123]".
_TIMESTAMP = re.compile(
    r"^\[?\d{2,4}[-/.]\d{2}[-/.]\d{2,4}[ T]\d{2}:\d{2}:\d{2}([.,]\d+)?(Z|[+-]\d{2}:?\d{2})?\]?\s*"
)
# The start of a log message of log4j or Java below the level ERROR, with or without a time and a
# thread, such as "26/11/29 21:02:10 INFO SparkContext: Stopped"; or Spark's notice about its log.
_LOG_MESSAGE = re.compile(
    r"(\[?[\d:/.,TZ+ -]{1,40}\]?\s)?\s*(\[[^\]]*\]\s*)?\[?(TRACE|DEBUG|INFO|WARN|WARNING)\]?[:\s]"
    r"|[A-Z][a-z]{2} \d{1,2}, \d{4} [\d:]+ [AP]M \S+ \S+$"
    r"|Using Spark's default log4j profile|Setting default log level|To adjust logging level"
)
_CONTINUATION = re.compile(r"\s|Caused by: ")
_JAVA_FRAME = re.compile(r"\s+(at \S.*\)|\.\.\. \d+ more)")
# $0 is the state file. HUP, INT, and TERM signals to the process group do not end this shell, so
# that it can still write the exit code.
_RUN_AND_WRITE_CODE = """
trap : HUP INT TERM
echo began $$ >"$0" || exit
"$@"
code=$?
echo $code >"$0.tmp" && mv "$0.tmp" "$0"
exit $code
"""


def command_checksum(command: str | Sequence[str]) -> str:
    """Return the SHA-256 of a command, in hex; a shell line and a list of words always differ."""
    return hashlib.sha256(json.dumps(command).encode()).hexdigest()


def command_line(command: str | Sequence[str]) -> str:
    """Return a command as a printable shell line. Do not store it, because it may have secrets."""
    return printable(command if isinstance(command, str) else shlex.join(command))


class Command:
    """A user's command, and its files in the record's folder.

    Attributes:
        log: the command's output.
        state: the file that contains "began" and the shell's process ID. When the command ends, the
            exit code replaces both.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._lock = folder / f"{name}.lock"
        self.log, self.state = folder / f"{name}.log", folder / f"{name}.state"

    def status(self) -> CommandStatus:
        """Return the status of the command, regardless of which run started it."""
        if self._lock.exists():
            with self._lock.open("a") as lock:
                try:
                    # A shared lock. If this check took an exclusive lock, a second run that checks
                    # the status at the same time would report the command as running.
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return "running"
        if not self.state.exists():
            return None
        code = self.exit_code()
        return code if code is not None else "unknown"

    def exit_code(self) -> int | None:
        """Return the exit code, or None if the shell has not written an exit code.

        A command with an exit code still counts as running while one of its child processes runs.
        """
        if not self.state.exists():
            return None
        code = self.state.read_bytes().strip()
        return int(code) if code.isdigit() and len(code) <= _CODE_DIGITS else None

    def process_id(self) -> int | None:
        """Return the command's process group, or None before the start or after the exit."""
        if not self.state.exists():
            return None
        began, _, process = self.state.read_bytes().strip().partition(b" ")
        return int(process) if began == b"began" and process.isdigit() else None

    def start(
        self,
        command: str | Sequence[str],
        working_directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> int:
        """Start a command, which is a shell line or a list of words, and return its process group.

        ``environment`` is added to the variables of this process.

        Raises:
            OSError: the files cannot be opened, or the shell cannot be started.
            ValueError: the command contains a NUL character.
        """
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else command
        with self._lock.open("a") as lock, self.log.open("ab") as out:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen(
                ["/bin/sh", "-c", _RUN_AND_WRITE_CODE, str(self.state.absolute()), *words],
                cwd=working_directory,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )
        # The thread reaps the process when the process ends. If the ``Popen`` object were
        # garbage-collected before the end, Python would issue a warning.
        threading.Thread(target=process.wait, daemon=True).start()
        return process.pid

    def last_lines(self) -> tuple[str, ...]:
        """Return the log's path and a few last lines of the output; empty if no log exists.

        Long lines are clipped, so that they do not hide the message before them. Do not store the
        lines, because they may contain secrets.
        """
        lines = [line for line in self._end() if line.strip()]
        return self._shown([clipped(line, _LINE_WIDTH) for line in lines[-_LAST_LINES:]])

    def error_lines(self) -> tuple[str, ...]:
        """Return the log's path and the log's last lines, without log messages below ERROR.

        After a query fails, Spark logs many shutdown messages. If the end of the output contains
        only log messages, return ``last_lines``.
        """
        end = self._end()
        return self._shown(list(_without_log_messages(end[-_SEARCHED_LINES:])) or end)

    def _end(self) -> list[str]:
        """Return the lines at the end of the output; empty if no log exists."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _SEARCHED_BYTES))
            return file.read().decode(errors="replace").splitlines()

    def _shown(self, lines: Sequence[str]) -> tuple[str, ...]:
        """Return the log's path and the last of these lines; empty if no log exists."""
        if not lines:
            return (f"{self.log}: empty",) if self.log.exists() else ()
        return (
            f"{self.log}:",
            *("  " + printable(line.expandtabs(4)) for line in lines[-_SHOWN_LINES:]),
        )

    def last_line(self) -> str:
        """Return the last line of the output without its timestamp, or an empty string."""
        lines = [line.strip() for line in self.last_lines()[1:] if line.strip()]
        return _TIMESTAMP.sub("", lines[-1]) if lines else ""


def _without_log_messages(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that are neither log messages below ERROR nor frames of Java stack traces.

    An indented line or the cause of an exception belongs to the preceding line. Stack frames are
    omitted, because a stack trace starts with the error, and may have more lines than are shown.
    """
    is_log_message = False
    for line in lines:
        if line and not _CONTINUATION.match(line):
            is_log_message = _LOG_MESSAGE.match(line) is not None
        if line.strip() and not is_log_message and not _JAVA_FRAME.match(line):
            yield line
