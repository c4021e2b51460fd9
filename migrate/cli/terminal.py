"""A command's output: data on stdout, messages and a progress line on stderr."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from migrate.cli.exit_codes import Exit
from migrate.cli.help import command_help
from migrate.model.errors import UsageError
from migrate.model.log import REPEATED, log, watchers
from migrate.model.progress import ProgressLines, RunningStage, Ticker
from migrate.model.wording import printable

# Messages below ``lowest_level`` are not shown.
VERBOSE, NORMAL, QUIET = 10, 20, 30
lowest_level = NORMAL

# The number of seconds before the progress line shows a stage, and between redraws of the line.
_AFTER_SECONDS = 2.0
_BETWEEN_SECONDS = 0.5
_START_OF_LINE = "\r\x1b[K"


class BusyLine:
    """Show a long stage as a redrawn line or, without a terminal, as a line every ten seconds.

    With -q, it shows nothing.
    """

    def __init__(self) -> None:
        self._redrawn = Ticker(_BETWEEN_SECONDS, self._draw)
        self._lines = ProgressLines(lambda line: say(line))
        # The ticker that shows each stage that has not ended; None for a stage that is not shown.
        self._watching: list[Ticker | None] = []
        self._drawn = False
        self._disabled = False

    def begin(self, what: str) -> None:
        from decoder.urls import redact_urls

        watcher = None
        if lowest_level < QUIET and sys.stderr is not None:
            watcher = self._redrawn if sys.stderr.isatty() else self._lines
            watcher.begin(redact_urls(what))
        self._watching.append(watcher)

    def seen(self, text: str) -> None:
        from decoder.urls import redact_urls

        if self._watching and (watcher := self._watching[-1]) is not None:
            watcher.seen(redact_urls(text))

    def end(self) -> None:
        if self._watching and (watcher := self._watching.pop()) is not None:
            watcher.end()
        with self._redrawn.lock:
            self._erase()

    @contextmanager
    def erased(self) -> Iterator[None]:
        """Erase the line while the caller writes another line to stderr."""
        with self._redrawn.lock:
            self._erase()
            yield

    @contextmanager
    def not_drawn(self) -> Iterator[None]:
        """Do not draw the line while something else shows progress."""
        self._disabled = True
        try:
            yield
        finally:
            self._disabled = False

    def _draw(self, stage: RunningStage) -> None:
        seconds = time.monotonic() - stage.started
        if self._disabled or seconds < _AFTER_SECONDS:
            return
        self._write(f"{_START_OF_LINE}{_shortened(stage.text())}")
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            self._write(_START_OF_LINE)
            self._drawn = False

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal was closed, so there is no line to draw
            self._disabled = True


def _shortened(what: str) -> str:
    """Shorten a string to the terminal's width, because a wrapped line cannot be erased."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        columns = 80
    room = columns - 1
    return what if len(what) <= room else f"{what[: max(room - 1, 0)]}…"


busy = BusyLine()


def emit(text: str, end: str = "\n") -> None:
    """Write data to stdout. A reader that closes the pipe (``| head``) causes no error.

    Raises:
        OSError: writing to stdout failed, for example because the disk is full.
    """
    emit_pieces((text, end))


def emit_pieces(pieces: Iterable[str]) -> None:
    """Write data to stdout in pieces.

    Raises:
        OSError: as in ``emit``.
    """
    try:
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
    except OSError as error:
        # Otherwise, Python fails again when it closes stdout, and exits with 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "stdout") from error


@contextlib.contextmanager
def output_after_writing(written: str) -> Iterator[None]:
    """Exit with 5 if output within the block fails after the command has written files.

    Args:
        written: the message about the written files; if empty, the error is raised unchanged.
    """
    try:
        yield
    except OSError as error:
        if not written:
            raise
        say(f"migrate: {error.filename or 'stdout'}: {error.strerror}; {written}")
        raise typer.Exit(Exit.NOT_VERIFIED) from error


def show(text: str, *, needed: bool) -> None:
    """Show lines on stderr; with -q, only if they are ``needed``."""
    if needed or lowest_level < QUIET:
        for line in text.splitlines():
            say(line)


def say(line: str) -> None:
    """Write a line, without any URL credentials, to stderr; ignore write errors."""
    from decoder.urls import redact_urls  # imported here, because --help does not need the decoder

    if sys.stderr is not None:  # ``print(file=None)`` writes to stdout
        with busy.erased(), contextlib.suppress(OSError):
            print(redact_urls(line), file=sys.stderr, flush=True)


class _Messages(logging.Handler):
    """A handler for the ``migrate`` logger that shows messages.

    Identical warnings, and identical details with ``-v``, are shown only once, unless their
    ``REPEATED`` attribute is true.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = printable(record.getMessage())
        if record.levelno == logging.WARNING or record.levelno < logging.INFO:
            if text in self.shown:
                return
            if not getattr(record, REPEATED, False):
                self.shown.add(text)
        if record.levelno == logging.WARNING:
            text = f"warning: {text}"
        if record.levelno >= lowest_level:
            say(text)


class _MessagesOfLibraries(logging.Handler):
    """A handler that, with ``-v``, shows warnings and errors from other libraries, each line once.

    Without ``-v``, it shows nothing. It is needed even then, because Python would print the
    messages if the root logger had no handler.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if lowest_level > VERBOSE or record.name.partition(".")[0] == log.name:
            return
        from migrate.model.secrets import redact_secrets

        for text in record.getMessage().splitlines():
            line = f"{record.name}: {printable(redact_secrets(text.strip()))}"
            if line not in self._shown:
                self._shown.add(line)
                say(line)


_messages = _Messages()
log.addHandler(_messages)
watchers.append(busy)
log.setLevel(logging.DEBUG)
logging.getLogger().addHandler(_MessagesOfLibraries())


def _set_lowest_level(option: typer.CallbackParam, value: bool) -> None:
    global lowest_level
    level = QUIET if option.name == "quiet" else VERBOSE
    if value and lowest_level not in (level, NORMAL):
        raise UsageError("--quiet cannot be combined with --verbose")
    if value:
        lowest_level = level


def reset() -> None:
    """Forget -v, -q, and the warnings from an earlier command in the same process."""
    global lowest_level
    lowest_level = NORMAL
    _messages.shown.clear()


Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Also show files that are read, services that are queried, and durations.",
        callback=_set_lowest_level,
        expose_value=False,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Show only warnings, refusals, errors, and questions on stderr.",
        callback=_set_lowest_level,
        expose_value=False,
    ),
]


def _show_short_help(ctx: typer.Context, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        emit(command_help(ctx.command, ctx, all_options=False), end="")
        raise typer.Exit


ShortHelp = Annotated[
    bool,
    typer.Option(
        "-h",
        help="Show the common options and exit.",
        callback=_show_short_help,
        is_eager=True,
        expose_value=False,
    ),
]


def common_options() -> list[Any]:
    """Return -v, -q, and -h as parameters of a command."""
    single = typer.Typer(add_completion=False)

    @single.command()
    def _(verbose: Verbose = False, quiet: Quiet = False, short: ShortHelp = False) -> None: ...

    return list(typer.main.get_command(single).params)
