"""Keyed states go along: the user's command puts them into the checkpoint location.

Only the user's own query can be primed (``migrate.spark.prime``), so that this is a command of the
user's. What it has made is judged here, and nothing starts before: the seed is the plan's, each
batch that the priming ran is committed and ends there too, and there is state.
"""

from __future__ import annotations

import shlex
import time

from decoder.storage import join
from migrate.cutover.night import CutOverStopped, Night
from migrate.errors import Refused
from migrate.log import log, timed
from migrate.spark.progress import (
    batch_begun,
    kafka_seeds,
    logged_batches,
    newest_committed_batch,
)
from migrate.storage.files import Files
from migrate.wording import seconds_of

_PAUSE = 0.25
_NOT_OURS = "remove it, or name a new directory"


class NotPrimed(CutOverStopped):
    """The command has failed: nothing starts from what it may have made."""


def prime(night: Night) -> str:
    """Run the command, or wait for one that an earlier run has left.

    Raises:
        NotPrimed: it failed.
        Refused: what it made is not what was asked.
        CutOverStopped: it took too long; it runs on.
    """
    asked, priming, place = night.spec.prime, night.priming, night.file.checkpoint_dir
    savepoint = night.savepoint()
    assert asked is not None and place is not None and savepoint is not None
    if priming.runs():
        log.info("the command that primes the location runs, as an earlier run has started it")
    elif night.location is not None and not night.location.names():  # else it has just ended
        told = {
            "CUT_OVER_PLAN": str(night.record.plan_path),
            "CUT_OVER_SAVEPOINT": savepoint,
            "CUT_OVER_CHECKPOINT_DIR": place,
        }
        try:
            number = priming.run(asked, night.file.home, told)
        except OSError as error:
            raise NotPrimed(f"prime: {error.strerror or error}") from error
        log.info(f"priming {place}: process {number}; what it says is in {priming.log}")
    patience = night.spec.timeouts.prime
    deadline = time.monotonic() + seconds_of(patience)
    with timed(f"priming {place}"):
        while priming.runs():
            if time.monotonic() > deadline:
                raise CutOverStopped(
                    f"the command that primes has not ended after {patience} (timeouts.prime); it "
                    "runs on: run this again to wait on",
                    details=priming.last_lines(),
                )
            time.sleep(_PAUSE)
    code = priming.ended()
    if code != 0:
        raise NotPrimed(
            f"the command that primes {place} has ended: exit code {code}",
            details=priming.last_lines(),
        )
    last = check_primed(night)
    night.record.change(primed=last)
    for state in night.spec.states:
        words = ["migrate", "verify", savepoint, night.file.target, "--state", state]
        log.info(f"next: {shlex.join(words)}")
    return f"primed {place}: batch {last} holds state, and ends where the plan says"


def check_ended_well(night: Night) -> None:
    """Raises Refused where the command has ended otherwise, whatever it has made; where it was not
    run, the location was primed by hand."""
    place, code = night.file.checkpoint_dir, night.priming.ended()
    if code in (None, 0):
        return
    how = f"has ended: exit code {code}"
    if code == "unknown":
        how = "was run, and how it ended is not known"
    raise Refused([f"the command that primes {place} {how}: remove {place}, and run this again"])


def check_primed(night: Night) -> int:
    """Is what stands at the location the plan, with a state?

    Returns:
        The last batch that the priming has left.

    Raises:
        Refused: it is not.
    """
    place, plan = night.file.checkpoint_dir, night.plan
    assert plan is not None
    expected = {str(one.number): one.next_offsets for one in night.streams(plan)}
    last = newest_committed_batch(night.query, night.files)
    problem = None
    if last is None:
        problem = "it has no committed batch, and so was not primed"
    elif batch_begun(night.query, night.files, last) is not None:
        problem = "a batch is begun there: a query has run already"
    elif not _holds_a_file(night.files, join(night.query, "state")):
        problem = "it holds no state, and so was not primed"
    elif kafka_seeds(night.query, night.files) != expected:
        problem = "its seed is not what the plan says"
    else:
        ends = dict(logged_batches(night.query, night.files))
        others = [str(batch) for batch in ends if ends[batch] != expected]
        if others or not ends:
            problem = f"batch {', '.join(others)} does not end where the plan says"
    if problem is not None or last is None:
        # Once it was written for this spec, no other may be named.
        ours = night.record.model.moved_with is not None
        raise Refused(
            [f"{place}: {problem}; {'remove it, and run this again' if ours else _NOT_OURS}"]
        )
    return last


def _holds_a_file(files: Files, directory: str) -> bool:
    return any(
        not one.is_directory or _holds_a_file(files, join(directory, one.name))
        for one in files.entries(directory) or ()
    )
