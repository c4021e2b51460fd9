"""``commit_group``: a checkpoint's positions as a consumer group's offsets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.inputs.flink.findings.checkpoint import SINKS_THAT_REMEMBER
from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log, timed
from migrate.model.positions import Target, TopicPartition
from migrate.model.wording import counted, did_you_mean
from migrate.moves.job_stopped import interval_of, report_running_jobs, wait_for_checkpoint
from migrate.moves.options import Request, move_request
from migrate.moves.plan import check_unmoved, planned
from migrate.moves.sink import check_sink_of_a_job
from migrate.planning import Plan
from migrate.storage.uris import local_path
from migrate.targets.group import rollback_file as rollback_files
from migrate.targets.group.commit_marks import commit_metadata, moved_on_refusals
from migrate.targets.group.rollback_file import (
    ChangeProgress,
    EarlierRun,
    check_rollback_path,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.moves.options import AnyPath, MoveArguments
    from migrate.targets.group.commit import ChangeOutcome


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A change to a consumer group: as it would be made and, once made, its outcome.

    Attributes:
        group: the group as it was looked at.
        plan: what moves, partition by partition.
        earlier: the last change to this group that a rollback file records, and its fate.
        refusals: why it must not be made, a line each with the way out.
        rollback_path: where what the group holds is written before it is changed.
        outcome: what came of it; None as long as it was not made.
        cut_over: the id of the cut-over that makes the change, or an empty string. Its id is
            written beside each offset, also where the offset itself is there already.
    """

    group: GroupView
    plan: Plan
    earlier: EarlierRun | None
    refusals: tuple[str, ...]
    rollback_path: Path
    outcome: ChangeOutcome | None = None
    cut_over: str = ""
    _request: Request = field(repr=False, kw_only=True)
    _interval: float | None = field(repr=False, kw_only=True)

    @property
    def new_offsets(self) -> dict[TopicPartition, Committed]:
        """The offsets to commit, each with the checkpoint and operator that it is of."""
        origin = self.plan.origin
        name = f"{'batch' if origin.kind == 'batch' else 'chk'}-{origin.number}"
        return {
            planned.topic_partition: Committed(
                planned.next_offset,
                commit_metadata(
                    f"{name} {(planned.operator_id or planned.verdict.value)[:16]}", self.cut_over
                ),
            )
            for planned in self.plan.partitions
            if planned.next_offset is not None
        }

    def execute(self, confirm: Callable[[], None] | None = None) -> ChangeOutcome:
        """Make the change, unless something has moved since it was looked at.

        Where the checkpoints beside this one tell how often the job takes them, it is first waited
        for longer than that, up to a minute: a running job would complete one.

        Args:
            confirm: called when all is looked at and nothing is written; it may raise.

        Raises:
            Refused: it must not be made, or no longer; nothing was written.
            UsageError: the rollback file cannot be written.
            BrokerError: the group could not be read; nothing was written.
            OSError: the rollback file could not be written; nothing was committed.
        """
        from migrate.targets.group.commit import ChangeOutcome, commit

        if self.refusals:
            raise Refused(self.refusals)
        new_offsets = self.new_offsets
        if not self.cut_over and all(
            self.group.next_offset(*partition) == committed.next_offset
            for partition, committed in new_offsets.items()
        ):
            return ChangeOutcome(self.group.name, (), None)
        check_rollback_path(self.rollback_path)
        wait_for_checkpoint(self._request, self.plan, self._interval)
        if confirm is not None:
            confirm()
        check_unmoved(self._request, self.plan)  # it may have waited for the answer
        config = self._request.kafka.config()
        with timed(f"committing for group {self.group.name}"):
            return commit(
                config,
                self.group.name,
                new_offsets,
                self.group,
                self.rollback_path,
                mark=bool(self.cut_over),
            )


def commit_group(
    chk: AnyPath | None = None,
    *,
    group: str,
    plan: AnyPath | Plan | None = None,
    execute: bool = False,
    rollback_file: AnyPath | None = None,
    flink_rest: str | None = None,
    sink: AnyPath | None = None,
    allow_moved_on: bool = False,
    **arguments: Unpack[MoveArguments],
) -> GroupChange:
    """Commit a checkpoint's positions as a consumer group's offsets.

    Without ``execute`` a dry run: the group as it is, the change, and what speaks against it;
    ``GroupChange.execute`` makes it then. There is no question: whoever calls has decided.

    Args:
        chk: the checkpoint, as for ``plan``; also ``spark:DIR``, what a Spark query has committed.
        group: the consumer group; it must have no members.
        plan: instead of it a plan, or the file of one, unless something has moved meanwhile.
        execute: make the change.
        rollback_file: where what the group holds is written before it is changed; by default
            ``rollback-<group>-<time>.json`` in the current folder.
        flink_rest: the address of Flink's JobManager: ask it whether a job still runs.
        sink: the directory of the table that a Flink job will write to which goes on from this
            group without state: does it remember a job's checkpoints?
        allow_moved_on: go back although others have committed for the group since.
        arguments: see ``MoveArguments``; a broker is needed.

    Raises:
        Refused: with ``execute``, what must not be done; nothing was written. Without, only where
            ``plan`` has refusals of its own, or no longer holds.
        UsageError: arguments that do not go together, or name what is not there.
        DecodeError, InputError: the checkpoint, or the plan, cannot be read.
        BrokerError, FlinkRestError: one did not answer, or denied what was asked.
    """
    request = move_request(chk, Target("group", group), arguments)
    path = local_path(os.fspath(rollback_file)) if rollback_file is not None else None
    check_sink_of_a_job(sink)
    move = planned(request, plan)
    if sink is None and move.origin.kind == "batch":
        log.warning(SINKS_THAT_REMEMBER)
    change = _prepare(request, move, path, flink_rest, allow_moved_on)
    return replace(change, outcome=change.execute()) if execute else change


def _prepare(
    request: Request,
    move: Plan,
    path: Path | None,
    flink_rest: str | None,
    allow_moved_on: bool,
) -> GroupChange:
    from migrate.targets.group.commit import write_obstacles

    before = move.snapshot.target_group if move.snapshot is not None else None
    if before is None:
        raise UsageError("this plan was made without a broker: make a new one for the group")
    path = path or rollback_files.default_path(before.name, Path())
    earlier, interval = None, None
    refusals = tuple(map(str, move.refusals))
    if not refusals:
        earlier = rollback_files.earlier_run((path.parent, Path()), move.cluster_id, before)
        _report_group(before, earlier)
        interval = interval_of(move)
        refusals = (*write_obstacles(before), *report_running_jobs(move, interval, flink_rest))
        if not allow_moved_on:
            refusals = (*refusals, *_refuse_going_back(before, move, earlier))
    return GroupChange(
        before,
        move,
        earlier,
        refusals,
        path,
        _request=request,
        _interval=interval,
    )


def _report_group(group: GroupView, run: EarlierRun | None) -> None:
    if not group.exists:
        log.warning(
            f"group {group.name} does not exist yet: it will be created; is its name right?"
            + did_you_mean(group.alike)
        )
    else:
        log.info(
            f"group {group.name}: {group.state}, {group.type}, "
            f"{counted(len(group.members), 'member')}, "
            f"{counted(len(group.committed), 'committed offset')}"
        )
    for member in group.members:
        log.info(f"  member {member.client_id} on {member.host}")
    log.info(
        "Kafka deletes an idle group's offsets after offsets.retention.minutes; start its "
        "consumers before then"
    )
    if run is not None:
        log.info(f"{run.path}: {run.progress.value}")


def _refuse_going_back(group: GroupView, move: Plan, run: EarlierRun | None) -> Iterator[str]:
    """Refuse to commit again what consumers have gone on from: they would read it again."""
    ours = run if run is not None and run.file.change == "commit" else None
    if ours is not None and ours.progress is ChangeProgress.APPLIED:
        return  # nobody has committed since
    back = [
        saved.current - saved.next_offset
        for saved in move.partitions
        if saved.current is not None
        and saved.next_offset is not None
        and saved.next_offset < saved.current
    ]
    if ours is None or ours.progress is not ChangeProgress.MOVED_ON:
        yield from moved_on_refusals(group, move.next_offsets)
    elif back:
        yield (
            f"the group has moved on since {ours.path} was written: {len(back)} of its offsets "
            f"would go back, and up to {sum(back)} records be read again; add --allow-moved-on to "
            "go back all the same"
        )
