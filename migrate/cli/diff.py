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
from migrate.verify import Verification, verify_group, verify_query

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
    bootstrap_servers: options.BootstrapServers = None,
    kafka_config: options.KafkaConfigFile = None,
    kafka_property: options.KafkaProperties = None,
) -> None:
    """Show two sets of positions side by side."""
    from migrate.diff import diff as compare
    from migrate.report.diff import diff_csv, diff_json, diff_table
    from migrate.report.text import visible

    ask = _asker(options.KafkaOptions(bootstrap_servers, kafka_config, kafka_property))
    sides = load_sides(parse_side(left), parse_side(right), ask, source, cluster)
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
    bootstrap_servers: options.BootstrapServers = None,
    kafka_config: options.KafkaConfigFile = None,
    kafka_property: options.KafkaProperties = None,
) -> None:
    """After the move: did the target start where the checkpoint ended?

    Exit 5 where records were lost or repeated, or where a start is missing or cannot be told. A
    group whose offsets somebody has moved on since is shown so, and is no failure by itself.
    """
    from migrate.report.text import verification_table

    ask = _asker(options.KafkaOptions(bootstrap_servers, kafka_config, kafka_property))
    expected, new_at_earliest = _expected(moved, source, cluster)
    verification = _verify(target, expected, ask, new_at_earliest)
    emit(verification_table(verification, sys.stdout), end="")
    if not verification.verified:
        raise typer.Exit(Exit.NOT_VERIFIED)


def _expected(moved: str, source: str | None, cluster: str | None) -> tuple[PositionSet, bool]:
    """Where the target should have started; whether what is new since is to start at earliest."""
    if moved.startswith(_PLAN):
        plan = read_plan(Path(moved.removeprefix(_PLAN)))
        return PositionSet(moved, plan.next_offsets), False
    extraction = extract(read_checkpoint(moved))
    chosen = choose_cluster(choose_sources(extraction, source), cluster)
    at_earliest = all(source.initial_discovery_finished for source in chosen)
    return source_positions(moved, chosen), at_earliest


def _verify(
    target: str, expected: PositionSet, ask: Ask | None, new_at_earliest: bool
) -> Verification:
    side = parse_side(target)
    match side:
        case SparkSide():
            from migrate.spark_progress import starting_positions

            started = starting_positions(side.label, side.directory)
            logs = ask_logs(ask, expected.topics)
            return verify_query(expected, started, logs, new_at_earliest=new_at_earliest)
        case GroupSide():
            from migrate.targets.consumer_group import METADATA_PREFIX

            group = ask_group(ask, side)
            logs = ask_logs(ask, expected.topics)
            return verify_group(
                expected,
                group,
                logs,
                new_at_earliest=new_at_earliest,
                metadata_prefix=METADATA_PREFIX,
            )
        case _:
            raise UsageError(f"{target!r}: spark:DIR or group:NAME")


def _asker(kafka: options.KafkaOptions) -> Ask | None:
    """Asks the broker that was named, if one was."""
    if not kafka.given:
        return None
    config = kafka.config()

    def ask(topics: Iterable[str], group: str | None) -> ClusterSnapshot:
        from migrate.broker import take_snapshot

        return take_snapshot(config, topics, group)

    return ask
