"""``migrate diff`` and ``migrate verify``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from decoder import read_checkpoint
from migrate.choose import choose_cluster, choose_sources
from migrate.cli import options
from migrate.cli.errors import Exit, Refused, UsageError
from migrate.cli.resume import Run, SparkConf, spark_settings, starts_of_a_run
from migrate.cli.streams import emit, say
from migrate.extract import extract
from migrate.plan_file import read_plan
from migrate.position_set import Logs, PositionSet, log_of, resolve, shown, source_positions
from migrate.sides import (
    Ask,
    GroupSide,
    SparkSide,
    ask_group,
    ask_logs,
    load_sides,
    parse_side,
)
from migrate.snapshot import ClusterSnapshot
from migrate.spark_progress import starting_positions
from migrate.storage import Files
from migrate.verification import Verification, verify_group, verify_query

_PLAN = "plan:"


class Format(str, Enum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    GROUPS_CSV = "groups-csv"
    HTML = "html"


_SIDE = (
    "CHK, group:NAME, spark:DIR, json:FILE (startingOffsets), csv:FILE (topic,partition,offset as "
    "kafka-consumer-groups has it), broker:earliest or broker:latest."
)


def diff(
    left: Annotated[str, typer.Argument(metavar="LEFT", help=_SIDE)],
    right: Annotated[str, typer.Argument(metavar="RIGHT", help="The same.")],
    format: Annotated[
        Format,
        typer.Option(
            help="groups-csv: RIGHT as topic,partition,offset for kafka-consumer-groups "
            "--reset-offsets --from-file; html: one page that asks for nothing."
        ),
    ] = Format.TABLE,
    all_: Annotated[
        bool, typer.Option("--all", help="Every partition, however many there are.")
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 when the sides differ.")
    ] = False,
    source: options.SourceName = None,
    cluster: options.Cluster = None,
    allow_external_files: options.AllowExternalFiles = False,
    bootstrap_servers: options.BootstrapServers = None,
    kafka_config: options.KafkaConfigFile = None,
    kafka_property: options.KafkaProperties = None,
) -> None:
    """Show two sets of positions side by side."""
    from migrate.comparison import diff as compare
    from migrate.report.diff import diff_csv, diff_json, diff_table
    from migrate.report.text import visible

    ask = _asker(options.KafkaOptions(bootstrap_servers, kafka_config, kafka_property))
    sides = load_sides(
        parse_side(left),
        parse_side(right),
        ask,
        source,
        cluster,
        allow_external_files=allow_external_files,
    )
    for warning in sides.warnings:
        say(f"warning: {visible(warning)}")
    found = compare(sides.left, sides.right, sides.logs)
    match format:
        case Format.TABLE:
            emit(diff_table(found, sys.stdout, every_partition=all_), end="")
        case Format.JSON:
            emit(diff_json(found))
        case Format.CSV:
            emit(diff_csv(found), end="")
        case Format.GROUPS_CSV:
            emit(_groups_csv(sides.right, sides.logs), end="")
        case Format.HTML:
            from migrate.report.html import diff_page

            emit(diff_page(found, datetime.now(timezone.utc)), end="")
    if exit_code and found.differs:
        raise typer.Exit(Exit.DIFFERENT)


def _groups_csv(side: PositionSet, logs: Logs) -> str:
    from migrate.position_files import group_csv

    next_offsets: dict[tuple[str, int], int] = {}
    for (topic, partition), start in side.starts.items():
        next_offset = resolve(start, log_of(logs, topic, partition))
        if next_offset is None:
            what = f"{side.label}: {topic}-{partition} is {shown(start)}"
            raise Refused([f"{what}, which is no offset to write"])
        next_offsets[topic, partition] = next_offset
    return group_csv(next_offsets)


def verify(
    moved: Annotated[
        str,
        typer.Argument(
            metavar="CHK",
            help="What was moved: a checkpoint, or plan:FILE where flags or --topic-map made it "
            "something else.",
        ),
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="spark:DIR or group:NAME.")],
    source: options.SourceName = None,
    cluster: options.Cluster = None,
    allow_external_files: options.AllowExternalFiles = False,
    allow_moved_on: Annotated[
        bool,
        typer.Option(
            "--allow-moved-on",
            help="Count as verified a group that others have committed for since, above the "
            "positions: its consumers have started, say, and you know where.",
        ),
    ] = False,
    run: Run = False,
    spark_conf: SparkConf = None,
    bootstrap_servers: options.BootstrapServers = None,
    kafka_config: options.KafkaConfigFile = None,
    kafka_property: options.KafkaProperties = None,
) -> None:
    """After the move: did the target start where the checkpoint ended?

    Exit 5 where records were lost or repeated, or where a start is missing or cannot be told.
    A group is verified before its consumers start: whoever commits overwrites where they started,
    and so does a Flink job that still runs. Such a partition has "moved on".
    """
    from migrate.report.verification import moved_on_lines, verification_table

    settings = spark_settings(run, spark_conf)
    kafka = options.KafkaOptions(bootstrap_servers, kafka_config, kafka_property)
    ask = _asker(kafka)
    expected, new_at_earliest = _expected(moved, source, cluster, allow_external_files)
    side = parse_side(target)
    match side:
        case SparkSide():
            logs = ask_logs(ask, expected.topics)
            if run:
                started = starts_of_a_run(side.label, side.directory, kafka, settings)
            else:
                started = starting_positions(side.label, side.directory)
            verification = verify_query(expected, started, logs, new_at_earliest=new_at_earliest)
        case GroupSide() if not run:
            verification = _verify_group(side, expected, ask, new_at_earliest)
        case GroupSide():
            raise UsageError("--run starts a Spark query: it goes with spark:DIR")
        case _:
            raise UsageError(f"{target!r}: spark:DIR or group:NAME")
    emit(verification_table(verification, sys.stdout), end="")
    for line in moved_on_lines(verification):
        say(line)
    if not (verification.verified or (allow_moved_on and verification.verified_or_moved_on)):
        raise typer.Exit(Exit.NOT_VERIFIED)


def _expected(
    moved: str, source: str | None, cluster: str | None, allow_external_files: bool
) -> tuple[PositionSet, bool]:
    """Where the target should have started; whether what is new since is to start at earliest."""
    if moved.startswith(_PLAN):
        plan = read_plan(Path(moved.removeprefix(_PLAN)))
        return PositionSet(moved, plan.next_offsets), False
    extraction = extract(read_checkpoint(moved, Files(), allow_external_files=allow_external_files))
    chosen = choose_cluster(choose_sources(extraction, source), cluster)
    at_earliest = all(source.absent_start_at_earliest for source in chosen)
    return source_positions(moved, chosen), at_earliest


def _verify_group(
    side: GroupSide, expected: PositionSet, ask: Ask | None, new_at_earliest: bool
) -> Verification:
    from migrate.targets.consumer_group import METADATA_PREFIX

    group = ask_group(ask, side)
    return verify_group(
        expected,
        group,
        ask_logs(ask, expected.topics),
        new_at_earliest=new_at_earliest,
        metadata_prefix=METADATA_PREFIX,
    )


def _asker(kafka: options.KafkaOptions) -> Ask | None:
    """Asks the broker that was named, if one was."""
    if not kafka.given:
        return None
    config = kafka.config()

    def ask(topics: Iterable[str], group: str | None) -> ClusterSnapshot:
        from migrate.broker import take_snapshot

        return take_snapshot(config, topics, group)

    return ask
