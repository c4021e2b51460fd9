"""``migrate follow``."""

from __future__ import annotations

from typing import Annotated

import typer

from migrate.cli.typer_parameters import with_environment, with_options
from migrate.moves import follow as calls
from migrate.moves.options import KafkaArguments


@with_options
def follow(
    query: Annotated[
        str, typer.Argument(metavar="spark:DIR", help="The query's checkpoint location.")
    ],
    *,
    group: Annotated[
        str, typer.Option("--group", metavar="G", help="The consumer group to commit for.")
    ],
    kafka: KafkaArguments,
    every: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long from one look to the next: 500ms, 10s, 5m."),
    ] = "10s",
    once: Annotated[bool, typer.Option("--once", help="Look once and end: for cron.")] = False,
    metrics_file: Annotated[
        str | None,
        typer.Option(
            "--metrics-file",
            metavar="FILE",
            help="Write batch, offsets and lag for Prometheus (the node exporter's textfile "
            "collector), anew at each look.",
        ),
    ] = None,
    allow_moved_on: Annotated[
        bool,
        typer.Option(
            "--allow-moved-on",
            help="At the first look, take the group back where it is beyond the query.",
        ),
    ] = False,
) -> None:
    """Keep a consumer group at what a Spark query has committed, so that its lag shows.

    Spark commits to no group. This commits where the newest batch ended that is in the query's
    commit log: never a batch that is not committed, never back, and nothing for a group that has
    members. Ctrl-C ends it at any moment: the group stands after that batch, or the one before.
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
