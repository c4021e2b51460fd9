"""``migrate follow``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from migrate.cli.kafka_environment import with_environment
from migrate.cli.typer_parameters import SERVERS, with_options
from migrate.moves import follow as calls
from migrate.moves.options import KafkaArguments


@partial(
    with_options,
    help={"bootstrap_servers": "The Kafka cluster that the query reads. " + SERVERS},
)
def follow(
    query: Annotated[
        str, typer.Argument(metavar="spark:DIR", help="The checkpoint location of the Spark query.")
    ],
    *,
    group: Annotated[
        str, typer.Option("--group", metavar="G", help="The consumer group to commit for.")
    ],
    kafka: KafkaArguments,
    every: Annotated[
        str,
        typer.Option(metavar="TIME", help="The time between two commits, as 500ms, 10s or 5m."),
    ] = "10s",
    once: Annotated[bool, typer.Option("--once", help="Commit once and exit, for cron.")] = False,
    metrics_file: Annotated[
        str | None,
        typer.Option(
            "--metrics-file",
            metavar="FILE",
            help="Write batch id, offsets and lag to this file after each commit, for the textfile "
            "collector of Prometheus's node exporter.",
        ),
    ] = None,
    allow_moved_on: Annotated[
        bool,
        typer.Option(
            "--allow-moved-on",
            help="With the first commit, also move the group back where it is beyond the query.",
        ),
    ] = False,
) -> None:
    """Commit a Spark query's progress as a consumer group's offsets, so that its lag shows.

    Runs until Ctrl-C and commits at once: it has no dry run. It commits the end of the newest batch
    in the query's commit log. It refuses a group that has members, and a group that is beyond the
    query.
    """
    calls.follow(
        query,
        group=group,
        every=every,
        once=once,
        metrics_file=metrics_file,
        allow_moved_on=allow_moved_on,
        **with_environment(kafka),
    )
