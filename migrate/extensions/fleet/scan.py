"""``scan``: create an inventory of many jobs, and save plans for their moves."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

from migrate.extensions.fleet.candidates import mark_newest
from migrate.extensions.fleet.catalog import (
    NO_CHECKPOINT,
    ROOTS_UNREADABLE,
    TABLES_DIRECTORY_NOT_EMPTY,
)
from migrate.extensions.fleet.discovery import discover
from migrate.extensions.fleet.inventory import Inventory, add_possibly_superseded, add_ran_on
from migrate.extensions.fleet.scan_run import Progress, scan_locally
from migrate.extensions.fleet.write_tables import Output, TableFormat, check_output
from migrate.inputs.ask_broker import ask_broker
from migrate.model.cluster_snapshot import ClusterSnapshot, Question
from migrate.model.errors import InputError, Refused, UsageError
from migrate.model.log import Stage, log, timed
from migrate.model.option_names import option
from migrate.model.policies import parse_choice
from migrate.model.warning import warn
from migrate.moves.options import KafkaArguments, kafka
from migrate.spark.session import runs_on_spark, session
from migrate.storage.files import Files
from migrate.storage.new_file import check_separate
from migrate.storage.uris import AnyPath, check_no_credentials, is_uri, local_path, path_problem

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
    """Read every checkpoint under the roots, either on Spark or in processes on this machine.

    Spark is used if a master is set, if ``spark-submit`` has started this process, or if a session
    is already active. If this call starts a session, it stops the session at the end. If a job's
    newest checkpoint cannot be read, the inventory contains an error for the job.

    Args:
        roots: directories, ``_metadata`` files, or globs with ``*``, ``?``, and ``[…]``; each is a
            local path or a URL.
        latest_only: True to read all savepoints, but only the newest complete checkpoint of each
            job, or the newest one if none is complete.
        output: a new or empty directory for the ``checkpoints``, ``positions``, ``operators``, and
            ``findings`` tables.
        format: the file format of the tables.
        plans: a new or empty directory for plans; ``save_plans`` describes which jobs do not get a
            plan.
        group: the name of the consumer groups to plan for; ``{job}`` in the name is replaced with
            the job ID. None to plan for Spark.
        master: the Spark master URL, for example ``spark://host:7077``.
        progress: a function that is called repeatedly with the stage, the number done, and the
            total number.
        arguments: see ``KafkaArguments``; with a broker, the inventory has each job's lag.

    Raises:
        UsageError: arguments cannot be combined, a package is not installed, or Spark does not
            start.
        InputError: no checkpoint was found, and a root or a directory could not be read.
        Refused: ``output`` or ``plans`` is not empty.
        BrokerError: the broker did not answer, or it denied a request.
        ServiceError: Spark failed, or worker processes on this machine were killed repeatedly.
    """
    broker = kafka(arguments)
    table_format = parse_choice(TableFormat, "format", format)
    if plans is not None:
        from migrate.extensions.fleet.save_plans import check_can_save, save_plans

        plans = local_path(os.fspath(plans))
        check_separate({"output": output, "plans": plans})
        check_can_save(plans, group, broker=broker.is_given)
    elif group is not None:
        raise UsageError(f"{option('group')} requires {option('plans', 'DIR')}")
    if not roots:
        raise UsageError("no directory to scan; pass at least one")
    if master is not None:
        check_no_credentials(master, UsageError, "master")
    on_spark = runs_on_spark(master)
    tables = _output(os.fspath(output), table_format, on_spark) if output is not None else None
    with timed("searching for checkpoints"):
        candidates = discover([os.fspath(root) for root in roots], Files(), latest_only=latest_only)
    failures = [candidate.failure for candidate in candidates if candidate.failure is not None]
    if failures and len(failures) == len(candidates):
        raise InputError(ROOTS_UNREADABLE(failures="; ".join(f.message for f in failures)))
    if not candidates:
        warn(NO_CHECKPOINT())
    candidates = mark_newest(candidates)

    def ask(topics: set[str]) -> ClusterSnapshot:
        return ask_broker(broker.config(), Question(frozenset(topics), partial=True))

    ask_about = ask if broker.is_given else None
    if on_spark:
        with ExitStack() as stack:
            with timed("starting Spark"):
                spark = stack.enter_context(session(master))
            from migrate.extensions.fleet.scan_on_spark import scan_on_spark

            with timed("scanning") as stage:
                summary = scan_on_spark(
                    spark, candidates, tables, ask_about, _reported(stage, progress)
                )
    else:
        with timed("scanning") as stage:
            summary = scan_locally(candidates, tables, ask_about, _reported(stage, progress))
    if tables is not None:
        log.info(f"wrote {tables.directory}")
    jobs = add_possibly_superseded(add_ran_on(summary.jobs))
    saved = None
    if plans is not None:
        with timed("planning") as stage:
            saved = save_plans(jobs, plans, group, _reported(stage, progress), **arguments)
    return Inventory(tuple(jobs), summary.checkpoints, summary.unreadable, saved)


def _reported(stage: Stage, progress: Progress | None) -> Progress:
    """Return a function that reports progress to ``stage`` and, if not None, to ``progress``."""

    def report(done: str, count: int, total: int) -> None:
        stage.seen(f"{done} {count} of {total}")
        if progress is not None:
            progress(done, count, total)

    return report


def _output(output: str, table_format: TableFormat, on_spark: bool) -> Output:
    """Return the directory for the tables; refuse a directory that is not empty.

    Raises:
        Refused: the directory is not empty.
        UsageError: the tables cannot be written to this directory.
    """
    check_no_credentials(output, UsageError, "output")
    if problem := path_problem(output):
        raise UsageError(f"{option('output', output)}: {problem}")
    directory = output if is_uri(output) else os.path.abspath(output)  # noqa: PTH100  # keep links
    tables = Output(directory, table_format)
    if not on_spark:
        check_output(tables)
    files = Files()
    # ``migrate`` does not support every kind of URI; Spark checks the others when it writes.
    known = files.from_uri(directory)
    if known is not None and "://" not in known and files.is_file(known):
        raise UsageError(f"{option('output', output)}: a file, not a directory; choose a directory")
    if known is not None and files.list_directory(known):
        raise Refused(TABLES_DIRECTORY_NOT_EMPTY(output=output))
    return tables
