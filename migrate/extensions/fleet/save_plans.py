"""Save a plan for each job in an inventory, for ``to-spark`` or ``commit-group``."""

from __future__ import annotations

import csv
import hashlib
import io
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, cast

from decoder import DecodeError
from migrate.extensions.fleet.catalog import PLANS_DIRECTORY_NOT_EMPTY
from migrate.extensions.fleet.inventory import JobPlan, ScannedJob
from migrate.extensions.fleet.scan_run import Progress
from migrate.model.errors import MigrateError, Refused, UsageError
from migrate.model.log import log
from migrate.model.option_names import option
from migrate.model.positions import target_of
from migrate.model.wording import counted
from migrate.moves.load_inputs import read_input
from migrate.moves.options import (
    KafkaArguments,
    MoveArguments,
    Request,
    check_group_name,
    move_request,
)
from migrate.moves.pipeline import make_move
from migrate.planning import Plan, Verdict
from migrate.storage.new_file import write_new

if TYPE_CHECKING:
    from typing_extensions import Unpack


INDEX = "index.csv"
INDEX_COLUMNS = ("pointer", "job_id", "group", "plan", "warnings", "reasons")
# The placeholder for the job's label in a group name.
JOB_PLACEHOLDER = "{job}"

# This number does not depend on the number of cores, because planning mostly waits for stores and
# brokers.
_THREADS = 8
# For file names: the characters of a job's label to replace, the maximum length of the label, and
# the number of digits in the digest.
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_MAX_LABEL = 100
_DIGITS = 16


def check_can_save(directory: Path, group: str | None, *, broker: bool) -> None:
    """Check, before any work is done, that plans can be created and written.

    Raises:
        Refused: the directory is not empty.
        UsageError: the directory cannot be listed; ``group`` is set without a broker; or all jobs
            would have the same group.
    """
    check_group_name(group)
    if group is not None:
        if not broker:
            raise UsageError(
                f"plans for groups require a broker; add {option('bootstrap_servers', 'HOST:PORT')}"
            )
        if JOB_PLACEHOLDER not in group:
            raise UsageError(
                f"{option('group')} {group!r}: all jobs would share this group; add the "
                f"placeholder {JOB_PLACEHOLDER} (the ID of the job) to the name"
            )
    try:
        if any(directory.iterdir()):
            raise Refused(PLANS_DIRECTORY_NOT_EMPTY(directory=directory))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _not_writable(directory, error) from error


def _not_writable(directory: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{option('plans', str(directory))}: cannot write to this directory: {error.strerror}; "
        "choose a new directory"
    )


def save_plans(
    jobs: Sequence[ScannedJob],
    directory: Path,
    group: str | None,
    progress: Progress | None = None,
    **arguments: Unpack[KafkaArguments],
) -> dict[str, JobPlan]:
    """Plan each job, save its plan and an index of plans, and return the plans by job pointer.

    In these cases, no plan is saved, and the result contains the reasons:

    - The job has an obstacle.
    - A different job would use the same group. Jobs that currently cannot be moved also count.
    - The planning fails, for example because the broker does not answer.
    - The plan has refusals, or it requires a decision by a person.

    Args:
        jobs: the jobs in an inventory.
        directory: the directory for the plans.
        group: the name of the consumer groups, in which ``{job}`` stands for the job's label; None
            for Spark.
        progress: called after each job.
        arguments: see ``KafkaArguments``.

    Raises:
        UsageError: the directory cannot be created.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(directory, error) from error

    move = cast("MoveArguments", arguments)  # safe, because all keys are optional
    labels = Counter(job.label for job in jobs)

    def plan_job(job: ScannedJob) -> JobPlan:
        target = group.replace(JOB_PLACEHOLDER, job.label) if group is not None else None
        if not job.movable:
            return JobPlan(target, None, reasons=(job.error,) if job.error else job.why_not)
        if target is not None and labels[job.label] > 1:
            # Job IDs are not always distinct. In application mode, all digits of a job ID may be
            # zero.
            reason = (
                f"{labels[job.label]} jobs would share this group; plan each job with commit-group"
            )
            return JobPlan(target, None, reasons=(reason,))
        try:
            return _save_plan(job, move_request(target_of(target), move), directory)
        except DecodeError as error:  # readable during the scan, but not now
            return JobPlan(target, None, reasons=(str(error),))
        except (MigrateError, OSError) as error:
            return JobPlan(target, None, reasons=(str(error),), failure=error)
        except Exception as error:  # even a bug in migrate must not stop the other jobs
            reason = f"internal error: {type(error).__name__}: {error}"
            return JobPlan(target, None, reasons=(reason,), failure=error)

    plans: dict[str, JobPlan] = {}
    pool = ThreadPoolExecutor(_THREADS)
    try:
        for job, plan in zip(jobs, pool.map(plan_job, jobs), strict=True):
            plans[job.pointer] = plan
            if progress is not None:
                progress("planned", len(plans), len(jobs))
    finally:
        # Waiting for the threads could deadlock (see ``decoder.operator_state.fetch``).
        pool.shutdown(wait=False, cancel_futures=True)
    write_new(directory / INDEX, _index(jobs, plans))
    log.info(f"wrote {directory}; {INDEX} lists each job's plan, or the reason that it has none")
    return plans


def _save_plan(job: ScannedJob, request: Request, directory: Path) -> JobPlan:
    from migrate.planning.plan_file import plan_file
    from migrate.storage.json_models import write_file

    group = request.target.group
    plan = make_move(request, read_input(job.pointer, request)).plans[0]
    if reasons := tuple(map(str, plan.refusals)) or tuple(_undecided(plan)):
        return JobPlan(group, None, reasons=reasons)
    name = file_name(job)
    write_file(plan_file(plan), directory / name)
    return JobPlan(group, name, warnings=plan.warnings)


def _undecided(plan: Plan) -> Iterator[str]:
    """Yield problems that a person must assess; commands for a single job only warn about them."""
    suspects = [row for row in plan.partitions if row.verdict is Verdict.SUSPECT]
    if suspects:
        first = suspects[0]
        yield (
            f"suspect: {counted(len(suspects), 'partition')} may belong to a recreated topic (the "
            f"first is {first.name}, at {first.next_offset}); inspect the records there, and plan "
            "this job with its own command"
        )


def file_name(job: ScannedJob) -> str:
    """Return a unique file name for a job's plan, from the job, the checkpoint, and a digest.

    The job's label may be the name of a directory. Unsafe characters are replaced, so that the file
    cannot be outside the directory for the plans.
    """
    checkpoint = posixpath.basename(job.pointer)
    label = job.label if job.label == checkpoint else f"{job.label}-{checkpoint}"
    digest = hashlib.sha256(job.pointer.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{_UNSAFE.sub('_', label)[:_MAX_LABEL]}-{digest[:_DIGITS]}.json"


def _index(jobs: Iterable[ScannedJob], plans: dict[str, JobPlan]) -> str:
    """Return CSV with a row for each job: the file of its plan, or the reasons for no plan."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(INDEX_COLUMNS)
    for job in jobs:
        plan = plans[job.pointer]
        warnings, reasons = "; ".join(plan.warnings), "; ".join(plan.reasons)
        writer.writerow((job.pointer, job.job_id, plan.group, plan.file, warnings, reasons))
    return text.getvalue()
