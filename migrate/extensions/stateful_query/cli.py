"""``migrate prime``, ``migrate copy-query``, and ``migrate verify-state``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import EllipsisType

import typer

import migrate
from migrate.cli import next_step
from migrate.cli.kafka_environment import with_environment, with_move_environment
from migrate.cli.terminal import emit, output_after_writing
from migrate.cli.typer_parameters import (
    ALLOW_NEWER_COMMITS,
    SIDE,
    WIDE,
    Checkpoint,
    option,
    with_options,
)
from migrate.cli.verify import report_verification
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.model.policies import parse_time
from migrate.model.positions import SPARK
from migrate.model.wording import parse_duration
from migrate.moves.options import MoveArguments, SideArguments, move_request, spark_settings
from migrate.storage.new_file import check_new_file, check_separate, write_new
from migrate.storage.uris import local_path
from migrate.targets.source_options import IsolationLevel, kafka_connector


class CopyFormat(str, Enum):
    JSON = "json"
    OPTIONS = "options"


@with_options
def prime(
    chk: Checkpoint,
    *,
    state: list[str] = typer.Option(
        ...,
        "--state",
        metavar="OPERATOR/NAME",
        help="Start the printed Python query with this keyed state. Repeatable.",
    ),
    checkpoint_dir: str | None = option(
        "Set the checkpoint location of the printed query: a new local directory or a URL. This "
        "command does not write to DIR. The query primes DIR when you run it.",
        metavar="DIR",
    ),
    query_file: str | None = option(
        "Write the query to this new file. stdout then contains the startingOffsets.",
        metavar="FILE",
    ),
    sink: str | None = option(
        "Check the query's output files or table. The move is refused if this sink would skip "
        "the first batches.",
        metavar="DIR",
    ),
    sink_writer: str | None = option(
        "The query's name in the sink: for Hudi, the checkpoint identifier, and for Delta, the "
        "txnAppId.",
        metavar="NAME",
    ),
    spark_version: str | None = option(
        "Print the query for this Spark version, such as 4.0.0. [default: the version of "
        "the installed PySpark]",
        metavar="V",
    ),
    isolation_level: IsolationLevel | None = option(
        "Set the Kafka isolation level in the printed query: read_committed or read_uncommitted.",
        metavar="LEVEL",
    ),
    arguments: MoveArguments,
) -> None:
    """Print a Spark query that starts with Flink's keyed states.

    Refuses positions that would lose or duplicate records (exit 4; nothing is written).
    """
    if spark_version is not None:
        kafka_connector(spark_version)
    new_file = local_path(query_file) if query_file is not None else None
    if new_file is not None:
        check_separate({"checkpoint_dir": checkpoint_dir, "query_file": new_file})
        check_new_file("query_file", new_file)
    request = move_request(SPARK, with_move_environment(arguments))
    from migrate.extensions.stateful_query.prime_query import prime_query  # not needed for help

    start = prime_query(chk, request, state, checkpoint_dir, sink, sink_writer, isolation_level)
    code = start.code("python", spark_version, str(new_file) if new_file else None)
    if new_file is not None:
        write_new(new_file, f"{code}\n")
        log.info(f"wrote {query_file}")
    with output_after_writing(f"the query {query_file} is complete" if new_file else ""):
        emit(code if new_file is None else start.starting_offsets)
    log.info(
        "next: add your query to this program, and start the program; the program "
        "primes the checkpoint location once"
    )


@with_options
def copy_query(
    old: str = typer.Argument(
        ...,
        metavar="spark:OLD",
        help="The checkpoint location of the query. migrate reads this location but does not "
        "change it.",
    ),
    *,
    from_side: str = typer.Option(
        ..., "--from", metavar="SIDE", help=f"The positions of the copy: {SIDE}"
    ),
    checkpoint_dir: str = typer.Option(
        ..., "--checkpoint-dir", metavar="NEW", help="Write the copy to this new local directory."
    ),
    sink: str | None = option(
        "Check the query's output files or table. The copy is refused if this sink would skip the "
        "copied query's batches.",
        metavar="DIR",
    ),
    format: CopyFormat = option(
        "Select the output format. json prints startingOffsets, and options prints lines of "
        "name=value."
    ),
    isolation_level: IsolationLevel | None = option(
        "Set the Kafka isolation level in the printed options: read_committed or read_uncommitted.",
        metavar="LEVEL",
    ),
    arguments: MoveArguments,
) -> None:
    """Copy a stateful query, with different positions.

    Refuses positions that would lose or duplicate records (exit 4; nothing is written).
    """
    if isolation_level is not None and format is not CopyFormat.OPTIONS:
        raise UsageError("--isolation-level requires --format options")
    arguments = with_move_environment(arguments)
    request = move_request(SPARK, arguments)
    from migrate.extensions.stateful_query import copy_query as copies  # not needed for help

    start = copies.copy_query(from_side, request, old, checkpoint_dir, sink, isolation_level)
    with output_after_writing(f"the checkpoint location {checkpoint_dir} is complete"):
        emit(start.code("options") if format is CopyFormat.OPTIONS else start.starting_offsets)
    compare = next_step.comparison(from_side, f"spark:{checkpoint_dir}", arguments)
    log.info(f"next, to show the start positions: {compare}")


def time_to_live(text: str | None) -> int | EllipsisType | None:
    """Return the value of ``--ttl`` in milliseconds.

    Return None if the value is ``none``, and ``...`` if the option is missing.

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
        raise UsageError(f"--ttl {error}; to keep every entry, pass none") from error


@with_options
def verify_state(
    chk: Checkpoint,
    target: str = typer.Argument(
        ..., metavar="spark:DIR", help="The checkpoint location of the primed query."
    ),
    *,
    state: str = typer.Option(
        ...,
        "--state",
        metavar="OPERATOR/NAME",
        help=(
            "For each key, compare this keyed state in CHK with the state that Spark was primed "
            "with."
        ),
    ),
    expect: str | None = option(
        "Compute the expected Spark state from Flink's key, namespace, and value. Pass SQL "
        "expressions, separated by commas: first for the fields of Spark's key, and then for the "
        "fields of Spark's value. [default: Flink's fields in order]",
        metavar="EXPRESSIONS",
    ),
    sample: int | None = option(
        "Compare only N keys from Flink. [default: all keys on both sides]",
        metavar="N",
        panel="Keys",
    ),
    merge_keys: bool = option(
        "Merge entries whose keys differ in Flink but are equal in Spark, such as -0.0 and 0.0, "
        "or times that differ only in nanoseconds. Pass this if the query was primed with "
        "merge_keys.",
        panel="Keys",
    ),
    ttl_ms: str | None = option(
        "Pass the TTL that the job sets for the state, such as 7d, 12h, or 500ms. Entries that "
        "expired before the stop are omitted. Pass none to keep all entries.",
        flags=("--ttl",),
        metavar="DURATION|none",
    ),
    stopped_at_ms: str | None = option(
        "With --ttl, pass the time at which the job was stopped, in ISO 8601 or epoch "
        "milliseconds. [default: the time at which _metadata was written, or the state's last "
        "access if that is later]",
        flags=("--stopped-at",),
        metavar="TIME",
    ),
    allow_moved_on: bool = option(
        "Accept a query even if its log no longer shows its start offsets, or if log start "
        "offsets are above the positions. Use this only if you know that no record was lost.",
        flags=ALLOW_NEWER_COMMITS,
        panel="The start",
    ),
    one_cluster: bool = option(
        "Assume that all sources for a topic read from the same Kafka cluster.", panel="The start"
    ),
    spark_conf: Mapping[str, str] | None = option(
        "Set a Spark property. Repeatable.", metavar="KEY=VALUE", panel="Spark", read=spark_settings
    ),
    wide: bool = WIDE,
    arguments: SideArguments,
) -> None:
    """Compare Flink's keyed state with the state of a primed query.

    This command also verifies the query's start, as `migrate verify` does. The exit code is 5 if
    the start is not verified, if a key has a different value, or if only Flink or only Spark
    contains a key.
    """
    stopped_at = None
    if stopped_at_ms is not None:
        stopped_at = parse_time(stopped_at_ms, "--stopped-at ")
    verification = migrate.verify(
        chk,
        target,
        state=state,
        expect=expect,
        sample=sample,
        merge_keys=merge_keys,
        ttl_ms=time_to_live(ttl_ms),
        stopped_at_ms=stopped_at,
        one_cluster=one_cluster,
        spark_conf=spark_conf,
        **with_environment(arguments),
    )
    report_verification(verification, allow_moved_on=allow_moved_on, wide=wide, state=state)
