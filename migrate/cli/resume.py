"""``migrate verify --run``: from its options to where a real Spark begins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from migrate.cli.errors import Exit, UsageError
from migrate.cli.options import KafkaOptions
from migrate.cli.streams import say
from migrate.position_set import PositionSet

Run = Annotated[
    bool,
    typer.Option(
        "--run",
        help="For spark:DIR: start Spark on a copy of the seed, up to 1000 records to a noop sink, "
        "and check where it plans to begin.",
    ),
]
SparkConf = Annotated[
    list[str] | None,
    typer.Option(
        "--spark-conf",
        metavar="KEY=VALUE",
        help="With --run: a setting of Spark's, as spark.jars.packages for its Kafka connector "
        "(default: the one of PySpark's version).",
        show_default=False,
    ),
]


def spark_settings(run: bool, arguments: Iterable[str] | None) -> dict[str, str]:
    """The settings by name.

    Raises:
        UsageError: one is no ``key=value``, or there is nothing that they could bear on.
    """
    settings = {}
    for argument in arguments or ():
        if not run:
            raise UsageError("--spark-conf goes with --run")
        key, equals, value = argument.partition("=")
        if not equals or not key.startswith("spark."):
            raise UsageError(f"--spark-conf {argument}: not spark.KEY=VALUE")
        settings[key] = value
    return settings


def starts_of_a_run(
    label: str, directory: str, kafka: KafkaOptions, settings: dict[str, str]
) -> PositionSet:
    """Where Spark begins when it is started on a copy of the seed.

    Raises:
        UsageError: there is no broker to read from, or no Spark to start.
        typer.Exit: Spark cannot begin there.
    """
    from migrate.report.text import visible
    from migrate.spark.resume_check import QueryFailed, SparkNotThere, run_first_batch

    if not kafka.given:
        raise UsageError("--run needs a broker: add --bootstrap-servers HOST:PORT")
    say("starting Spark on a copy of the seed")
    try:
        resume = run_first_batch(label, directory, kafka.config(), settings)
    except SparkNotThere as error:
        raise UsageError(str(error)) from error
    except QueryFailed as error:
        say(f"not verified: Spark's first batch failed: {visible(str(error))}")
        raise typer.Exit(Exit.NOT_VERIFIED) from error
    say(f"Spark {resume.spark} planned its first batch, and read {resume.records} records")
    return resume.started
