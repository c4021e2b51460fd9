"""Keyed states go along: the user's command puts them into the checkpoint location.

Only the user's own query can be primed (``migrate.spark.prime``), so that this is a command of the
user's. What it has made is judged here, and nothing starts before: the seed is the plan's, each
batch that the priming ran is committed and ends there too, and there is state.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping

from decoder.storage import join
from migrate.cutover.context import CutOverContext, CutOverStopped
from migrate.inputs.spark_log import (
    batch_begun,
    kafka_seeds,
    logged_batches,
    newest_committed_batch,
    query_id,
)
from migrate.model.errors import Refused
from migrate.model.log import log, timed
from migrate.model.positions import TopicPartition
from migrate.model.wording import parse_duration
from migrate.storage.files import Files

_PAUSE = 0.25


class NotPrimed(CutOverStopped):
    """The command has failed: nothing starts from what it may have made."""


def prime(context: CutOverContext) -> str:
    """Run the command, or wait for one that an earlier run has left.

    Raises:
        NotPrimed: it failed.
        Refused: what it made is not the plan.
        CutOverStopped: it took too long; it runs on.
    """
    command, priming = context.spec.prime, context.priming
    directory, savepoint = context.file.checkpoint_dir, context.savepoint
    assert command is not None and directory is not None and savepoint is not None
    place = context.location()
    if priming.runs():
        log.info("the command that primes the location runs, as an earlier run has started it")
    elif place is not None and not place.names():  # else it has just ended
        environment = {
            "CUT_OVER_PLAN": str(context.record.plan_path),
            "CUT_OVER_SAVEPOINT": savepoint,
            "CUT_OVER_CHECKPOINT_DIR": directory,
        }
        try:
            number = priming.run(command, context.file.home, environment)
        except OSError as error:
            raise NotPrimed(f"prime: {error.strerror or error}") from error
        log.info(f"priming {directory}: process {number}; its output is in {priming.log}")
    _await_end(context)
    code = priming.ended()
    if code != 0:
        raise NotPrimed(
            f"the command that primes {directory} has ended with exit code {code}",
            details=tuple(priming.last_lines()),
        )
    plan = context.read_plan()
    assert plan is not None  # the step before has saved it
    seeds = {str(source.number): source.next_offsets for source in context.streams(plan)}
    problem = priming_problem(context.query_directory, context.files, seeds)
    if problem is not None:
        raise Refused([f"{directory}: {problem}; remove it, and run this again"])
    last = newest_committed_batch(context.query_directory, context.files)
    context.record.change(primed=last, query_id=query_id(context.query_directory, context.files))
    for state in context.spec.states:
        words = ["migrate", "verify", savepoint, context.file.target, "--state", state]
        log.info(f"next: {shlex.join(words)}")
    return f"primed {directory}: batch {last} holds state, and ends where the plan says"


def _await_end(context: CutOverContext) -> None:
    patience = context.spec.timeouts.prime
    deadline = time.monotonic() + parse_duration(patience)
    with timed(f"priming {context.file.checkpoint_dir}"):
        while context.priming.runs():
            if time.monotonic() > deadline:
                raise CutOverStopped(
                    f"the command that primes has not ended after {patience} (timeouts.prime); it "
                    "runs on: run this again to wait on",
                    details=tuple(context.priming.last_lines()),
                )
            time.sleep(_PAUSE)


def priming_problem(
    directory: str, files: Files, seeds: Mapping[str, Mapping[TopicPartition, int]]
) -> str | None:
    """Return why a checkpoint location is not the plan with a state, or None where it is.

    Args:
        directory: the checkpoint location, as ``files`` names it.
        files: where it lies.
        seeds: the start of each Kafka source, by its number, as the plan says.
    """
    last = newest_committed_batch(directory, files)
    if last is None:
        return "it has no committed batch, and so was not primed"
    if batch_begun(directory, files, last) is not None:
        return "a batch is begun there, so a query has run already"
    if not _holds_a_file(files, join(directory, "state")):
        return "it holds no state, and so was not primed"
    if kafka_seeds(directory, files) != seeds:
        return "its seed is not what the plan says"
    ends = dict(logged_batches(directory, files))
    others = [str(batch) for batch in ends if ends[batch] != seeds]
    if others or not ends:
        return f"batch {', '.join(others)} does not end where the plan says"
    return None


def _holds_a_file(files: Files, directory: str) -> bool:
    return any(
        not entry.is_directory or _holds_a_file(files, join(directory, entry.name))
        for entry in files.entries(directory) or ()
    )
