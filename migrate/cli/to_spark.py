"""``migrate to-spark``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Annotated

import typer

from migrate.cli import next_step
from migrate.cli import shared_options as options
from migrate.cli.saved_plan import save_plan
from migrate.cli.shared_options import with_environment
from migrate.cli.terminal import after_writing, emit, tell
from migrate.commands import to_spark as spark
from migrate.commands.arguments import MoveArguments
from migrate.commands.to_spark import check_directories
from migrate.errors import UsageError
from migrate.spark.connector import kafka_connector
from migrate.spark.source_options import IsolationLevel


class SparkFormat(str, Enum):
    JSON = "json"
    OPTIONS = "options"
    PYTHON = "python"
    SCALA = "scala"


_QUERY = "The query"


@options.with_options
def to_spark(
    chk: options.CheckpointOrPlan = None,
    *,
    checkpoint_dir: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Also write a checkpoint location from which a Spark query starts there: a new "
            "directory, local or at s3://, gs://, abfs://, hdfs://, dbfs:/.",
            show_default=False,
        ),
    ] = None,
    sink: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Where the query writes: files, or a table. Refused if the sink remembers an "
            "older query, and would skip what the new one writes.",
            show_default=False,
            rich_help_panel=_QUERY,
        ),
    ] = None,
    sink_writer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The name the query writes under: Hudi's checkpoint identifier, Delta's txnAppId.",
            show_default=False,
            rich_help_panel=_QUERY,
        ),
    ] = None,
    arguments: MoveArguments,
    spark_source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N=S",
            help="The query's stream N, counted from 0, goes on from source S, as in --source. "
            "N=topic:NAME takes one topic. Repeatable. Streams that are not Kafka's count too.",
            show_default=False,
            rich_help_panel=_QUERY,
        ),
    ] = None,
    format: Annotated[
        SparkFormat,
        typer.Option(
            metavar="F",
            help="json: startingOffsets (a line for each --spark-source). options: all options as "
            "name=value. python, scala: a whole query, to start as it is.",
        ),
    ] = SparkFormat.JSON,
    spark_version: Annotated[
        str | None,
        typer.Option(
            metavar="V",
            help="The Spark that runs the printed file, as 4.0.0: its first line names the Kafka "
            "package for it. [default: the installed PySpark's]",
            show_default=False,
            rich_help_panel=_QUERY,
        ),
    ] = None,
    isolation_level: Annotated[
        IsolationLevel | None,
        typer.Option(
            metavar="LEVEL",
            help="read_committed or read_uncommitted (Kafka's default), for the printed options "
            "or code; no Flink checkpoint holds the job's own.",
            show_default=False,
            rich_help_panel=_QUERY,
        ),
    ] = None,
    plan: options.PlanFileToApply = None,
    plan_out: options.PlanFileToWrite = None,
    wide: options.Wide = False,
) -> None:
    """Write where Spark is to start: startingOffsets on stdout, and a seeded checkpoint location.

    Refuses (exit 4, nothing on stdout, nothing written) what would lose or repeat records.
    """
    if isolation_level is not None and format is SparkFormat.JSON:
        raise UsageError("--isolation-level goes with --format options, python or scala")
    if spark_version is not None:
        if format not in (SparkFormat.PYTHON, SparkFormat.SCALA):
            raise UsageError("--spark-version goes with --format python or scala")
        kafka_connector(spark_version)
    arguments = with_environment(arguments)
    if plan_out is not None:
        if spark_source:
            raise UsageError("--spark-source goes with a checkpoint (CHK), not with a saved plan")
        check_directories(checkpoint_dir, sink, sink_writer)
        save_plan(plan_out, chk, plan, None, arguments, wide=wide)
        return
    start = spark.to_spark(
        chk,
        plan=plan,
        checkpoint_dir=checkpoint_dir,
        sink=sink,
        sink_writer=sink_writer,
        spark_source=parse_spark_sources(spark_source or ()),
        isolation_level=isolation_level,
        **arguments,
    )
    seeded = f"the seed {checkpoint_dir} is written, and whole" if checkpoint_dir else ""
    with after_writing(seeded):
        if format is SparkFormat.JSON:
            emit(start.starting_offsets)
        else:
            emit(start.code(format.value, spark_version))
    if checkpoint_dir is None:
        if format is SparkFormat.JSON:
            tell(
                "next: a new query takes this as startingOffsets, with a new checkpointLocation; "
                "--checkpoint-dir DIR writes one that starts there"
            )
    elif not spark_source:
        target = f"spark:{checkpoint_dir}"
        if check := next_step.verification(chk, plan, target, arguments):
            tell(f"next, before and after the query has run: {check}")


_SPARK_SOURCE = re.compile(r"(0|[1-9][0-9]{0,3})=(.+)")


def parse_spark_sources(given: Iterable[str]) -> dict[int, list[str]]:
    """``N=S`` arguments: what each Spark source is to go on from.

    Raises:
        UsageError: one is not of that form.
    """
    names: dict[int, list[str]] = {}
    for text in given:
        match = _SPARK_SOURCE.fullmatch(text)
        if match is None:
            raise UsageError(f"--spark-source {text!r}: not N=SOURCE, as 0=topic:orders")
        names.setdefault(int(match[1]), []).append(match[2])
    return names
