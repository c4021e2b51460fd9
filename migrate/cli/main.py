"""The app: its commands, and how each of them may end."""

from __future__ import annotations

import io
import sys
import traceback
from typing import NoReturn

import typer

from decoder import DecodeError, ErrorKind
from migrate.choose import NoSuchSource
from migrate.cli import commit_group, diff, inspect, rollback, to_spark
from migrate.cli.errors import Exit, Refused, UsageError, is_interrupt
from migrate.cli.streams import say
from migrate.flink_rest import FlinkRestError
from migrate.kafka_config import ConfigError
from migrate.plan_file import PlanFileError
from migrate.position_set import AmbiguousPositions, UnreadableInput
from migrate.rollback_file import RollbackFileError
from migrate.sides import BadSide
from migrate.snapshot import BrokerError
from migrate.storage import MissingExtra

_DECODE_EXITS = {ErrorKind.EXTERNAL: Exit.REFUSED, ErrorKind.UNAVAILABLE: Exit.SERVICE}

app = typer.Typer(
    name="migrate",
    help="Move Kafka positions from Flink checkpoints to Spark, losing and repeating nothing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("inspect")(inspect.inspect)
app.command("to-spark")(to_spark.to_spark)
app.command("commit-group")(commit_group.commit_group)
app.command("rollback")(rollback.rollback)
app.command("diff")(diff.diff)
app.command("verify")(diff.verify)


@app.callback()
def _root() -> None:
    """Move Kafka positions from Flink checkpoints to Spark, losing and repeating nothing."""


def main() -> None:
    """The console script. Typer itself exits with 2 on wrong arguments and 130 on Ctrl-C."""
    if sys.stdout is None:  # closed by the caller (>&-)
        _fail(Exit.USAGE, "stdout is closed, so that no result could be told; nothing was done")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path that is no text in this locale is shown escaped rather than not at all.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except DecodeError as error:
        _fail(_DECODE_EXITS.get(error.kind, Exit.UNREADABLE), str(error))
    except (PlanFileError, RollbackFileError, UnreadableInput) as error:
        _fail(Exit.UNREADABLE, str(error))
    except (BadSide, NoSuchSource, ConfigError, MissingExtra, UsageError) as error:
        _fail(Exit.USAGE, str(error))
    except Refused as refused:
        from migrate.report.text import visible

        for reason in refused.reasons:
            say(f"refused: {visible(reason)}")
        _fail(Exit.REFUSED, "refused as asked; nothing was written")
    except AmbiguousPositions as error:
        _fail(Exit.REFUSED, str(error))
    except (BrokerError, FlinkRestError) as error:
        _fail(Exit.SERVICE, str(error))
    except OSError as error:
        _fail(Exit.SERVICE, f"{error.filename or 'the system'}: {error.strerror or error}")
    except Exception as error:
        if is_interrupt(error):
            sys.exit(Exit.INTERRUPTED)
        traceback.print_exc()
        _fail(Exit.BUG, "this is a bug of ours; please report the lines above")


def _fail(code: Exit, message: str) -> NoReturn:
    from migrate.report.text import visible

    say(f"migrate: {visible(message)}")
    sys.exit(code)
