"""``commit_group``: commit a checkpoint's positions as a consumer group's offsets."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.inputs.before_move import find_watch, job_refusals, report_for_group
from migrate.inputs.flink.job_state import judge
from migrate.inputs.watch import NO_WATCH, Watch, wait_for_sign
from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.errors import Refused, UsageError
from migrate.model.finding_catalog import SINK_MEMORY
from migrate.model.log import log, timed
from migrate.model.message import Message
from migrate.model.offset_metadata import LONGEST_METADATA, holds_offset
from migrate.model.option_names import option
from migrate.model.positions import TopicPartition, target_of
from migrate.model.warning import warn
from migrate.model.wording import counted
from migrate.moves.load_inputs import read_input
from migrate.moves.options import MoveArguments, Request, move_request
from migrate.moves.plan import (
    check_plan,
    compared_group,
    load_plan,
    other_command_error,
    plan_move,
    recheck_plan,
)
from migrate.moves.sink import check_sink_of_a_job
from migrate.planning import Plan
from migrate.storage.new_file import check_new_file
from migrate.storage.uris import AnyPath, local_path
from migrate.targets.group import rollback_file as rollback_files
from migrate.targets.group.discarded_metadata import warn_of_discarded_metadata
from migrate.targets.group.newer_commits import newer_commit_refusals
from migrate.targets.group.rollback_file import LoggedChange

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.targets.group.commit import ChangeOutcome


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A planned change to a consumer group and, once the change is made, its outcome.

    Attributes:
        group: the state of the group at the time of the broker query.
        refusals: the reasons against the change, each with its remedy.
        rollback_path: the file to which the group's current offsets are saved before the change.
        outcome: the outcome of the change; None until the change is made.
        metadata: the string to commit with each offset; empty by default, because clients such as
            Kafka Streams before 3.2 fail on metadata that they did not write.
        cut_over: the ID of the cut-over that makes the change, or None. It is recorded in the
            rollback file.
    """

    group: GroupView
    plan: Plan
    newest_change: LoggedChange | None
    refusals: tuple[Message, ...]
    rollback_path: Path
    outcome: ChangeOutcome | None = None
    metadata: str = ""
    cut_over: str | None = None
    _request: Request = field(repr=False, kw_only=True)
    _watch: Watch = field(repr=False, kw_only=True)

    @property
    def new_offsets(self) -> dict[TopicPartition, Committed]:
        """The offsets to commit, with their metadata."""
        return {
            partition: Committed(next_offset, self.metadata)
            for partition, next_offset in self.plan.next_offsets.items()
        }

    def execute(self, confirm: Callable[[], None] | None = None) -> ChangeOutcome:
        """Make the change, unless the cluster, the group, or the job has changed in the meantime.

        If the group already has the new offsets and there is no ``cut_over``, return immediately.
        Otherwise, first wait until a running job would have completed its next checkpoint, or a
        running query would have started its next batch. If this would take more than a minute, do
        not wait. If such a checkpoint or batch appears, refuse the change. See ``wait_for_sign``.

        Args:
            confirm: called after the wait and before anything is written; it may raise to stop the
                change.

        Raises:
            Refused: the change has refusals; the cluster, the group, or the job has changed in the
                meantime; or ``rollback_path`` exists. Nothing was written.
            UsageError: no file can be written at ``rollback_path``; this is checked before the
                wait.
            BrokerError: the group could not be read; nothing was written.
            OSError: the rollback file could not be written after the wait; nothing was committed.
        """
        from migrate.targets.group.commit import ChangeOutcome, commit

        if self.refusals:
            raise Refused(self.refusals)
        new_offsets = self.new_offsets
        if self.cut_over is None and all(
            holds_offset(self.group.committed.get(partition), committed)
            for partition, committed in new_offsets.items()
        ):
            return ChangeOutcome(self.group.name, (), None)
        check_new_file("rollback_file", self.rollback_path)
        source_group = self.plan.source_group
        wait_for_sign(
            self._watch,
            lambda: recheck_plan(self._request, self.plan)[1],
            f"group {source_group} has no newer commits, and " if source_group is not None else "",
        )
        if self.plan.origin.kind == "batch":
            log.info(self._watch.text)
        if confirm is not None:
            confirm()
        # Check again, because the wait or the user's answer may have taken a long time.
        recheck_plan(self._request, self.plan)
        if self._request.flink_rest is not None:
            again = judge(self.plan.origin, self._request.flink_rest)
            allowed = self.plan.allow_ran_on
            if refusals := job_refusals(
                again, allow_ran_on=allowed, source_group=compared_group(self.plan), is_group=True
            ):
                raise Refused(refusals)
        with timed(f"committing for group {self.group.name}"):
            return commit(
                self._request.target_kafka.config(),
                self.group.name,
                new_offsets,
                self.group,
                self.rollback_path,
                cut_over=self.cut_over,
                from_cluster_id=(self.plan.cluster_id or "") if self.plan.is_translated else None,
            )


def commit_group(
    chk: AnyPath | None = None,
    *,
    group: str | None = None,
    plan: AnyPath | Plan | None = None,
    execute: bool = False,
    rollback_file: AnyPath | None = None,
    sink: AnyPath | None = None,
    allow_moved_on: bool = False,
    metadata: str = "",
    **arguments: Unpack[MoveArguments],
) -> GroupChange:
    """Commit a checkpoint's positions as a consumer group's offsets.

    Without ``execute``, the call is a dry run. It returns the current group, the change, and the
    reasons against the change; ``GroupChange.execute`` then makes the change.

    Args:
        chk: the checkpoint, as in ``migrate.plan``; or ``spark:DIR`` for the positions
            that a Spark query has committed.
        group: the consumer group, which must be empty; by default the group of ``plan``.
        plan: a plan or a plan file instead of ``chk``; refused if the cluster, the group, or the
            job has changed since the plan was made.
        execute: True to make the change.
        rollback_file: the file to which the group's current offsets are saved before the change; by
            default ``rollback-<group>-<time>.json`` in the current directory.
        sink: the directory of the table that a Flink job will write to when it continues from this
            group without state. The table is checked for checkpoints of earlier jobs, because they
            might make the table drop the new job's records.
        allow_moved_on: True to rewind the group even if other clients, such as its consumers, have
            newer commits (see ``newer_commit_refusals``).
        metadata: the string to commit with each offset, such as a note about the move. By default,
            no string is committed, because the metadata belongs to the group's client.
        arguments: see ``MoveArguments``; a broker is required.

    Raises:
        Refused: ``plan`` has refusals or is out of date, or ``sink`` cannot be read; or, with
            ``execute``, there are reasons against the change. Nothing was written.
        UsageError: arguments cannot be combined, or they name something that does not exist.
        DecodeError, InputError: the checkpoint or the plan cannot be read.
        BrokerError: the broker did not answer, or it denied the request.
        FlinkRestError: Flink did not answer, or it denied the request.
        OSError: with ``execute``, the rollback file could not be written; nothing was committed.
    """
    if group is None:
        if plan is None:
            raise UsageError(f"no consumer group was specified; pass {option('group', 'G')}")
        plan, name = load_plan(plan)
        group = plan.target.group
        if group is None:
            raise other_command_error(name, plan)
    request = move_request(target_of(group), arguments, plan)
    try:
        length = len(metadata.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"{option('metadata')} is not valid UTF-8") from error
    if length > LONGEST_METADATA:
        raise UsageError(
            f"{option('metadata')} is {length} bytes long, but Kafka allows at most "
            f"{LONGEST_METADATA}"
        )
    path = local_path(os.fspath(rollback_file)) if rollback_file is not None else None
    check_sink_of_a_job(sink)
    if plan is None:
        move = plan_move(read_input(chk, request), request)
    else:
        move = check_plan(chk, request, plan)
    if sink is None and move.origin.kind == "batch":
        warn(SINK_MEMORY())
    change = replace(_prepare(request, move, path, allow_moved_on), metadata=metadata)
    warn_of_discarded_metadata(change.group, change.new_offsets, has_rollback=True)
    return replace(change, outcome=change.execute()) if execute else change


def _prepare(request: Request, move: Plan, path: Path | None, allow_moved_on: bool) -> GroupChange:
    from migrate.targets.group.commit import commit_refusals

    before = move.snapshot.target_group if move.snapshot is not None else None
    if before is None:
        move.check()  # a refused plan for two clusters lacks the group in the target's cluster
        raise UsageError(
            "this plan was created without a broker, so it does not contain the offsets of the "
            "group; create a new plan for the group"
        )
    path = path or rollback_files.default_path(before.name, Path())
    newest_change, watch = None, NO_WATCH
    refusals: tuple[Message, ...] = move.refusals
    if not refusals:
        folders = path.parent, Path()
        changes = rollback_files.history(
            folders, move.target_cluster_id, before.name, ignore_unreadable=True
        )
        newest_change = rollback_files.newest_of(changes, before)
        _report_group(before, newest_change)
        watch, judgment = find_watch(move.origin), judge(move.origin, request.flink_rest)
        source_group = compared_group(move)
        running = job_refusals(
            judgment, allow_ran_on=move.allow_ran_on, source_group=source_group, is_group=True
        )
        refusals = (*commit_refusals(before), *running)
        if not allow_moved_on:
            newer = newer_commit_refusals(
                before, move.next_offsets, [change for _, change in changes]
            )
            refusals = (*refusals, *newer)
        if not refusals:
            log.info(
                "Kafka deletes the offsets of an idle group after offsets.retention.minutes; start "
                "its consumers before that time"
            )
        if not running:
            report_for_group(judgment, move.origin, watch, source_group)
    return GroupChange(before, move, newest_change, refusals, path, _request=request, _watch=watch)


def _report_group(group: GroupView, newest_change: LoggedChange | None) -> None:
    if group.exists:
        log.info(
            f"group {group.name}: {group.state}, {group.type}, "
            f"{counted(len(group.members), 'member')}, "
            f"{counted(len(group.committed), 'committed offset')}"
        )
    for member in group.members:
        log.info(f"  member {member.client_id} on {member.host}")
    if newest_change is not None:
        log.info(f"{newest_change.path}: {newest_change.meaning}")
