"""The context of one cut-over: its spec, its record, its clients, and how it waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.cutover.command import Command
from migrate.cutover.record import Record
from migrate.cutover.spec import SpecFile
from migrate.inputs.flink.rest_api import JobManager
from migrate.model.errors import Refused, UsageError
from migrate.moves.options import kafka
from migrate.planning import Plan
from migrate.planning.plan_file import read_plan
from migrate.storage.files import Files
from migrate.storage.uris import path_of
from migrate.targets.location import LocalDirectory, RemoteDirectory, location
from migrate.targets.source_options import SparkSource

if TYPE_CHECKING:
    from migrate.kafka.groups import ConsumerGroups


def poll(seconds: float, pause: float = 0.25) -> Iterator[None]:
    """Yield at once, and again after each pause until the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        yield
        if time.monotonic() > deadline:
            return
        time.sleep(pause)


class CutOverContext:
    """One cut-over.

    Args:
        file: the spec.
        record: the record.
        adopt: whether the user takes over a target that this record has not written.
        nothing_started: whether the user says that nothing has started from the target.
    """

    def __init__(
        self, file: SpecFile, record: Record, *, adopt: bool = False, nothing_started: bool = False
    ) -> None:
        self.file, self.spec, self.record = file, file.spec, record
        self.adopt, self.nothing_started = adopt, nothing_started
        self.files = Files()
        self.starting = Command(record.folder, "query")
        self.priming = Command(record.folder, "prime")

    @cached_property
    def flink(self) -> JobManager:
        """The JobManager that the spec names."""
        assert self.spec.flink.rest is not None  # checked by the spec where no savepoint is named
        return JobManager(self.spec.flink.rest)

    @property
    def stopped_by_others(self) -> bool:
        """Whether the spec names a savepoint, and so no job to stop."""
        return self.spec.flink.savepoint is not None

    @property
    def savepoint(self) -> str | None:
        """The path of the savepoint that the plan is made from, or None while none is known."""
        return self.spec.flink.savepoint or self.record.model.flink.savepoint

    @cached_property
    def groups(self) -> ConsumerGroups:
        """A client that reads groups."""
        from migrate.kafka.groups import ConsumerGroups

        return ConsumerGroups(kafka(self.file.kafka()).config())

    def read_plan(self) -> Plan | None:
        """Return the saved plan, or None.

        Raises:
            InputError: it cannot be read.
        """
        path = self.record.plan_path
        return read_plan(path) if path.exists() else None

    def location(self) -> LocalDirectory | RemoteDirectory | None:
        """Return the checkpoint location as it is written, or None where the target is a group.

        Raises:
            Refused: it cannot be written from here.
        """
        directory = self.spec.target.checkpoint_dir
        try:
            return location(directory) if directory is not None else None
        except UsageError as error:
            raise Refused([f"target.checkpoint-dir {error}"]) from error

    @property
    def query_directory(self) -> str:
        """The checkpoint location, as it is read."""
        assert self.spec.target.checkpoint_dir is not None
        return path_of(self.spec.target.checkpoint_dir, self.files)

    def streams(self, plan: Plan) -> list[SparkSource]:
        """Return where each Kafka source of the query starts by a plan."""
        reported, offsets = self.record.model.plan, plan.next_offsets
        if reported is None or not reported.streams:
            return [SparkSource(0, offsets, plan.only_some_partitions)]
        return [
            SparkSource(
                int(number),
                {key: offset for key, offset in offsets.items() if key[0] in topics},
                plan.only_some_partitions,
            )
            for number, topics in reported.streams.items()
        ]

    def seeds(self, plan: Plan) -> dict[str, dict[tuple[str, int], int]]:
        """Return where each Kafka source of the query starts by a plan, by its number as text."""
        return {str(source.number): dict(source.next_offsets) for source in self.streams(plan)}
