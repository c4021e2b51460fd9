"""The facts that a cut-over is decided on: plain values, read by ``observe``, judged by ``decide``.

A fact that could not be read is a value too (``Unavailable``), so that every state of the world
can be written down in a test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

from decoder import StopKind
from migrate.inputs.flink.rest_api import FlinkJob, StopAttempt
from migrate.model.cluster_snapshot import GroupView
from migrate.model.positions import TopicPartition
from migrate.planning import Plan
from migrate.report.cut_over import CutOverRecord
from migrate.targets.group.commit_marks import METADATA_PREFIX, cut_over_of

Offsets = Mapping[TopicPartition, int]


class Need(Enum):
    """A fact that a step needs."""

    JOB = auto()  # as long as its savepoint is not known
    ENDED_JOB = auto()  # waits for its end
    STARTED_AGAIN = auto()
    SAVEPOINT = auto()
    TARGET = auto()


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A fact that could not be read.

    Attributes:
        error: why; it is raised where nothing can be decided without the fact.
    """

    error: Exception


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint of a job.

    Attributes:
        pointer: its path, as Flink names it.
        number: the number of the checkpoint.
        stop: the kind of stop that its metadata names; unknown before Flink 1.16.
        sha256: the checksum of its ``_metadata``, in hex.
        written_at: milliseconds of the epoch, or None where the store does not say.
    """

    pointer: str
    number: int
    stop: StopKind
    sha256: str
    written_at: int | None = None


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A job that Flink's JobManager lists.

    Attributes:
        restored_from: the checkpoint or savepoint that it was started from, or None.
    """

    job: FlinkJob
    restored_from: str | None = None


@dataclass(frozen=True, slots=True)
class StoppedJob:
    """The job that this cut-over stops.

    Attributes:
        job: the job; its state is ``UNKNOWN`` where Flink has forgotten it.
        trigger_id: the id of the newest stop, or of the next one where the newest failed.
        attempt: how far that stop is, or None where it was not asked for.
        ended_with: the savepoint that Flink says the job ended with, or None.
        left: the whole savepoints of stops in the job's folder, the newest last.
        folder: where the savepoints of this job's stops are written, a URI.
    """

    job: FlinkJob
    trigger_id: str
    attempt: StopAttempt | None
    ended_with: Savepoint | None
    left: Sequence[Savepoint]
    folder: str

    @property
    def is_known(self) -> bool:
        """Whether Flink still lists the job."""
        return self.job.state != "UNKNOWN"


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """A command of the user's.

    Attributes:
        runs: whether it, or anything that it has started, is alive.
        ended: its exit code, ``unknown`` where nobody saw it end, or None where it was never run.
    """

    runs: bool
    ended: int | Literal["unknown"] | None


@dataclass(frozen=True, slots=True)
class LocationFacts:
    """A checkpoint location.

    Attributes:
        name: the directory, as the user names it.
        is_empty: whether nothing is there.
        unfinished: whether it holds a seed that was not written, or not removed, to its end.
        query_id: the id in its ``metadata``, or None.
        seeds: the start of each Kafka source, by the number of the source.
        committed: the newest committed batch, or None.
        planned: the newest batch in the offset log, or None.
        has_logs: whether Spark has made the directories of its logs.
        priming_problem: why it does not hold the plan with a state, or None where it does; None
            also where no state is primed.
    """

    name: str
    is_empty: bool = True
    unfinished: bool = False
    query_id: str | None = None
    seeds: Mapping[str, Offsets] | None = None
    committed: int | None = None
    planned: int | None = None
    has_logs: bool = False
    priming_problem: str | None = None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A consumer group, and the cluster that it is on."""

    view: GroupView
    cluster_id: str | None

    def marked(self, record_id: str, partitions: Offsets) -> set[TopicPartition]:
        """Return the partitions whose newest commit is by the cut-over with this id."""
        return {
            place
            for place in partitions
            if place in self.view.committed
            and cut_over_of(self.view.committed[place].metadata) == record_id
        }

    def assigned(self, partitions: Offsets) -> set[TopicPartition]:
        """Return the partitions that members of the group have been assigned."""
        return {
            place
            for member in self.view.members
            for place in member.assigned
            if place in partitions
        }

    def written_by_others(self, record_id: str, planned: Offsets) -> list[str]:
        """Return which other move wrote offsets of these partitions, a line for each partition.

        A commit by another cut-over counts at any offset, one by ``commit-group`` at the planned
        offset. Commits by consumers and by Flink do not count.
        """
        lines = []
        for (topic, partition), next_offset in sorted(planned.items()):
            held = self.view.committed.get((topic, partition))
            if held is None or not held.metadata.startswith(METADATA_PREFIX):
                continue
            other = cut_over_of(held.metadata)
            if other is None and held.next_offset == next_offset:
                lines.append(f"{topic}-{partition}: by commit-group")
            elif other not in (None, record_id):
                lines.append(f"{topic}-{partition}: by cut-over {other}")
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known when a step is decided; None is a fact that the step does not need.

    Attributes:
        record: the record of the cut-over.
        stopped_by_others: whether the spec names a savepoint, and so no job to stop.
        named_savepoint: the savepoint that the spec names, or None.
        has_start: whether the spec names a command that starts the query.
        has_states: whether keyed states go along.
        flink_is_asked: whether the spec names a JobManager.
        adopt: whether the user takes over a target that this record has not written.
        nothing_started: whether the user says that nothing has started from the target.
        plan: the saved plan, or None.
        plan_problem: why the saved plan cannot be read; empty where it can, or is not there.
        seeds: the start of each Kafka source of the query, as the plan says.
        job: the job that is stopped.
        started_again: a job that has taken up the savepoint's work since, None where none has.
        savepoint: the savepoint that the plan is made from.
        target: the checkpoint location or the consumer group.
        target_name: ``spark:DIR`` or ``group:NAME``.
        starting, priming: the commands ``start`` and ``prime``.
    """

    record: CutOverRecord
    stopped_by_others: bool
    named_savepoint: str | None = None
    has_start: bool = False
    has_states: bool = False
    flink_is_asked: bool = False
    adopt: bool = False
    nothing_started: bool = False
    plan: Plan | None = None
    plan_problem: str = ""
    seeds: Mapping[str, Offsets] | None = None
    job: StoppedJob | Unavailable | None = None
    started_again: FlinkJob | Unavailable | None = None
    savepoint: Savepoint | Unavailable | None = None
    target: LocationFacts | GroupFacts | Unavailable | None = None
    target_name: str = ""
    starting: CommandFacts
    priming: CommandFacts

    @property
    def is_group(self) -> bool:
        return self.target_name.startswith("group:")

    @property
    def savepoint_pointer(self) -> str | None:
        """The savepoint that everything goes on from, or None as long as there is none."""
        return self.named_savepoint or self.record.flink.savepoint
