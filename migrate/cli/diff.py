"""``migrate diff``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from enum import Enum
from functools import partial

import typer

from migrate.cli.exit_codes import Exit
from migrate.cli.kafka_environment import with_environment
from migrate.cli.terminal import emit
from migrate.cli.typer_parameters import SERVERS, SIDE, WIDE, option, with_options
from migrate.moves import diff as calls
from migrate.moves.declare_options import declared_option
from migrate.moves.options import DiffArguments, SideArguments


class DiffFormat(str, Enum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    GROUPS_CSV = "groups-csv"
    FLINK_SQL = "flink-sql"
    HTML = "html"


@partial(
    with_options,
    help={
        "bootstrap_servers": "The Kafka cluster of both sides. " + SERVERS,
        "to_bootstrap_servers": (
            "Connect to the Kafka cluster of RIGHT, if it is not the cluster of LEFT. migrate "
            "finds each position of LEFT in this cluster by the surrounding records."
        ),
    },
)
def diff(
    left: str = typer.Argument(..., metavar="LEFT", help=f"A side: {SIDE}"),
    right: str = typer.Argument(..., metavar="RIGHT", help="The other side, in the same form."),
    *,
    format: DiffFormat = option(
        "Select the output format: table, json, csv, or html (a single-file page). Two other "
        "formats print only RIGHT's positions: groups-csv (input for kafka-consumer-groups "
        "--from-file) and flink-sql (options for a Flink SQL table).",
        metavar="F",
    ),
    all_: bool = option("Show all partitions, regardless of their number.", flags=("--all",)),
    wide: bool = WIDE,
    exit_code: bool = option("Exit with 1 if the sides differ or contain no partition."),
    topic_map: Mapping[str, str] | None = declared_option(DiffArguments, "topic_map"),
    arguments: SideArguments,
) -> None:
    """Show two sets of positions side by side."""
    from migrate.report.diff import diff_csv, diff_json, diff_table
    from migrate.report.right_side import export_right_side

    difference = calls.diff(left, right, topic_map=topic_map, **with_environment(arguments))
    match format:
        case DiffFormat.TABLE:
            table = diff_table(difference, sys.stdout, every_partition=all_, wide=wide)
            emit(table, end="")
        case DiffFormat.JSON:
            emit(diff_json(difference))
        case DiffFormat.CSV:
            emit(diff_csv(difference), end="")
        case DiffFormat.GROUPS_CSV | DiffFormat.FLINK_SQL:
            emit(export_right_side(difference, format.value), end="")
        case DiffFormat.HTML:
            from migrate.report.diff_page import diff_page

            emit(diff_page(difference, datetime.now(timezone.utc)), end="")
    if exit_code and difference.differs:
        raise typer.Exit(Exit.DIFFERENT)
