"""``migrate diff``."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from enum import Enum
from functools import partial
from typing import Annotated

import typer

from migrate.cli.exit_codes import Exit
from migrate.cli.kafka_environment import with_environment
from migrate.cli.terminal import emit
from migrate.cli.typer_parameters import SERVERS, SIDE, Wide, with_options
from migrate.model.policies import parse_topic_map
from migrate.moves import diff as calls
from migrate.moves.options import OTHER_CLUSTER, SideArguments


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
        "to_bootstrap_servers": "The Kafka cluster of RIGHT, if it is another one. LEFT's "
        "positions are looked for there by the records around them.",
    },
)
def diff(
    left: Annotated[str, typer.Argument(metavar="LEFT", help=f"A side: {SIDE}")],
    right: Annotated[str, typer.Argument(metavar="RIGHT", help="A side, too.")],
    *,
    format: Annotated[
        DiffFormat,
        typer.Option(
            metavar="F",
            help="table, json, csv; html: a page in one file. groups-csv and flink-sql print the "
            "positions of RIGHT alone: for kafka-consumer-groups --from-file, and as the options "
            "of a table in Flink SQL.",
        ),
    ] = DiffFormat.TABLE,
    all_: Annotated[
        bool, typer.Option("--all", help="Show every partition, however many there are.")
    ] = False,
    wide: Wide = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if the sides differ.")
    ] = False,
    topic_map: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW",
            help="With --to-kafka-config or --to-bootstrap-servers: LEFT's topic OLD has the name "
            "NEW in the cluster of RIGHT. Repeatable.",
            rich_help_panel=OTHER_CLUSTER,
        ),
    ] = None,
    arguments: SideArguments,
) -> None:
    """Show two sets of positions side by side."""
    from migrate.report.diff import diff_csv, diff_json, diff_table
    from migrate.report.right_side import export_right_side

    difference = calls.diff(
        left,
        right,
        topic_map=parse_topic_map(topic_map or ()),
        **with_environment(arguments),
    )
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
