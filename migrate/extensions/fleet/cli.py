"""``migrate scan``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import typer

from migrate.cli import next_step, terminal
from migrate.cli.exit_codes import exit_of
from migrate.cli.kafka_environment import with_environment
from migrate.cli.terminal import emit_pieces, output_after_writing
from migrate.cli.typer_parameters import SERVERS, WIDE, option, with_options
from migrate.extensions.fleet import scan as scanning
from migrate.extensions.fleet.inventory import Inventory
from migrate.extensions.fleet.scan_run import Progress
from migrate.extensions.fleet.write_tables import TableFormat
from migrate.model.log import log
from migrate.moves.options import KafkaArguments


@partial(
    with_options,
    help={
        "bootstrap_servers": "Connect to the jobs' Kafka cluster, and compute the lag. " + SERVERS
    },
)
def scan(
    roots: list[str] = typer.Argument(
        ...,
        metavar="ROOT",
        help="Directories that contain checkpoints at any depth, or quoted globs. They can be "
        "local, or at s3://, gs://, abfs://, hdfs://, or webhdfs://.",
    ),
    *,
    latest_only: bool = option(
        "For each job, read only the newest complete checkpoint, but read all savepoints."
    ),
    output: str | None = option(
        "Write tables of checkpoints, positions, operators, and findings to DIR, a new directory.",
        metavar="DIR",
    ),
    format: TableFormat = option("The file format of --output."),
    plans: str | None = option(
        "In the new directory DIR, save a plan for each job that has no obstacle to a move. Pass "
        "these plans to to-spark --plan. DIR/index.csv lists the plans.",
        metavar="DIR",
    ),
    group: str | None = option(
        "With --plans, save plans to use with commit-group --plan instead of to-spark --plan. "
        "{job} in the group name G is replaced with the job's ID.",
        metavar="G",
    ),
    wide: bool = WIDE,
    master: str | None = option(
        "Read on Spark, with a master such as spark://HOST:PORT, yarn, or k8s://…. Under "
        "spark-submit, omit this option. [default: read in this process]",
        metavar="URL",
    ),
    kafka: KafkaArguments,
) -> None:
    """List the jobs under a directory: newest checkpoint, lag, and obstacles to a move.

    If a job's newest checkpoint cannot be read, the job's line shows the reason. In the tables of
    --output, each checkpoint that cannot be read has one row, which contains the error.
    """
    from migrate.extensions.fleet.report import inventory_table, summary_lines

    with _progress() as progress:
        inventory = scanning.scan(
            *roots,
            latest_only=latest_only,
            output=output,
            format=format,
            plans=plans,
            group=group,
            master=master,
            progress=progress,
            **with_environment(kafka),
        )
    wrote = " and ".join(map(str, filter(None, (output, plans))))
    if inventory.jobs:
        with output_after_writing(f"{wrote}: written completely" if wrote else ""):
            emit_pieces(inventory_table(inventory, sys.stdout, wide=wide))
    for line in summary_lines(inventory):
        log.info(line)
    if step := _next(inventory, roots, latest_only, plans, kafka):
        log.info(step)
    if inventory.failures:  # a bug has the highest exit code, so a bug is never hidden
        raise max(inventory.failures, key=exit_of)


def _next(
    inventory: Inventory,
    roots: Sequence[str],
    latest_only: bool,
    plans: str | None,
    kafka: KafkaArguments,
) -> str | None:
    """Return a line with the next command; None if no job can move or --plans saved no plan."""
    if inventory.plans is None:
        if not inventory.totals.movable:
            return None
        brokers = () if kafka else ("-b", "HOST:PORT")
        arguments = (*roots, *(["--latest-only"] if latest_only else []), "--plans", "plans")
        make = next_step.command("scan", *arguments, *brokers, kafka=kafka)
        return f"next, to save a plan for each job without an obstacle: {make}"
    saved = [plan for plan in inventory.plans.values() if plan.file is not None]
    if not saved or plans is None:
        return None
    first = next_step.command("show", Path(plans, str(saved[0].file)))
    check = "applying it checks that the job has stopped"
    return f"next, review each plan ({check}), starting with the first: {first}"


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """Show a progress bar on stderr, if stderr is a terminal and --quiet is not set."""
    quiet = terminal.lowest_level > terminal.NORMAL
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with terminal.busy.not_drawn(), Bars(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("searching for checkpoints", total=None)
        yield lambda what, done, of: bars.update(bar, description=what, completed=done, total=of)
