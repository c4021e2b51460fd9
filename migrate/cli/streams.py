"""stdout is data, stderr is talk."""

from __future__ import annotations

import os
import sys


def emit(text: str, end: str = "\n") -> None:
    """Data, to stdout. A reader that has seen enough (``| head``) is no failure."""
    try:
        sys.stdout.write(text + end)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer must not fail again when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(line: str) -> None:
    """Talk, to stderr."""
    print(line, file=sys.stderr)
