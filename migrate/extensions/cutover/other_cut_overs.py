"""Determine from the facts whether another cut-over has moved, or will move, the same savepoint.

Each cut-over locks only its own record. Others are found by their records in the folders next to
this record.
"""

from __future__ import annotations

from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.facts import Facts, JobToStop, Offsets, OtherCutOver
from migrate.extensions.cutover.report import CutOverRecord
from migrate.inputs.flink.restarted_job import is_same_savepoint
from migrate.model.errors import Refused


def refuse_savepoint_of_other(facts: Facts, planned: Offsets | None = None) -> None:
    """Refuse a savepoint that another cut-over has moved or will move, unless ``adopt`` is set.

    Args:
        facts: the facts, with "other cut-overs".
        planned: the start offsets of this cut-over, or None if they are unknown. If they are
            unknown and the spec selects some of the partitions, nothing is refused yet.
    """
    other = other_cut_over(facts, planned)
    if facts.adopt or other is None:
        return
    record = other.record
    names = {"name": record.name, "folder": other.folder, "target": record.target}
    if record.moved_with is None:
        raise Refused(catalog.SAVEPOINT_OF_OTHER_CUT_OVER(**names))
    savepoint = record.flink.savepoint
    raise Refused(catalog.SAVEPOINT_ALREADY_MOVED(savepoint=savepoint, **names))


def other_cut_over(facts: Facts, planned: Offsets | None = None) -> OtherCutOver | None:
    """Return another cut-over that takes precedence over this one, or None.

    ``planned`` is as in ``refuse_savepoint_of_other``.
    """
    if planned is None and facts.plan is not None:
        planned = facts.plan.next_offsets
    if planned is None and facts.spec.selects_partitions:
        return None
    for other in facts.other_cut_overs:
        if _uses_savepoint(facts, other.record) and _takes_precedence(facts.record, other.record):
            rows = [row for row in other.record.partitions if row.planned is not None]
            keys = {(row.topic, row.partition) for row in rows}
            if planned is None or not keys or not keys.isdisjoint(planned):
                return other
    return None


def _uses_savepoint(facts: Facts, other: CutOverRecord) -> bool:
    """Return whether the other cut-over uses the savepoint or has requested the stop of the job."""
    pointer, job = facts.savepoint_pointer, facts.job
    if pointer is None and isinstance(job, JobToStop):
        if job.ended_with is not None:
            pointer = job.ended_with.pointer
        if other.flink.savepoint is None:
            is_stopping = job.attempt is not None or job.flink_job.has_ended
            names = (job.flink_job.job_id, job.flink_job.name, facts.record.flink.host)
            return is_stopping and names == (
                other.flink.job_id,
                other.flink.job_name,
                other.flink.host,
            )
    return is_same_savepoint(other.flink.savepoint, pointer)


def _takes_precedence(own: CutOverRecord, other: CutOverRecord) -> bool:
    """Return whether the other cut-over may continue instead of this one.

    If both have written their targets, the last one has taken over the move. If neither has, the
    first one may continue.
    """
    if own.moved_with is not None:
        return own.written is not None and (other.written or "") > own.written
    if other.moved_with is not None or (own.flink.job_id, own.flink.savepoint) == (None, None):
        return True
    return [run.began_at for run in other.runs[:1]] < [run.began_at for run in own.runs[:1]]
