"""What the steps of a cut-over read: Flink, the savepoint, the seed, the group, Spark's log.

Nothing here changes anything. It is read anew whenever it is asked for: a step that was done by an
earlier run, or by hand, is seen as done.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from decoder import DecodeError, StopKind
from decoder.checkpoint import read_metadata
from decoder.storage import join
from migrate.commands.shared_options import kafka
from migrate.cutover.record import Record
from migrate.cutover.spec import SpecFile
from migrate.errors import MigrateError, Refused
from migrate.flink.job_manager import JobManager
from migrate.flink.rest_api import FlinkJob
from migrate.planning import Plan
from migrate.planning.plan_file import read_plan
from migrate.spark.locations import BadLocation, LocalDirectory, RemoteDirectory, location
from migrate.spark.progress import has_run, newest_committed_batch
from migrate.storage.files import Files, path_of

if TYPE_CHECKING:
    from migrate.cluster_snapshot import GroupView
    from migrate.group.rollback_file import EarlierRun


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


class Night:
    """One cut-over: its spec, its record, and the world as it is now."""

    def __init__(self, file: SpecFile, record: Record) -> None:
        self.file, self.spec, self.record = file, file.spec, record
        self.files = Files()
        # The command that starts the query, where this run has started it.
        self.command: subprocess.Popen[bytes] | None = None

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
        alike = [one for one in jobs if wanted in (one.job_id, one.name)]
        running = [one for one in alike if not one.ended]
        ended = [one for one in alike if one.ended and self.savepoint_of(one.job_id) is not None]
        for found in (running, ended):
            if len(found) == 1:
                return found[0]
            if found:
                ids = ", ".join(one.job_id for one in found)
                raise Refused([f"flink.job {wanted}: several have this name: {ids}; name an id"])
        names = sorted({one.name for one in jobs if not one.ended})
        has = f"it runs {', '.join(names)}" if names else "it runs no job"
        raise Refused([f"flink.job {wanted}: Flink has no such job; {has}"])

    def runs_again(self, job: FlinkJob) -> FlinkJob | None:
        """Another job of the name of one that was stopped; None where there is none."""
        return next(
            (
                one
                for one in self.flink.jobs()
                if one.name == job.name and one.job_id != job.job_id and not one.ended
            ),
            None,
        )

    def savepoint_folder(self, job_id: str) -> str:
        """Where the savepoints of this job's stops go; a URI."""
        assert self.spec.flink.savepoints is not None
        folder = self.files.absolute(self.file.place(self.spec.flink.savepoints))
        return join(folder if "://" in folder else f"file://{folder}", job_id)

    def savepoint_of(self, job_id: str) -> Savepoint | None:
        """The newest whole savepoint of a stop in that folder; None of none."""
        folder = path_of(self.savepoint_folder(job_id), self.files)
        found = []
        for name in self.files.list_directory(folder) or ():
            try:
                found.append(self.read_savepoint(join(folder, name)))
            except DecodeError:
                continue  # not written to its end
        stops = [one for one in found if one.stop is not StopKind.NONE]
        return max(stops, key=lambda one: one.number, default=None)

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
            return has_run(self.query, self.files)
        view, earlier = self.group()
        from migrate.group.rollback_file import ChangeFate

        moved = earlier is not None and earlier.fate is ChangeFate.MOVED_ON
        return bool(view.members) or moved

    def first_batch(self) -> int | None:
        """The newest batch that the query has committed; None before its first."""
        return newest_committed_batch(self.query, self.files)

    def group(self) -> tuple[GroupView, EarlierRun | None]:
        """The target group, and the commit for it that a rollback file beside the record tells of;
        None where there is none, or it was taken back since.

        Raises:
            BrokerError: the broker did not answer.
        """
        from migrate.broker import ConsumerGroups
        from migrate.group.rollback_file import earlier_run

        assert self.spec.target.group is not None
        groups = ConsumerGroups(kafka(self.file.kafka()).config())
        view = groups.view(self.spec.target.group)
        newest = earlier_run([self.record.folder], groups.cluster_id(), view)
        return view, newest if newest is not None and newest.file.change == "commit" else None
