"""The command line: joins the rooms; the only reader of arguments, the only place of exit codes.

stdout is data, stderr is talk. Rooms that cost time to import (Kafka's client, Spark) are imported
by the commands that need them.
"""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from decoder import DecodeError, list_checkpoints, read_checkpoint
from migrate.choose import NoSuchSource, choose_sources
from migrate.extract import Extraction, Source, extract
from migrate.kafka_config import ConfigError, kafka_config
from migrate.plan import Plan, make_plan
from migrate.snapshot import BrokerError, ClusterSnapshot


class Exit(IntEnum):
    """The exit codes; they are part of the command contract."""

    USAGE = 2  # wrong arguments, no such source
    UNREADABLE = 3  # the input is missing, corrupt or unsupported
    REFUSED = 4  # unsafe or ambiguous as asked; nothing was written
    SERVICE = 6  # a service did not answer, or denied access
    BUG = 70  # ours; the only one with a traceback


class Refused(Exception):
    """What was asked for would lose or repeat records, or overwrite something."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class InspectFormat(str, Enum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class SparkFormat(str, Enum):
    JSON = "json"


app = typer.Typer(
    name="migrate",
    help="Move Kafka positions from Flink checkpoints to Spark, losing and repeating nothing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

CheckpointArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHK",
        help="A chk-<n> or savepoint directory, its _metadata, or a job's checkpoint directory "
        "(its newest complete chk-<n>).",
        show_default=False,
    ),
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help="The Kafka source to move: its operator id, name, uid, or topic:NAME.",
        show_default=False,
    ),
]


@app.callback()
def _root() -> None:
    """Move Kafka positions from Flink checkpoints to Spark, losing and repeating nothing."""


@app.command()
def inspect(
    chk: CheckpointArgument,
    format: Annotated[
        InspectFormat, typer.Option(help="table for people; json and csv for programs.")
    ] = InspectFormat.TABLE,
    list_: Annotated[
        bool,
        typer.Option(
            "--list", help="List the complete checkpoints of a job's checkpoint directory instead."
        ),
    ] = False,
) -> None:
    """Show what a checkpoint holds: positions per source, state per operator, findings."""
    if list_:
        _list(chk, format)
        return
    from migrate.report.inspection import inspect_report

    report = inspect_report(extract(read_checkpoint(chk)))
    match format:
        case InspectFormat.JSON:
            _emit(json.dumps(report.model_dump(mode="json"), indent=2))
        case InspectFormat.CSV:
            from migrate.report.text import inspection_csv

            _emit(inspection_csv(report), end="")
        case InspectFormat.TABLE:
            from migrate.report.text import inspection_table

            _emit(inspection_table(report, sys.stdout), end="")


def _list(chk: str, format: InspectFormat) -> None:
    checkpoints = list_checkpoints(chk)
    match format:
        case InspectFormat.JSON:
            _emit(json.dumps([{"id": number, "pointer": path} for number, path in checkpoints]))
        case InspectFormat.CSV:
            from migrate.report.text import csv_text

            _emit(csv_text(("id", "pointer"), checkpoints), end="")
        case InspectFormat.TABLE:
            _emit("".join(f"{number}\t{path}\n" for number, path in checkpoints), end="")


@app.command("to-spark")
def to_spark(
    chk: CheckpointArgument,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            "-b",
            metavar="HOST:PORT,…",
            help="The Kafka cluster the job reads: resolves what the state leaves open, finds "
            "partitions the checkpoint does not know, and checks that the offsets are there.",
            show_default=False,
        ),
    ] = None,
    checkpoint_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Also write a new checkpoint location from which a Spark query starts there.",
            show_default=False,
        ),
    ] = None,
    source: SourceOption = None,
    source_group: Annotated[
        str | None,
        typer.Option(
            metavar="G",
            help="Flink's own consumer group: resolves partitions still at 'committed', and "
            "shows whether the job ran on.",
            show_default=False,
        ),
    ] = None,
    allow_ran_on: Annotated[
        bool,
        typer.Option(
            "--allow-ran-on",
            help="Move although the job ran on after this checkpoint; Spark repeats what Flink "
            "emitted since.",
        ),
    ] = False,
    format: Annotated[
        SparkFormat, typer.Option(help="json: the value of startingOffsets.")
    ] = SparkFormat.JSON,
    kafka_config_file: Annotated[
        Path | None,
        typer.Option(
            "--kafka-config",
            metavar="FILE",
            help="librdkafka properties, key=value a line.",
            show_default=False,
        ),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("-X", metavar="KEY=VALUE", help="A librdkafka property.", show_default=False),
    ] = None,
) -> None:
    """Write where Spark is to start: startingOffsets on stdout, and a seeded checkpoint location.

    Refuses (exit 4, nothing on stdout, nothing written) what would lose or repeat records.
    """
    from migrate.targets.spark_checkpoint import TargetInUse, check_free, write_seed
    from migrate.targets.spark_options import starting_offsets

    if checkpoint_dir is not None:
        try:
            check_free(checkpoint_dir)
        except TargetInUse as error:
            raise Refused([str(error)]) from error
    extraction = extract(read_checkpoint(chk))
    chosen = choose_sources(extraction, source)
    snapshot = None
    if bootstrap_servers or kafka_config_file or properties:
        config = kafka_config(bootstrap_servers, kafka_config_file, properties or ())
        snapshot = _snapshot(config, chosen, source_group)
    elif source_group is not None:
        raise ConfigError("--source-group needs a broker: add --bootstrap-servers HOST:PORT")
    plan = make_plan(extraction, chosen, snapshot, allow_ran_on=allow_ran_on)
    _tell(plan, extraction)
    if plan.refusals:
        raise Refused([str(refusal) for refusal in plan.refusals])
    if checkpoint_dir is not None:
        try:
            write_seed(plan, checkpoint_dir)
        except TargetInUse as error:
            raise Refused([str(error)]) from error
        _say(f"wrote {checkpoint_dir}: a new query's checkpointLocation, starting there")
    _emit(starting_offsets(plan))


def _snapshot(config: dict[str, str], chosen: list[Source], group: str | None) -> ClusterSnapshot:
    from migrate.broker import take_snapshot

    return take_snapshot(config, set().union(*(source.topics for source in chosen)), group)


def _tell(plan: Plan, extraction: Extraction) -> None:
    from migrate.report.text import plan_lines, visible

    checkpoint = extraction.checkpoint
    _say(f"checkpoint {checkpoint.checkpoint_id}: {visible(checkpoint.pointer)}")
    for line in plan_lines(plan):
        _say(line)
    for warning in plan.warnings:
        _say(f"warning: {visible(warning)}")


# -- streams and exit codes ---------------------------------------------------------------------


def _emit(text: str, end: str = "\n") -> None:
    """Data, to stdout. A reader that has seen enough (``| head``) is no failure."""
    try:
        sys.stdout.write(text + end)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer must not fail again when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(line: str) -> None:
    """Talk, to stderr."""
    print(line, file=sys.stderr)


def _fail(code: Exit, message: str) -> NoReturn:
    _say(f"migrate: {message}")
    sys.exit(code)


def main() -> None:
    """The console script. Typer itself exits with 2 on wrong arguments and 130 on Ctrl-C."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path that is no text in this locale is shown escaped rather than not at all.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except DecodeError as error:
        from migrate.report.text import visible

        _fail(Exit.UNREADABLE, visible(str(error)))
    except (NoSuchSource, ConfigError) as error:
        _fail(Exit.USAGE, str(error))
    except Refused as refused:
        for reason in refused.reasons:
            _say(f"refused: {reason}")
        _fail(Exit.REFUSED, "refused as asked; nothing was written")
    except BrokerError as error:
        _fail(Exit.SERVICE, str(error))
    except OSError as error:
        _fail(Exit.SERVICE, f"{error.filename or 'the system'}: {error.strerror or error}")
    except Exception:
        traceback.print_exc()
        _fail(Exit.BUG, "this is a bug of ours; please report the lines above")


if __name__ == "__main__":
    main()
