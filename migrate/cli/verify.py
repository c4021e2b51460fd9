"""``migrate verify``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import partial
from types import EllipsisType

import typer

from migrate.cli.exit_codes import Exit
from migrate.cli.kafka_environment import with_environment
from migrate.cli.terminal import emit, say
from migrate.cli.typer_parameters import ALLOW_NEWER_COMMITS, WIDE, option, with_options
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.model.policies import parse_time
from migrate.model.wording import parse_duration, printable
from migrate.moves import verify as calls
from migrate.moves.options import SideArguments


def time_to_live(text: str | None) -> int | EllipsisType | None:
    """Return ``--ttl`` in milliseconds: None for ``none``, ``...`` if the option is missing.

    Raises:
        UsageError: the text is not a duration.
    """
    if text is None:
        return ...
    if text == "none":
        return None
    try:
        return round(parse_duration(text) * 1000)
    except ValueError as error:
        raise UsageError(f"--ttl {error}; or none") from error


def spark_settings(arguments: Iterable[str]) -> dict[str, str]:
    """Parse ``--spark-conf`` arguments.

    Raises:
        UsageError: an argument is not ``spark.KEY=VALUE``.
    """
    settings = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or not key.startswith("spark."):
            raise UsageError(f"--spark-conf {key if equals else ''}: not spark.KEY=VALUE")
        settings[key] = value
    return settings


@partial(
    with_options,
    help={
        "to_bootstrap_servers": "For plan:FILE: the Kafka cluster that the target reads, if it is "
        "another one. With -b, the records of both are compared."
    },
)
def verify(
    moved: str = typer.Argument(
        ...,
        metavar="CHK",
        help="The checkpoint that was moved; or plan:FILE, the plan that was applied, which is "
        "needed if options changed positions or topics.",
    ),
    target: str = typer.Argument(..., metavar="TARGET", help=f"What was written: {calls.TARGETS}."),
    *,
    arguments: SideArguments,
    allow_moved_on: bool = option(
        "Accept a group with offsets above the positions, a query whose log no longer shows where "
        "it started, and log starts above the positions: you know that no record was lost.",
        flags=ALLOW_NEWER_COMMITS,
    ),
    one_cluster: bool = option("Assume that all sources of a topic read the same Kafka cluster."),
    wide: bool = WIDE,
    run: bool = option(
        "For spark:DIR: start Spark on a copy of it, with a sink that drops at most 1000 "
        "records, and compare where Spark starts.",
        panel="Spark",
    ),
    spark_conf: Mapping[str, str] | None = option(
        "With --run or --state: a Spark setting. [default: spark.jars.packages names the "
        "Kafka connector of PySpark's version]",
        metavar="KEY=VALUE",
        panel="Spark",
        read=spark_settings,
    ),
    state: str | None = option(
        "For a primed spark:DIR: compare this keyed state of CHK, key by key, with "
        "Spark's state before its first records from Kafka.",
        metavar="OPERATOR/NAME",
        panel="Keyed state",
    ),
    expect: str | None = option(
        "With --state: a SQL expression for each field of Spark's key, then of its value, over "
        "Flink's key, namespace and value, separated by commas. [default: their fields in order]",
        metavar="EXPRESSIONS",
        panel="Keyed state",
    ),
    sample: int | None = option(
        "With --state: compare only N of Flink's keys. [default: all keys of both]",
        metavar="N",
        panel="Keyed state",
    ),
    merge_keys: bool = option(
        "With --state: merge entries of Flink whose keys become equal in Spark, as prime does "
        "with merge_keys: nanoseconds, and -0.0 and 0.0.",
        panel="Keyed state",
    ),
    ttl_ms: str | None = option(
        "With --state: the state's time to live in the job, as 7d, 12h or 500ms. Entries "
        "that had expired at the stop are left out; with none all are kept.",
        flags=("--ttl",),
        metavar="DURATION|none",
        panel="Keyed state",
    ),
    stopped_at_ms: str | None = option(
        "With --ttl: when the job was stopped, in ISO 8601 or epoch milliseconds. "
        "[default: when _metadata was written, or the state's last access if that is later]",
        flags=("--stopped-at",),
        metavar="TIME",
        panel="Keyed state",
    ),
) -> None:
    """Check after a move whether the target started where the checkpoint ended.

    Exits with 5 unless every partition is ok: no records were lost or repeated and, with -b, the
    log has the next offset to read. Also exits with 5 if no partition was checked, if the query's
    log has lost its first batches, if retention may have deleted records before the query's first
    batch, if a plan differs from its checkpoint (where that can still be
    read), with --state if a key is wrong, missing, or not in Flink's state, and with --run if the
    first batch fails.

    Verify a group before its consumers start. Their first commit overwrites the offsets that they
    started from, and so does a commit of a Flink job that still runs. A partition with such a
    commit above the position has "moved on".
    """
    from migrate.report.verification import outcome_lines, summary_line, verification_table
    from migrate.spark.resume_check import QueryFailed

    try:
        verification = calls.verify(
            moved,
            target,
            **with_environment(arguments),
            one_cluster=one_cluster,
            run=run,
            spark_conf=spark_conf,
            state=state,
            expect=expect,
            sample=sample,
            merge_keys=merge_keys,
            ttl_ms=time_to_live(ttl_ms),
            stopped_at_ms=parse_time(stopped_at_ms, "--stopped-at ")
            if stopped_at_ms is not None
            else None,
        )
    except QueryFailed as error:
        say(f"not verified: Spark's first batch failed: {printable(str(error))}")
        raise typer.Exit(Exit.NOT_VERIFIED) from error
    emit(verification_table(verification, sys.stdout, wide=wide), end="")
    if verification.state is not None:
        emit(f"state {printable(state or '')}: {verification.state}\n", end="")
    for line in outcome_lines(verification):
        log.info(line)
    log.info(summary_line(verification, allow_moved_on=allow_moved_on))
    if not (verification.verified or (allow_moved_on and verification.verified_or_moved_on)):
        raise typer.Exit(Exit.NOT_VERIFIED)
