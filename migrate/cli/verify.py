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
            raise UsageError(
                f"--spark-conf {key if equals else ''}: the form spark.KEY=VALUE is expected"
            )
        settings[key] = value
    return settings


@partial(
    with_options,
    help={
        "to_bootstrap_servers": "With plan:FILE, the target's Kafka cluster if it differs from the "
        "job's cluster. With -b, the records of both clusters are compared."
    },
)
def verify(
    moved: str = typer.Argument(
        ...,
        metavar="CHK",
        help="The checkpoint that was moved, or plan:FILE, the applied plan. Pass the plan if "
        "options changed positions or topics.",
    ),
    target: str = typer.Argument(
        ..., metavar="TARGET", help=f"The written target: {calls.TARGETS}."
    ),
    *,
    arguments: SideArguments,
    allow_moved_on: bool = option(
        "Accept group offsets above the positions, a query whose log no longer shows its start "
        "offsets, and log start offsets above the positions. Use this only if you know that no "
        "record was lost.",
        flags=ALLOW_NEWER_COMMITS,
    ),
    one_cluster: bool = option("Assume that all sources of a topic read the same Kafka cluster."),
    wide: bool = WIDE,
    run: bool = option(
        "Run Spark on a copy of spark:DIR, with a sink that drops at most 1000 records, and "
        "compare its start offsets.",
        panel="Spark",
    ),
    spark_conf: Mapping[str, str] | None = option(
        "Set a Spark property. Requires --run or --state. [default: spark.jars.packages with the "
        "Kafka connector of PySpark's version]",
        metavar="KEY=VALUE",
        panel="Spark",
        read=spark_settings,
    ),
    state: str | None = option(
        "Compare this keyed state of CHK, key by key, with the state of a primed spark:DIR before "
        "its first records from Kafka.",
        metavar="OPERATOR/NAME",
        panel="Keyed state",
    ),
    expect: str | None = option(
        "Compute Spark's key and value with these SQL expressions over Flink's key, namespace, and "
        "value: one for each field, separated by commas. Requires --state. [default: Flink's "
        "fields in order]",
        metavar="EXPRESSIONS",
        panel="Keyed state",
    ),
    sample: int | None = option(
        "Compare only N of Flink's keys. Requires --state. [default: all keys of both]",
        metavar="N",
        panel="Keyed state",
    ),
    merge_keys: bool = option(
        "Merge Flink's entries whose keys become equal in Spark (nanoseconds, or -0.0 and 0.0), as "
        "prime does with merge_keys. Requires --state.",
        panel="Keyed state",
    ),
    ttl_ms: str | None = option(
        "Set the state's TTL in the job, such as 7d, 12h, or 500ms. Entries that had expired at "
        "the stop are omitted. With none, all entries are compared. Requires --state.",
        flags=("--ttl",),
        metavar="DURATION|none",
        panel="Keyed state",
    ),
    stopped_at_ms: str | None = option(
        "Set the time of the job's stop, in ISO 8601 or epoch milliseconds. Requires --ttl. "
        "[default: the write time of _metadata, or the state's last access if it is later]",
        flags=("--stopped-at",),
        metavar="TIME",
        panel="Keyed state",
    ),
) -> None:
    """Check after a move that the target started at the checkpoint's positions.

    The exit code is 0 if every partition is ok. A partition is ok if no records were lost or
    duplicated and, with -b, the log contains the next offset to read. Otherwise, the exit code is
    5. It is also 5 if no partition was checked, if the query's log has lost its first batches, if
    retention may have deleted records before the query's first batch, or if a plan differs from its
    checkpoint (if the checkpoint can still be read). With --state, it is 5 if a key is wrong,
    missing, or not in Flink's state. With --run, it is 5 if the first batch fails.

    Verify a group before its consumers start. The first commit of its consumers, or of a Flink job
    that still runs, overwrites the start offsets. A partition with such a commit above the position
    has the outcome "moved on".
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
        say(f"not verified; Spark's first batch failed: {printable(str(error))}")
        raise typer.Exit(Exit.NOT_VERIFIED) from error
    emit(verification_table(verification, sys.stdout, wide=wide), end="")
    if verification.state is not None:
        emit(f"state {printable(state or '')}: {verification.state}\n", end="")
    for line in outcome_lines(verification):
        log.info(line)
    log.info(summary_line(verification, allow_moved_on=allow_moved_on))
    if not (verification.verified or (allow_moved_on and verification.verified_or_moved_on)):
        raise typer.Exit(Exit.NOT_VERIFIED)
