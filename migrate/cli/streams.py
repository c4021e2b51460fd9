"""stdout is data, stderr is talk."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator

import typer

from migrate.cli.errors import Exit

# How much is told: talk of this level and above, as the module ``logging`` has its levels.
VERBOSE, NORMAL, QUIET = 10, 20, 30
loudness = NORMAL


def emit(text: str, end: str = "\n") -> None:
    """Data, to stdout. A reader that has seen enough (``| head``) is no failure.

    Raises:
        OSError: it cannot be told: the disk is full, say.
    """
    emit_pieces((text, end))


def emit_pieces(pieces: Iterable[str]) -> None:
    """The same, of text that is too long to be held whole.

    Raises:
        OSError: as ``emit`` does.
    """
    try:
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer must not fail again when Python closes stdout: that would end
        # the command with an exit code of Python's own (120).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "stdout") from error


@contextlib.contextmanager
def after_writing(written: str) -> Iterator[None]:
    """Data of a command that has written something by now: where stdout fails, what it has written
    is told, and the command is not done (exit 5).

    Args:
        written: what it has written; empty where nothing.
    """
    try:
        yield
    except OSError as error:
        if not written:
            raise
        say(f"migrate: stdout: {error.strerror}; {written}")
        raise typer.Exit(Exit.NOT_VERIFIED) from error


def show(text: str, *, needed: bool) -> None:
    """Lines that are no data: what is not ``needed`` to understand the rest is quiet with -q."""
    if needed or loudness < QUIET:
        for line in text.splitlines():
            say(line)


def say(line: str) -> None:
    """Talk, to stderr, where there is one: it is no reason to fail. A line may hold what others
    say, so no credentials of a URL in it are told."""
    from decoder.urls import shown_in  # here, as --help has no use for the decoder

    if sys.stderr is not None:  # print would turn to stdout
        with contextlib.suppress(OSError):
            print(shown_in(line), file=sys.stderr, flush=True)
