"""``migrate follow``."""

from __future__ import annotations

from functools import partial

import typer

from migrate.cli.kafka_environment import with_environment
from migrate.cli.typer_parameters import ALLOW_NEWER_COMMITS, SERVERS, option, with_options
from migrate.moves import follow as follow_module
from migrate.moves.options import KafkaArguments


@partial(
    with_options, help={"bootstrap_servers": "The Kafka cluster that the query reads. " + SERVERS}
)
def follow(
    query: str = typer.Argument(
        ..., metavar="spark:DIR", help="The checkpoint location of the Spark query."
    ),
    *,
    group: str = typer.Option(..., "--group", metavar="G", help="Commit for this consumer group."),
    kafka: KafkaArguments,
    every: str = typer.Option(
        "10s", metavar="TIME", help="Set the interval between commits, such as 500ms, 10s, or 5m."
    ),
    once: bool = option("Commit once and exit, for example in a cron job."),
    metrics_file: str | None = option(
        "Write the batch id, offsets, and lag to this file after each commit, for the textfile "
        "collector of Prometheus's node exporter.",
        metavar="FILE",
    ),
    allow_moved_on: bool = option(
        "With the first commit, rewind group offsets that are higher than the query's offsets.",
        flags=ALLOW_NEWER_COMMITS,
    ),
) -> None:
    """Commit a Spark query's progress as a consumer group's offsets, to monitor its lag.

    This command runs until Ctrl-C. It has no dry run, so it commits immediately after the start.
    Each commit contains the end offsets of the newest batch in the query's commit log. The command
    refuses active groups, and groups with higher offsets than the query.
    """
    follow_module.follow(
        query,
        group=group,
        every=every,
        once=once,
        metrics_file=metrics_file,
        allow_moved_on=allow_moved_on,
        **with_environment(kafka),
    )
