"""Define the context of a cut-over: its spec, its record, and its clients."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.command import Command
from migrate.extensions.cutover.record import Record
from migrate.extensions.cutover.spec import SpecFile
from migrate.inputs.flink.rest_api import JobManager
from migrate.model.errors import Refused, UsageError
from migrate.moves.options import kafka
from migrate.planning import Plan
from migrate.storage.files import Files
from migrate.storage.uris import path_of
from migrate.targets.group.rollback_file import cut_over_folders
from migrate.targets.location import LocalDirectory, RemoteDirectory, location

if TYPE_CHECKING:
    from migrate.kafka.groups import ConsumerGroups


# The messages about the state of the job and the target, for a run that ends before readers start.
NOT_STOPPED = "this run has not changed anything or stopped a job"
STOP_REQUESTED = "a stop of the Flink job was requested, and Flink may still stop the job"
STOP_FAILED = "the stop of the Flink job failed"
NOT_WRITTEN = "this run has not written the target"
BEING_WRITTEN = "the target may be incomplete"
WRITTEN = "the target is written"
# The messages about the state of the target, for a rollback that ends early.
UNCHANGED = "the target is unchanged"
BEING_ROLLED_BACK = "the target is unchanged, or was partly removed"
ROLLED_BACK = "the target was rolled back, but the record was not updated"


class CutOverContext:
    """The spec, the record, and the clients of one cut-over.

    Args:
        adopt: True to adopt a target that was not written by this record's cut-over.
        until: the name of the last step to run, or None for all steps.
        nothing_started: True if the user states that nothing has started to read from the target.

    Attributes:
        saw_end: True once this run has seen that the job reached FINISHED after the savepoint.
        stop_state: the message about stopping the job, such as ``STOP_REQUESTED``. It is used
            until the job has stopped with a savepoint.
        target_state: the message about the target, such as ``NOT_WRITTEN``.
        previewed_plan: the plan that this run has made but not saved, if any.
    """

    previewed_plan: Plan | None = None

    def __init__(
        self,
        file: SpecFile,
        record: Record,
        *,
        adopt: bool = False,
        until: str | None = None,
        nothing_started: bool = False,
    ) -> None:
        self.file, self.spec, self.record = file, file.spec, record
        self.adopt, self.until, self.nothing_started = adopt, until, nothing_started
        self.files, self.saw_end = Files(), False
        flink, written = record.model.flink, record.model.written
        requested = flink.job_id is not None and flink.savepoints is not None
        self.stop_state = STOP_REQUESTED if requested else NOT_STOPPED
        self.target_state = NOT_WRITTEN if written is None else WRITTEN
        self.start_command = Command(record.folder, "query")
        self.prime_command = Command(record.folder, "prime")

    @cached_property
    def flink(self) -> JobManager:
        assert self.spec.flink.rest is not None  # required in a spec without a savepoint
        return JobManager(self.spec.flink.rest)

    @property
    def savepoint(self) -> str | None:
        """The path of the savepoint for the plan; None before the savepoint exists."""
        return self.spec.flink.savepoint or self.record.model.flink.savepoint

    @property
    def state(self) -> str:
        """The state of the job and the target, as a sentence."""
        if self.savepoint is None:
            return self.stop_state
        stopped = "the Flink job has stopped"
        if self.spec.stopped_by_others:
            stopped = "this run has not stopped a job"
        return f"{stopped}, and {self.target_state}"

    def open_groups(self) -> ConsumerGroups:
        """Return a new client, because a restarted broker may not answer an idle client."""
        from migrate.kafka.groups import ConsumerGroups

        return ConsumerGroups(kafka(self.file.target_kafka_arguments()).config())

    def rollback_folders(self) -> list[Path]:
        """Return the folders in which to search for the group's rollback files.

        Rollback files show which clients have committed for the group. The search covers the folder
        of this record, the folders of other cut-overs next to this folder (except those that were
        rolled back), and the current folder.
        """
        own = self.record.folder
        others = (folder for folder in cut_over_folders(own.parent) if folder != own)
        return [own, *others, Path()]

    def location(self) -> LocalDirectory | RemoteDirectory | None:
        """Return the checkpoint location, or None if the target is a group.

        Raises:
            Refused: the location cannot be written to from this machine.
        """
        directory = self.spec.target.checkpoint_dir
        try:
            return location(directory) if directory is not None else None
        except UsageError as error:
            raise Refused(catalog.CHECKPOINT_DIR_UNUSABLE(problem=str(error))) from error

    @property
    def query_directory(self) -> str:
        """The path of the checkpoint location, in the format that ``files`` expects."""
        assert self.spec.target.checkpoint_dir is not None
        return path_of(self.spec.target.checkpoint_dir, self.files)
