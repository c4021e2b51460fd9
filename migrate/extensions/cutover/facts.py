"""Define the facts that ``observe`` reads and that a cut-over's decisions depend on.

A fact that cannot be read is also a value (``Unavailable``), so a test can construct any situation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from decoder import StopKind
from migrate.extensions.cutover.command import CommandStatus
from migrate.extensions.cutover.report import CutOverRecord
from migrate.extensions.cutover.spec import Spec
from migrate.inputs.flink.rest_api import FlinkJob, StopAttempt
from migrate.model.cluster_snapshot import GroupView
from migrate.model.message import Message
from migrate.model.positions import TopicPartition
from migrate.planning import Plan
from migrate.targets.group.rollback_file import RollbackFile, writers
from migrate.targets.source_options import SourceStart

Offsets = Mapping[TopicPartition, int]

# The facts that a step can need. "job" is the job to stop; it is read only until the record
# contains a savepoint. "ended job" is the same job, read after the run has waited for it to end.
Need = Literal["job", "ended job", "started again", "savepoint", "target", "other cut-overs"]

_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The error from reading a fact; raised only if a decision needs the fact."""

    error: Exception


def require(fact: _Fact | Unavailable | None) -> _Fact:
    if isinstance(fact, Unavailable):
        raise fact.error
    assert fact is not None  # if it were None, ``Step.needs`` would lack this fact
    return fact


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint of a job.

    Attributes:
        pointer: the path of the savepoint, as reported by Flink.
        stop: the kind of stop in its metadata; ``UNKNOWN`` before Flink 1.16.
        sha256: the checksum of its ``_metadata``, in hex.
        written_at: the time at which the savepoint was written, in epoch milliseconds, or None if
            unknown. For a copied savepoint, this may be the time of the copy.
        written_in: the directory to which Flink wrote the savepoint, or None if unknown. For a
            copied savepoint, ``pointer`` is in a different directory.
    """

    pointer: str
    checkpoint_id: int
    stop: StopKind
    sha256: str
    written_at: int | None = None
    written_in: str | None = None


@dataclass(frozen=True, slots=True)
class JobToStop:
    """The job that this cut-over stops.

    Attributes:
        flink_job: the job. Its state is ``UNKNOWN`` if Flink no longer lists the job, or if the
            JobManager has exited. If the JobManager has exited, ``trigger_id`` and ``folder`` are
            empty.
        trigger_id: the ID of the last requested stop. If no stop was requested, the last stop
            failed, or the job was restarted after the last stop, this is the ID for the next stop.
        attempt: the progress of the stop with this trigger ID; None if this stop was not requested.
        ended_with: the savepoint with which the job ended, as reported by Flink, or None.
        savepoints: the complete savepoints in ``folder`` with which the job might have stopped, by
            checkpoint ID; empty while the job runs.
        folder: the URI of the folder for this job's savepoints.
        elsewhere: for a finished job without ``ended_with``, the path of its newest savepoint as
            reported by Flink.
    """

    flink_job: FlinkJob
    trigger_id: str
    attempt: StopAttempt | None
    ended_with: Savepoint | None
    savepoints: Sequence[Savepoint]
    folder: str
    elsewhere: str | None = None


@dataclass(frozen=True, slots=True)
class LocationFacts:
    """The contents of a checkpoint location.

    Attributes:
        name: the directory, as specified by the user.
        is_empty: True if the directory is empty or missing.
        unfinished: True if the directory contains part of a seed, because a write or a removal was
            interrupted.
        seeds: the start offsets, by the number that identifies the Kafka source in the query.
        last_planned_batch: the newest batch in the offset log.
        has_logs: True if Spark has created the directories of its logs.
        priming_problem: the reason that the location does not contain the plan or the primed state;
            None if the location contains both, or was not checked.
    """

    name: str
    is_empty: bool = True
    unfinished: bool = False
    query_id: str | None = None
    seeds: Mapping[str, Offsets] | None = None
    last_committed_batch: int | None = None
    last_planned_batch: int | None = None
    has_logs: bool = False
    priming_problem: Message | None = None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A consumer group and its cluster.

    Attributes:
        changes: the changes to the group, newest first. They are read from the rollback files in
            the searched folders.
    """

    view: GroupView
    cluster_id: str | None
    changes: tuple[RollbackFile, ...] = ()

    def partitions_as_written(self, record_id: str, planned: Offsets) -> set[TopicPartition]:
        """Return the planned partitions whose current commit is from the cut-over with this ID.

        If no rollback file covers a partition (for example, because the file was deleted), only the
        offset is compared. The cut-over's commit then cannot be distinguished from a commit of the
        planned offset by another client.
        """
        known = self._known
        written = writers(self.changes, self.view)
        return {
            key
            for key in self._at(planned)
            if key not in known or (key in written and written[key].cut_over == record_id)
        }

    @property
    def _known(self) -> frozenset[TopicPartition]:
        """Return the partitions that a rollback file covers."""
        return frozenset[TopicPartition]().union(*(change.partitions for change in self.changes))

    def _at(self, planned: Offsets) -> set[TopicPartition]:
        return {key for key, offset in planned.items() if self.view.next_offset(*key) == offset}

    def written_by_moves(self) -> set[TopicPartition]:
        """Return the partitions whose current commits were written by a move."""
        return set(writers(self.changes, self.view))

    def held_without_writer(self, planned: Offsets) -> bool:
        """Return whether the group has all planned offsets, but no rollback file shows a writer."""
        holds_plan = bool(planned) and self._at(planned) == planned.keys()
        return holds_plan and not self._known & planned.keys()

    def assigned(self, partitions: Offsets) -> set[TopicPartition]:
        assigned = (member.assigned for member in self.view.members)
        return partitions.keys() & frozenset[TopicPartition]().union(*assigned)

    def written_by_others(self, record_id: str, planned: Offsets) -> list[str]:
        """Return one line for each planned partition whose current commit is from another move.

        A commit by another cut-over counts at any offset. A commit by ``commit-group`` counts only
        at the planned offset. Rollback files outside the searched folders are not read.
        """
        lines, at_plan = [], self._at(planned)
        written = writers(self.changes, self.view)
        for key in sorted(planned.keys() & written.keys()):
            change = written[key]
            if change.cut_over is None and key in at_plan & change.changed_partitions:
                lines.append(f"{key[0]}-{key[1]}: by commit-group")
            elif change.cut_over not in (None, record_id):
                lines.append(f"{key[0]}-{key[1]}: by cut-over {change.cut_over}")
        return lines


@dataclass(frozen=True, slots=True)
class OtherCutOver:
    """A different cut-over with a different target."""

    folder: str
    record: CutOverRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts for a decision.

    ``job``, ``started_again``, ``savepoint``, and ``target`` are None if the decision does not need
    them.

    Attributes:
        adopt, nothing_started: as in ``CutOverContext``.
        plan: the saved plan.
        plan_problem: the reason that the plan cannot be read, or empty.
        started_again: a job that has continued the stopped job's work. It is ``Unavailable`` if
            Flink did not answer, or if its answer does not rule out such a job.
        saw_end: True if this run has seen that the job reached FINISHED after the savepoint.
        start_process, prime_process: the commands' process groups, or None if unknown.
        other_cut_overs: the other cut-overs; empty if the decision does not need them.
    """

    record: CutOverRecord
    spec: Spec
    adopt: bool = False
    nothing_started: bool = False
    plan: Plan | None = None
    plan_problem: str = ""
    job: JobToStop | Unavailable | None = None
    started_again: FlinkJob | Unavailable | None = None
    saw_end: bool = False
    savepoint: Savepoint | Unavailable | None = None
    target: LocationFacts | GroupFacts | Unavailable | None = None
    start_status: CommandStatus = None
    prime_status: CommandStatus = None
    start_process: int | None = None
    prime_process: int | None = None
    other_cut_overs: Sequence[OtherCutOver] = ()

    @property
    def target_name(self) -> str:
        return self.spec.target.name

    @property
    def allows_restart(self) -> bool:
        """Return whether the spec allows a move even if the job may have been restarted."""
        return self.spec.move.allow_ran_on is True

    @property
    def seeds(self) -> Mapping[str, Offsets] | None:
        """The planned start offsets by stream number (see ``planned_streams``), or None."""
        if self.plan is None:
            return None
        sources = planned_streams(self.plan, self.record)
        return {str(source.number): source.next_offsets for source in sources}

    @property
    def savepoint_pointer(self) -> str | None:
        return self.spec.flink.savepoint or self.record.flink.savepoint


def planned_streams(plan: Plan, record: CutOverRecord) -> list[SourceStart]:
    """Return each Kafka source of the query with its planned start offsets."""
    streams = record.plan.streams if record.plan is not None else {}
    return [
        SourceStart(
            int(number),
            {key: offset for key, offset in plan.next_offsets.items() if key[0] in topics},
            plan.only_some_partitions,
        )
        for number, topics in (streams or {"0": sorted(plan.topics)}).items()
    ]
