"""What the steps of a cut-over read: Flink, the savepoint, the seed, the group, Spark's log.

Nothing here changes anything. It is read anew whenever it is asked for: a step that was done by an
earlier run, or by hand, is seen as done.
"""

from __future__ import annotations

import hashlib
import posixpath
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from decoder import DecodeError, StopKind
from decoder.checkpoint import read_metadata
from decoder.storage import join
from migrate.commands.shared_options import kafka
from migrate.cutover.command import Command
from migrate.cutover.record import Record
from migrate.cutover.spec import SpecFile
from migrate.errors import MigrateError, Refused
from migrate.flink.rest_api import FlinkJob, JobManager
from migrate.planning import Plan
from migrate.planning.plan_file import read_plan
from migrate.spark.locations import BadLocation, LocalDirectory, RemoteDirectory, location
from migrate.spark.progress import has_run, newest_committed_batch
from migrate.spark.source_options import SparkSource
from migrate.storage.files import Files, path_of

if TYPE_CHECKING:
    from migrate.cluster_snapshot import GroupView
    from migrate.group.rollback_file import EarlierRun


# How much longer than its web.refresh-interval Flink is given to tell what is so.
_GRACE_SECONDS = 2.0
_PAUSE = 0.25


class CutOverStopped(MigrateError):
    """A step failed once the job was being stopped: what was done stays done.

    Attributes:
        reasons: why, a line each.
        details: what else to show; it may hold anything, and is not kept.
    """

    def __init__(self, *reasons: str, details: Sequence[str] = ()) -> None:
        super().__init__("; ".join(reasons))
        self.reasons, self.details = reasons, details


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint of a stop.

    Attributes:
        pointer: as Flink names it.
        number: the checkpoint's.
        stop: what its metadata tells of the stop; unknown before Flink 1.16.
        sha256: of its ``_metadata``.
    """

    pointer: str
    number: int
    stop: StopKind
    sha256: str


def job_meant(jobs: Sequence[FlinkJob], wanted: str) -> FlinkJob:
    """The job of a name or an id: the one that runs, else the newest that has ended.

    Raises:
        Refused: there is none, or several run.
    """
    alike = [one for one in jobs if wanted in (one.job_id, one.name)]
    running = [one for one in alike if not one.ended]
    if len(running) > 1:
        ids = ", ".join(one.job_id for one in running)
        raise Refused([f"flink.job {wanted}: several have this name: {ids}; name an id"])
    if alike:
        return running[0] if running else max(alike, key=lambda one: one.began_ms)
    names = sorted({one.name for one in jobs if not one.ended})
    has = f"it runs {', '.join(names)}" if names else "it runs no job"
    raise Refused([f"flink.job {wanted}: Flink has no such job; {has}"])


def began_since(
    jobs: Sequence[FlinkJob], job_id: str, name: str | None, ended_ms: int | None
) -> FlinkJob | None:
    """The newest job of that id or name that began after the one that was stopped had ended.

    Args:
        ended_ms: when that was, by Flink's clock. None: Flink had forgotten it by then, and all
            others that it knows of that name are newer.
    """

    def is_newer(one: FlinkJob) -> bool:
        if one.job_id == job_id:
            return not one.ended or (ended_ms is not None and one.began_ms >= ended_ms)
        return one.name == name and one.began_ms >= (ended_ms or 0)

    return max(filter(is_newer, jobs), key=lambda one: one.began_ms, default=None)


def that_flink_tells(
    savepoints: Sequence[Savepoint], told: tuple[int, str] | None
) -> Savepoint | None:
    """Of the savepoints in a folder the one that Flink tells, by its number and its own name: a job
    that is started again under a fixed id has older ones beside it, of higher numbers even."""
    if told is None:
        return None
    number, place = told
    name = posixpath.basename(place.rstrip("/"))
    return next(
        (
            one
            for one in savepoints
            if one.number == number and posixpath.basename(one.pointer.rstrip("/")) == name
        ),
        None,
    )


class Night:
    """One cut-over: its spec, its record, and the world as it is now."""

    def __init__(self, file: SpecFile, record: Record) -> None:
        self.file, self.spec, self.record = file, file.spec, record
        self.files = Files()
        # The commands that start the query, and prime its location.
        self.starting = Command(record.folder, "query")
        self.priming = Command(record.folder, "prime")

    # -- Flink -----------------------------------------------------------------------------------

    @cached_property
    def flink(self) -> JobManager:
        assert self.spec.flink.rest is not None  # the spec's rule, where no savepoint is named
        return JobManager(self.spec.flink.rest)

    @property
    def stopped_by_others(self) -> bool:
        """Whether the spec names a savepoint, and so no job to stop."""
        return self.spec.flink.savepoint is not None

    def job(self) -> FlinkJob:
        """The job that is stopped, as Flink knows it; ``UNKNOWN`` where Flink has forgotten it.

        Once a run has begun to stop one, it is that one, whatever else has its name since.

        Raises:
            Refused: there is none of that name or id, or there are several.
            FlinkRestError: Flink did not answer.
        """
        known = self.record.model.flink
        jobs = self.flink.jobs()
        if known.job_id is not None:
            unknown = FlinkJob(known.job_id, known.job_name or "", "UNKNOWN")
            return next((one for one in jobs if one.job_id == known.job_id), unknown)
        wanted = self.spec.flink.job
        assert wanted is not None  # the spec's rule
        found = job_meant(jobs, wanted)
        if found.ended and self.savepoint_of(found) is None:
            raise Refused(
                [
                    f"flink.job {wanted}: Flink runs no such job; the newest, {found.job_id}, "
                    f"ended as {found.state}, and not with a savepoint in "
                    f"{self.savepoint_folder(found.job_id)}: start it, or name the savepoint that "
                    "is to be moved (flink.savepoint)"
                ]
            )
        return found

    def runs_since(self) -> FlinkJob | None:
        """A job that took up what was stopped: it runs, or has run since; None where there is none.

        Raises:
            FlinkRestError: Flink did not answer.
        """
        known, wanted = self.record.model.flink, self.spec.flink.job
        if self.stopped_by_others:
            if self.spec.flink.rest is None or wanted is None:
                return None
            alike = [one for one in self.flink.jobs() if wanted in (one.job_id, one.name)]
            return next((one for one in alike if not one.ended), None)
        assert known.job_id is not None  # a job was stopped
        return began_since(self.flink.jobs(), known.job_id, known.job_name, known.ended_ms)

    def savepoint_folder(self, job_id: str) -> str:
        """Where the savepoints of this job's stops go; a URI."""
        assert self.spec.flink.savepoints is not None
        folder = self.files.absolute(self.file.place(self.spec.flink.savepoints))
        return join(folder if "://" in folder else f"file://{folder}", job_id)

    def savepoint_of(self, job: FlinkJob) -> Savepoint | None:
        """The savepoint in that folder that a job has ended with, as Flink tells; None of none.

        What Flink tells may be as old as its refresh interval: where it tells of none that is
        there, it is asked again.
        """
        began = time.monotonic()
        while savepoints := self.savepoints(job.job_id):
            found = that_flink_tells(savepoints, self.flink.details(job.job_id).ended_with)
            if found is not None:
                return found
            if time.monotonic() - began > self.flink.refresh_seconds() + _GRACE_SECONDS:
                return None
            time.sleep(_PAUSE)
        return None

    def savepoints(self, job_id: str) -> list[Savepoint]:
        """The whole savepoints of stops in that folder, the newest last."""
        folder = path_of(self.savepoint_folder(job_id), self.files)
        found = []
        for name in self.files.list_directory(folder) or ():
            try:
                found.append(self.read_savepoint(join(folder, name)))
            except DecodeError:
                continue  # not written to its end
        stops = (one for one in found if one.stop is not StopKind.NONE)
        return sorted(stops, key=lambda one: one.number)

    def read_savepoint(self, pointer: str) -> Savepoint:
        """Raises DecodeError."""
        found = read_metadata(pointer, self.files)
        sha256 = hashlib.sha256(found.data).hexdigest()
        return Savepoint(pointer, found.metadata.checkpoint_id, found.metadata.type.stop, sha256)

    def savepoint(self) -> str | None:
        """The savepoint that all goes on from; None as long as none is known."""
        named = self.spec.flink.savepoint
        return self.file.place(named) if named is not None else self.record.model.flink.savepoint

    # -- the target ------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan | None:
        """The plan that was saved; None of none. Raises PlanFileError."""
        path = self.record.plan_path
        return read_plan(path) if path.exists() else None

    @property
    def location(self) -> LocalDirectory | RemoteDirectory | None:
        """Where a query's seed goes; None where the target is a group.

        Raises:
            Refused: it cannot be written from here.
        """
        if self.file.checkpoint_dir is None:
            return None
        try:
            return location(self.file.checkpoint_dir)
        except BadLocation as error:
            raise Refused([f"target.checkpoint-dir {error}"]) from error

    @property
    def query(self) -> str:
        """The checkpoint location, as it is read."""
        assert self.file.checkpoint_dir is not None
        return path_of(self.file.checkpoint_dir, self.files)

    def begun(self) -> bool:
        """Whether the target has begun: a query planned a batch, consumers joined or committed."""
        if self.file.checkpoint_dir is not None:
            return has_run(self.query, self.files, self.primed)
        view, earlier = self.group()
        from migrate.group.rollback_file import ChangeFate

        moved = earlier is not None and earlier.fate is ChangeFate.MOVED_ON
        return bool(view.members) or moved

    def first_batch(self) -> int | None:
        """The newest batch that the query has committed; None before its first."""
        newest = newest_committed_batch(self.query, self.files)
        return newest if newest is not None and newest > self.primed else None

    @property
    def primed(self) -> int:
        """The last batch that a priming has left; -1 where there is none."""
        if not self.spec.states:
            return -1
        known = self.record.model.primed
        if known is None:  # no run has seen it yet, and none has started the query
            known = newest_committed_batch(self.query, self.files)
        return known if known is not None else -1

    def streams(self, plan: Plan) -> list[SparkSource]:
        """Where each Kafka source of the query starts."""
        known, offsets = self.record.model.plan, plan.next_offsets
        only_some = plan.only_some_partitions
        if known is None or not known.streams:
            return [SparkSource(0, offsets, only_some)]
        return [
            SparkSource(
                int(number), {at: offsets[at] for at in offsets if at[0] in topics}, only_some
            )
            for number, topics in known.streams.items()
        ]

    def group(self) -> tuple[GroupView, EarlierRun | None]:
        """The target group, and the commit for it that a rollback file beside the record tells of;
        None where there is none, or it was taken back since.

        Raises:
            BrokerError: the broker did not answer.
            Refused: the group was written on other brokers.
        """
        from migrate.broker import ConsumerGroups
        from migrate.group.rollback_file import earlier_run

        assert self.spec.target.group is not None
        groups = ConsumerGroups(kafka(self.file.kafka()).config())
        cluster_id, record = groups.cluster_id(), self.record.model
        written = record.plan.cluster_id if record.plan is not None and record.moved_with else None
        if written not in (None, cluster_id):
            raise Refused(
                [
                    f"kafka.bootstrap-servers: those are brokers of cluster {cluster_id}, and the "
                    f"group was written on {written}: name those"
                ]
            )
        view = groups.view(self.spec.target.group)
        newest = earlier_run([self.record.folder], cluster_id, view)
        return view, newest if newest is not None and newest.file.change == "commit" else None
