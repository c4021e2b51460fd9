"""stdout is data, stderr is talk."""

from __future__ import annotations

import contextlib
import errno
import os
import sys


def emit(text: str, end: str = "\n") -> None:
    """Data, to stdout. A reader that has seen enough (``| head``) is no failure."""
    if sys.stdout is None:  # closed by the caller (>&-)
        raise OSError(errno.EBADF, "stdout is closed, and the result is not told")
    try:
        sys.stdout.write(text + end)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer must not fail again when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(line: str) -> None:
    """Talk, to stderr, where there is one: it is no reason to fail."""
    if sys.stderr is not None:  # print would turn to stdout
        with contextlib.suppress(OSError):
            print(line, file=sys.stderr, flush=True)
