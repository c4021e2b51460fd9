"""``scan``: an inventory of a whole estate, and a saved plan for each job that can move."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from migrate.fleet import Candidate, discover
from migrate.fleet.candidates import Marked, mark_newest
from migrate.fleet.inventory import BulkPlan, Inventory, ScannedJob
from migrate.fleet.scan_run import Estate, Progress, Wanted, local_estate
from migrate.fleet.tables import Output, TableFormat, check_output
from migrate.model.cluster_snapshot import Question
from migrate.model.errors import InputError, Refused, UsageError
from migrate.model.log import log, timed
from migrate.model.policies import one_of
from migrate.moves.load_inputs import ask_broker
from migrate.moves.options import kafka
from migrate.spark.session import runs_on_spark, session
from migrate.storage.files import Files, check_no_credentials, is_uri, local_path
from migrate.storage.new_file import write_new

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.moves.options import AnyPath, KafkaArguments


def scan(
    *roots: AnyPath,
    latest_only: bool = False,
    output: AnyPath | None = None,
    format: TableFormat | Literal["parquet", "csv"] = TableFormat.PARQUET,
    plans: AnyPath | None = None,
    group: str | None = None,
    master: str | None = None,
    progress: Progress | None = None,
    **arguments: Unpack[KafkaArguments],
) -> Inventory:
    """Read every checkpoint below the roots, by processes of this machine, or on Spark.

    Spark is used where a master is named, or a session is active already; one that is started is
    stopped at the end. What cannot be read is told of, and ends nothing.

    Args:
        roots: directories, or globs with ``*``, ``?`` and ``[…]``; local paths or URLs.
        latest_only: read of each job its newest complete checkpoint alone; savepoints all.
        output: write the tables ``checkpoints``, ``positions``, ``operators`` and ``findings``
            below this directory; none may be there yet.
        format: what they are written as.
        plans: save a plan for each job that can move in this directory, which must be new or empty.
        group: plan for consumer groups of this name, in which ``{job}`` stands for the job's id;
            None plans for Spark.
        master: the Spark to run on, such as ``spark://host:7077``.
        progress: is told now and then how far it has come.
        arguments: see ``KafkaArguments``: a broker tells the lag.

    Raises:
        UsageError: arguments that do not go together, a package that is not installed, or no Spark
            starts.
        InputError: there is nothing where the roots are said to be.
        Refused: ``output`` or ``plans`` is there already.
        BrokerError: the broker did not answer, or denied what was asked.
        ServiceError: Spark failed as a whole, or processes of this machine were killed again and
            again.
    """
    broker = kafka(arguments)
    table_format = one_of(TableFormat, "--format", format)
    if plans is not None:
        from migrate.moves.scan_plans import check_plans

        check_plans(local_path(os.fspath(plans)), group, broker=broker.given)
    elif group is not None:
        raise UsageError("--group says for which groups --plans DIR is to plan: add that")
    if not roots:
        raise UsageError("name a directory to scan")
    if master is not None:
        check_no_credentials(master, UsageError, "--master")
    on_spark = runs_on_spark(master)
    wanted = Wanted(broker.given)
    if output is not None:
        wanted = Wanted(broker.given, _output(os.fspath(output), table_format, on_spark))
    with timed("looking for checkpoints"):
        candidates = discover([os.fspath(root) for root in roots], Files(), latest_only=latest_only)
    _check_found(candidates)
    marked = mark_newest(candidates)
    with ExitStack() as stack:
        if on_spark:
            estate = _on_spark(stack, master, marked, wanted, progress)
        else:
            estate = stack.enter_context(local_estate(marked, wanted, progress))
        with timed("scanning"):
            snapshot = None
            if broker.given:
                asked = Question(frozenset(estate.topics()))
                snapshot = ask_broker(broker.config(), asked)
            told = estate.finish(snapshot)
    if wanted.output is not None:
        log.info(f"wrote {wanted.output.directory}")
    made = None
    if plans is not None:
        made = _plan(told.jobs, local_path(os.fspath(plans)), group, progress, **arguments)
    return Inventory(tuple(told.jobs), told.checkpoints, told.unreadable, made)


def _on_spark(
    stack: ExitStack,
    master: str | None,
    marked: Sequence[Marked],
    wanted: Wanted,
    progress: Progress | None,
) -> Estate:
    with timed("starting Spark"):
        spark = stack.enter_context(session(master))
    from migrate.spark.scan_on_spark import spark_estate

    return stack.enter_context(spark_estate(spark, marked, wanted, progress))


def _output(output: str, table_format: TableFormat, on_spark: bool) -> Output:
    """Where to write, whatever directory Spark runs in; refused where something is."""
    check_no_credentials(output, UsageError, "--output")
    directory = output if is_uri(output) else os.path.abspath(output)  # noqa: PTH100  # links stay
    asked = Output(directory, table_format)
    if not on_spark:
        check_output(asked)
    files = Files()
    # What our storage does not know, Spark itself refuses to write over, at the end.
    known = files.from_uri(directory)
    if known is not None and files.list_directory(known):
        raise Refused([f"{output} is not empty; name a new directory for the tables"])
    return asked


def _check_found(candidates: Sequence[Candidate]) -> None:
    failures = [one.failure for one in candidates if one.failure is not None]
    if failures and len(failures) == len(candidates):
        raise InputError("; ".join(failure.message for failure in failures))
    if not candidates:
        log.warning("no checkpoint, and no savepoint, lies there")


def _plan(
    jobs: Sequence[ScannedJob],
    directory: Path,
    group: str | None,
    progress: Progress | None,
    **arguments: Unpack[KafkaArguments],
) -> dict[str, BulkPlan]:
    from migrate.moves.scan_plans import INDEX, index, plan_each

    plans: dict[str, BulkPlan] = {}
    for pointer, plan in plan_each(jobs, directory, group, **arguments):
        plans[pointer] = plan
        if progress is not None:
            progress("planned", len(plans), len(jobs))
    write_new(directory / INDEX, index(jobs, plans))
    log.info(f"wrote {directory}: {INDEX} tells the plan of each job, or why it has none")
    return plans
