"""Check, before a move, that the reader of the positions (a job or a query) has stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from migrate.inputs.flink.checkpoint_progress import (
    age_of,
    checkpoint_signs,
    find_checkpoint_watch,
    is_missing_savepoint,
)
from migrate.inputs.flink.job_state import STOPPED_TEXT, JobState, Judgment, judge
from migrate.inputs.watch import Watch, wait_for_sign
from migrate.model.catalog import (
    JOB_HAS_LATER_OUTPUT,
    JOB_HAS_LATER_OUTPUT_AFTER_PLAN,
    JOB_HAS_NEWER_OFFSETS,
    JOB_KEPT_RUNNING,
    JOB_MAY_HAVE_RESTARTED,
    JOB_MAY_HAVE_RESTARTED_AFTER_PLAN,
    JOB_OVERWRITES_GROUP,
    JOB_RUNNING,
    JOB_RUNNING_AFTER_PLAN,
    OTHER_JOB_MAY_OVERWRITE_GROUP,
    READER_KEPT_RUNNING,
    SAVEPOINT_AGED,
    SAVEPOINT_AGED_AFTER_PLAN,
    SAVEPOINT_AGED_NOT_IN_FLINK,
    SAVEPOINT_AGED_NOT_IN_FLINK_AFTER_PLAN,
    SAVEPOINT_NOT_AT_PATH,
)
from migrate.model.errors import Refused
from migrate.model.finding import Code, Finding
from migrate.model.log import log
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.positions import Origin
from migrate.model.warning import warn
from migrate.model.warning_catalog import (
    JOB_MAY_RUN,
    JOB_MAY_RUN_AND_OVERWRITE,
    JOB_MAY_RUN_ELSEWHERE,
    JOB_RAN_ON,
    OLD_SAVEPOINT,
    OLD_SAVEPOINT_NOT_IN_FLINK,
    OLD_SAVEPOINT_OF_PLAN,
    OLD_SAVEPOINT_UNCHECKED,
    QUERY_MAY_RUN,
)

# If the job stopped longer ago than this, a move requires evidence that it was not restarted.
_DAY = 86_400  # seconds


def job_refusals(
    judgment: Judgment,
    *,
    allow_ran_on: bool,
    source_group: str | None = None,
    is_group: bool = False,
    saved: bool = False,
) -> list[Message]:
    """Return a refusal if the job is running, has later output, or may have been restarted.

    Args:
        judgment: the result of ``judge``.
        allow_ran_on: True to allow these cases with a warning, except for a running job that would
            overwrite a group's offsets.
        source_group: the consumer group whose committed offsets equal the positions, if any. It
            shows that the job was not restarted, because a restarted job would have committed
            newer offsets.
        is_group: True if the target is a group. A move to a group is refused while any job is
            running.
        saved: True if the positions come from a saved plan, which has its own options.
    """
    facts = {"evidence": judgment.text, "how_to_stop": judgment.way_to_savepoint}
    if judgment.is_beyond and (not allow_ran_on or (judgment.runs and is_group)):
        if judgment.state is JobState.RUNNING:
            running = JOB_RUNNING_AFTER_PLAN if saved else JOB_RUNNING
            if_different = "" if judgment.is_same_job else _if_different()
            return [
                (JOB_OVERWRITES_GROUP if is_group else running)(**facts, if_different=if_different)
            ]
        later = JOB_HAS_LATER_OUTPUT_AFTER_PLAN if saved else JOB_HAS_LATER_OUTPUT
        return [(JOB_HAS_NEWER_OFFSETS if is_group else later)(**facts)]
    # After the refusals above, because the remedy here is to move without asking Flink.
    if is_group and judgment.other_running:
        other = {"other_running": judgment.other_running, "evidence": judgment.text}
        return [OTHER_JOB_MAY_OVERWRITE_GROUP(**other)]
    if judgment.is_beyond:
        warn(JOB_RAN_ON(evidence=judgment.text))
    if judgment.is_doubtful and not allow_ran_on and source_group is None:
        return [(JOB_MAY_HAVE_RESTARTED_AFTER_PLAN if saved else JOB_MAY_HAVE_RESTARTED)(**facts)]
    return []


def _if_different() -> str:
    return (
        f"; if the running job is a different job, omit {option('flink_rest')} (to check the group "
        f"of the job that you move instead, add {option('source_group')})"
    )


def check_job(
    origin: Origin,
    flink_rest: str | None,
    *,
    allow_ran_on: bool,
    source_group: str | None,
    saved: bool = False,
) -> Judgment:
    """Judge the job before a move to Spark or to a savepoint, and log the judgment.

    If the positions come from a Spark query, warn that the query may still be running, because
    only a newer batch would show this.

    Args:
        origin: the origin of the positions.
        flink_rest: as in ``judge``.
        allow_ran_on: as in ``job_refusals``.
        source_group: the consumer group whose committed offsets equal the positions, if any.
        saved: as in ``job_refusals``.

    Raises:
        Refused: as in ``job_refusals``.
        FlinkRestError, UsageError: as in ``judge``.
    """
    if origin.kind == "batch":
        warn(QUERY_MAY_RUN())
    judgment = judge(origin, flink_rest if origin.is_of_flink else None)
    if refusals := job_refusals(
        judgment, allow_ran_on=allow_ran_on, source_group=source_group, saved=saved
    ):
        raise Refused(refusals)
    if origin.stopped and not judgment.is_beyond:
        report_stop(judgment, origin, source_group, saved=saved)
    elif judgment.state is JobState.ENDED and not judgment.is_beyond:
        log.info(judgment.text)
    elif judgment.is_doubtful:
        warn(JOB_MAY_RUN(evidence=judgment.text))
    return judgment


def report_stop(
    judgment: Judgment, origin: Origin, source_group: str | None, *, saved: bool = False
) -> None:
    """Log that the job was stopped with the savepoint, and whether a restart was ruled out."""
    if days := days_since_stop(origin, judgment, source_group):
        if judgment.asked_flink:
            old = OLD_SAVEPOINT_UNCHECKED if saved else OLD_SAVEPOINT_NOT_IN_FLINK
        else:
            old = OLD_SAVEPOINT_OF_PLAN if saved else OLD_SAVEPOINT
        warn(old(days=days))
    if judgment.state is JobState.STOPPED and judgment.asked_flink:
        log.info(f"ok: {judgment.text}")
    elif source_group is not None:
        log.info(f"ok: {STOPPED_TEXT}, and group {source_group} has no newer commits")
    elif judgment.state is JobState.UNKNOWN:
        warn(JOB_MAY_RUN(evidence=judgment.text))
    else:
        log.info(
            f"{judgment.text}; use {option('flink_rest', 'URL')} to check whether the job was "
            "restarted since the stop"
        )


def without_committed_output(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that still apply to a job that has FINISHED with this savepoint.

    A note is logged for each finding about output that the stop has committed.
    """
    kept = list[Finding]()
    for finding in findings:
        if not finding.void_if_finished:
            kept.append(finding)
        elif finding.code is Code.PENDING_TRANSACTIONS:
            log.info(
                f"note: {finding.operator} has committed its pending output in this savepoint, "
                f"because the job has FINISHED [{finding.code}]"
            )
    return tuple(kept)


def report_for_group(
    judgment: Judgment, origin: Origin, watch: Watch, source_group: str | None
) -> None:
    """Log why no job will overwrite a group's offsets, or warn that the reader may be running."""
    if origin.kind == "batch":
        warn(QUERY_MAY_RUN())
        log.info(
            "Spark does not commit to a group, so these offsets do not change until you rerun "
            "this command"
        )
    elif origin.stopped and not judgment.is_beyond:
        report_stop(judgment, origin, source_group)
    elif judgment.state is JobState.ENDED:
        log.info(judgment.text)
    elif judgment.state is JobState.UNKNOWN:
        proof = "stop the job with a savepoint"
        if judgment.asked_flink:
            warn(JOB_MAY_RUN(evidence=judgment.text))
        else:
            warn(JOB_MAY_RUN_AND_OVERWRITE(evidence=judgment.text))
            proof = f"add {option('flink_rest', 'URL')}, or {proof}"
        wait = watch.text
        if watch.wait is not None and watch.interval is not None:
            wait = (
                f"with {option('execute', True)}, `migrate` first waits {watch.wait:.0f} s for a "
                "sign of a running job (a new checkpoint or commit)"
            )
        log.info(f"{wait}; for proof, {proof}")


def days_since_stop(origin: Origin, judgment: Judgment, source_group: str | None) -> int:
    """Return the number of days since the stop, if nothing shows whether the job was restarted.

    Otherwise, return 0.
    """
    is_shown = judgment.state is JobState.STOPPED and judgment.asked_flink
    if not origin.stopped or judgment.is_beyond or is_shown or source_group is not None:
        return 0
    age = age_of(origin)
    return int(age / _DAY) if age is not None else 0


def refuse_old_savepoint(
    origin: Origin, judgment: Judgment, source_group: str | None, *, saved: bool = False
) -> None:
    """Refuse a savepoint that is over a day old if nothing shows whether the job was restarted."""
    if days := days_since_stop(origin, judgment, source_group):
        if judgment.asked_flink:
            aged = SAVEPOINT_AGED_NOT_IN_FLINK_AFTER_PLAN if saved else SAVEPOINT_AGED_NOT_IN_FLINK
        else:
            aged = SAVEPOINT_AGED_AFTER_PLAN if saved else SAVEPOINT_AGED
        raise Refused(aged(days=days))


def check_before_write(
    origin: Origin,
    judgment: Judgment,
    *,
    allow_ran_on: bool,
    source_group: str | None,
    refuses_old: bool = True,
    saved: bool = False,
    flink_rest: str | None = None,
    signs: Callable[[], Sequence[str]] | None = None,
) -> None:
    """Check the reader just before a checkpoint location, a savepoint, or a plan is written.

    - For a retained checkpoint without evidence that the job has stopped, wait for a newer
      checkpoint, as in a move to a group.
    - For a batch of a Spark query, wait for a newer batch in the same way.
    - For a savepoint that is more than a day old, require evidence that the job was not restarted.

    Args:
        origin: the origin of the positions.
        judgment: the result of ``judge``.
        allow_ran_on: True to skip all of these checks.
        source_group: the consumer group whose committed offsets equal the positions, if any.
        refuses_old: True to refuse an old savepoint; False if ``report_stop`` has already warned
            about it.
        saved: as in ``job_refusals``.
        flink_rest: as in ``judge``; Flink is queried again after a wait.
        signs: as in ``wait_for_sign``; by default, only the job's checkpoints or the query's
            batches are watched.

    Raises:
        Refused: the job has completed a newer checkpoint, or it is running after the wait; the
            query has started a newer batch; or the savepoint is old, and nothing shows whether the
            job was restarted.
        InputError, MissingExtra, OSError: the query's checkpoint location cannot be read.
        FlinkRestError: as in ``judge``.
    """
    if allow_ran_on or origin.kind == "positions":
        return
    if refuses_old:
        refuse_old_savepoint(origin, judgment, source_group, saved=saved)
    if judgment.state is not JobState.UNKNOWN or origin.stopped:
        return
    watch = find_watch(origin)

    def refuse_newer() -> Sequence[str]:
        if refusals := continued_refusals(origin, reader_signs(origin)):
            raise Refused(refusals)
        return ()

    is_quiet = wait_for_sign(watch, signs or refuse_newer)
    if origin.kind == "batch":
        log.info(watch.text)
        return
    if watch.wait is not None and flink_rest is not None:
        # The job may have been started during the wait.
        again = job_refusals(judge(origin, flink_rest), allow_ran_on=False, saved=saved)
        if again:
            raise Refused(again)
    if is_quiet:
        warn(JOB_MAY_RUN_ELSEWHERE(evidence=judgment.text))
    else:
        warn(JOB_MAY_RUN(evidence=f"{judgment.text}; {watch.text}"))


# -- signs of a running reader, and how long to wait for them --------------------------------------


def continued_refusals(origin: Origin, signs: Iterable[str]) -> list[Message]:
    """Return the refusals of a move from a reader that has, or may have, kept running.

    Args:
        origin: the origin of the positions. A savepoint that is no longer at its path is refused,
            because the user may have moved it, or Flink may have deleted it for a restored job.
        signs: the signs that the reader has kept running.
    """
    stop = origin.how_to_stop
    if origin.kind != "checkpoint":
        return [READER_KEPT_RUNNING(reader=origin.reader, sign=sign) for sign in signs]
    refusals = [JOB_KEPT_RUNNING(sign=sign, how_to_stop=stop) for sign in signs]
    if is_missing_savepoint(origin):
        refusals.append(
            SAVEPOINT_NOT_AT_PATH(savepoint=origin.title, path=origin.pointer, how_to_stop=stop)
        )
    return refusals


def find_watch(origin: Origin) -> Watch:
    """Return how long to wait for a newer checkpoint or batch.

    Return ``NO_WATCH`` if no newer checkpoint or batch can follow the origin, or if the job was
    stopped.
    """
    if origin.kind == "batch":
        from migrate.inputs.spark_progress import find_query_watch

        return find_query_watch(origin)
    return find_checkpoint_watch(origin)


def reader_signs(origin: Origin) -> Iterator[str]:
    """Yield signs that the reader of the positions has continued, one line each.

    Raises:
        InputError, MissingExtra, OSError: the checkpoint location of a query cannot be read.
    """
    if origin.kind == "batch":
        from migrate.inputs.spark_progress import batch_signs

        return batch_signs(origin)
    return checkpoint_signs(origin)
