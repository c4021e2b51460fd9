"""The Typer app, and the messages and exit codes for errors."""

from __future__ import annotations

import gc
import io
import sys
import traceback
from importlib import import_module
from itertools import chain
from typing import Annotated, Any, NoReturn

import typer

from migrate.cli import terminal
from migrate.cli.exit_codes import Exit, exit_of, is_interrupt
from migrate.cli.help import CORE_COMMANDS, group_help
from migrate.cli.terminal import say
from migrate.cli.typer_classes import Command, Group
from migrate.model.errors import MigrateError, Refused, take_notes
from migrate.model.extensions import EXTENSIONS, command_module
from migrate.model.message import with_code
from migrate.model.option_names import command_line_notation, option
from migrate.model.wording import package_version, printable


def load_function(name: str) -> Any:
    """Import the module of a command, and return the command's function.

    Raises:
        UsageError: the command belongs to an extension that is not installed.
    """
    function = name.replace("-", "_")
    of_core = name in CORE_COMMANDS
    module = import_module(f"migrate.cli.{function}") if of_core else command_module(name)
    return getattr(module, function)


def load_command(name: str) -> Any:
    """Return a command, which Typer creates from the command's function."""
    single = typer.Typer(add_completion=False)
    single.command(name, cls=Command, context_settings={"help_option_names": ["--help"]})(
        load_function(name)
    )
    command = typer.main.get_command(single)
    command.params += terminal.common_options()
    return command


class _Commands(Group):
    """A group that loads a command only if the command line contains it."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name in (*CORE_COMMANDS, *chain.from_iterable(EXTENSIONS.values())):
            self.add_command(Command(name, help=CORE_COMMANDS.get(name)))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(group_help(self, ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        if not args and not ctx.resilient_parsing:  # without rich, Typer prints no help here
            say(ctx.get_help())
            ctx.exit(Exit.USAGE)
        if args[:1] == ["help"]:  # ``help`` is also a command of git and docker
            args = [*args[1:2], "--help"]
        return super().parse_args(ctx, args)

    # The types are Any, because newer versions of Typer define them in a private copy of click, and
    # older versions use click itself.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name is not None else command, rest


app = typer.Typer(
    cls=_Commands,
    name="migrate",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        number = package_version() or "(unknown version, because the package is not installed)"
        terminal.emit(f"migrate {number}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Show the version and exit.",
            callback=_show_version,
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
    verbose: terminal.Verbose = False,
    quiet: terminal.Quiet = False,
) -> None:
    """Move Kafka positions from Flink checkpoints to Spark or a consumer group."""


def main() -> None:
    """Run the console script.

    Typer itself exits with 2 for invalid arguments and with 130 for Ctrl-C.
    """
    terminal.reset()
    if sys.stdout is None:  # the shell closed stdout (``>&-``)
        _fail(Exit.USAGE, "stdout is closed; migrate could not print a result; nothing was done")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # By default, a character that the locale cannot encode raises an error. Write an escape
        # such as \u20ac instead of the character.
        sys.stdout.reconfigure(errors="backslashreplace")
    with command_line_notation():
        _run_app()


def _run_app() -> None:
    try:
        app()
    except KeyboardInterrupt:  # Ctrl-C before Typer starts
        sys.exit(Exit.INTERRUPTED)
    except SystemExit as end:
        sys.exit(_exit_code(end))
    except Exception as error:
        notes = take_notes(error)
        try:
            _exit_with(error)
        finally:
            for note in notes:
                say(printable(note))
    finally:
        gc.freeze()  # avoids a search for reference cycles at process exit


def _exit_code(end: SystemExit) -> Any:
    """Return the exit code of the process.

    If the reader of a pipe has closed it (``migrate --help | head -1``), Typer exits with 1. In
    that case, return the exit code of the error that Typer was printing, or 0 if it was printing
    the help.
    """
    pipe_error = end.__context__
    if not isinstance(pipe_error, BrokenPipeError):
        return end.code
    return getattr(pipe_error.__context__, "exit_code", 0)


def _exit_with(error: Exception) -> NoReturn:
    """Show an error, and exit with its exit code; after Ctrl-C, exit without a message."""
    from decoder import ErrorKind  # imported here, because --help does not need the decoder

    code = exit_of(error)
    match error:
        case Refused(reasons=reasons, written=written):
            for reason in reasons:
                say(f"refused: {printable(with_code(reason))}")
            _fail(code, f"refused; {'only ' + written if written else 'nothing'} was written")
        case OSError():
            _fail(code, f"{error.filename or 'the system'}: {error.strerror or error}")
    if getattr(error, "kind", None) is ErrorKind.EXTERNAL:
        _fail(
            code,
            f"{error}; if you trust this checkpoint, add {option('allow_external_files', True)}",
        )
    if code is not Exit.BUG:
        reasons = error.reasons if isinstance(error, MigrateError) else (str(error),)
        _fail(code, "; ".join(map(with_code, reasons)))
    if is_interrupt(error):
        sys.exit(Exit.INTERRUPTED)
    say("".join(traceback.format_exception(error)).rstrip("\n"))
    _fail(code, "this is a bug in migrate; please report the lines above")


def _fail(code: Exit, message: str) -> NoReturn:
    say(f"migrate: {printable(message)}")
    sys.exit(code)
