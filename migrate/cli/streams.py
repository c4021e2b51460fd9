"""stdout is data, stderr is talk."""

from __future__ import annotations

import contextlib
import os
import sys


def emit(text: str, end: str = "\n") -> None:
    """Data, to stdout. A reader that has seen enough (``| head``) is no failure.

    Raises:
        OSError: it cannot be told: the disk is full, say.
    """
    try:
        sys.stdout.write(text + end)
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer must not fail again when Python closes stdout: that would end
        # the command with an exit code of Python's own (120).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "stdout") from error


def say(line: str) -> None:
    """Talk, to stderr, where there is one: it is no reason to fail."""
    if sys.stderr is not None:  # print would turn to stdout
        with contextlib.suppress(OSError):
            print(line, file=sys.stderr, flush=True)
