"""Start the query or the consumers with the user's command, and wait for their first progress."""

from __future__ import annotations

from dataclasses import replace

from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.command import command_checksum, command_line
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.facts import Facts, GroupFacts, LocationFacts, Unavailable, require
from migrate.extensions.cutover.observe import observe, read_group
from migrate.extensions.cutover.record import now
from migrate.extensions.cutover.report import PartitionReport, StartReport
from migrate.extensions.cutover.target_state import (
    how_to_end,
    last_planned_query_batch,
    start_evidence,
)
from migrate.extensions.cutover.watch_lag import watched_lag
from migrate.inputs.spark_log_entries import EmptyEntry
from migrate.inputs.watch import poll
from migrate.model.errors import CutOverStopped
from migrate.model.log import log, timed
from migrate.model.message import Message
from migrate.model.warning import warn
from migrate.model.wording import parse_duration

_GROUP_PAUSE = 0.05  # in seconds; short, because members must be observed before they commit
_QUERY_PAUSE = 0.25


def start(context: CutOverContext, facts: Facts) -> str:
    """Run the ``start`` command without waiting for it to finish.

    Raises:
        CutOverStopped: the command cannot be run.
    """
    command, start_command = context.spec.start, context.start_command
    assert command is not None  # ``decide_start`` has checked that the spec has a command
    before, checksum = context.record.model.start, command_checksum(command)
    if facts.start_status == 0:  # the target was read immediately before
        log.info(
            f"no query has started from {facts.target_name} since the earlier start command "
            "succeeded; running the changed command"
        )
    context.record.change(start=StartReport(at=now(), returned=None, command_sha256=checksum))
    try:
        process = start_command.start(command, context.file.base)
    except (OSError, ValueError) as error:  # ValueError: the locale cannot encode the command
        context.record.change(start=before)
        problem = getattr(error, "strerror", None) or str(error)
        raise CutOverStopped(catalog.START_COMMAND_NOT_RUN(error=problem)) from error
    return (
        "the command is running, and keeps running after migrate exits"
        f"{how_to_end(process)}; its output is in {start_command.log}"
    )


def await_first_batch(context: CutOverContext, facts: Facts) -> str:
    """Wait for a query's first committed batch, or for a group's members or commits.

    Members and commits are recorded during the wait, because the group does not show later where
    its consumers started.

    Raises:
        CutOverStopped: the command failed or its exit code is missing, or the wait took too long.
        Exception: the target cannot be read.
    """
    limit = context.spec.timeouts.first_batch
    is_group = context.spec.target.is_group
    pause = _GROUP_PAUSE if is_group else _QUERY_PAUSE
    planned = facts.plan.next_offsets if facts.plan is not None else {}
    with (
        watched_lag(context, planned),
        timed(f"waiting for the first {'commit of the group' if is_group else 'batch'}") as stage,
    ):
        facts = observe(context)
        groups = context.open_groups() if is_group else None
        group = read_group(context, groups) if is_group else None
        for _ in poll(parse_duration(limit), pause):
            if is_group:  # for speed, reread only the group
                group = read_group(context, groups, group)
                facts = replace(facts, record=context.record.model, target=group)
            else:
                facts = observe(context, "target")
                if isinstance(facts.target, Unavailable) and isinstance(
                    facts.target.error, EmptyEntry
                ):
                    continue  # the query is writing an entry of its log
            require(facts.target)
            watch_group(context, facts)
            if text := start_evidence(facts):
                return text
            _check_command(context)
            stage.seen(_progress(context, facts))
    details = context.start_command.last_lines()
    succeeded = context.start_command.status() == 0
    if succeeded and (command := context.spec.start) is not None:
        details = ("the start command:", f"  {command_line(command)}", *details)
    raise CutOverStopped(_why_no_batch(facts, limit, succeeded=succeeded), details=details)


def _why_no_batch(facts: Facts, limit: str, *, succeeded: bool) -> Message:
    """Return the reason that no batch, member, or commit was seen in time.

    ``succeeded`` is True if the start command has ended with exit code 0.
    """
    target = require(facts.target)
    if not isinstance(target, LocationFacts):
        no_member = catalog.START_COMMAND_WITHOUT_CONSUMERS if succeeded else catalog.NO_MEMBER_SEEN
        return no_member(target=facts.target_name, limit=limit)
    if (batch := last_planned_query_batch(facts, target)) is not None:
        return catalog.FIRST_BATCH_NOT_COMMITTED(batch=batch, limit=limit)
    if target.has_logs:
        return catalog.NO_BATCH_IN_TIME(limit=limit)
    # Spark creates the directories of its logs even without new records.
    no_query = catalog.START_COMMAND_WITHOUT_QUERY if succeeded else catalog.NO_QUERY_STARTED
    return no_query(location=target.name, limit=limit)


def warn_of_failed_command(context: CutOverContext) -> None:
    """Warn if the ``start`` command failed even though readers have started from the target."""
    if code := context.start_command.exit_code():
        warn(catalog.START_COMMAND_FAILED_AFTER_START(exit_code=code))


def _progress(context: CutOverContext, facts: Facts) -> str:
    """Return the target's progress, and the last line of the command's output."""
    target = require(facts.target)
    if not isinstance(target, LocationFacts):
        seen = "no member and no commit yet"
    elif (batch := last_planned_query_batch(facts, target)) is not None:
        seen = f"batch {batch} has started"
    elif target.has_logs:
        seen = "no batch has started yet"
    else:
        seen = "no query has started yet"
    line = context.start_command.last_line()
    return f"{seen}; {line}" if line else seen


def watch_group(context: CutOverContext, facts: Facts) -> None:
    """Record the first commit for each partition, and whether a group member had the partition.

    A member counts only if it was observed while the cut-over's commit was still the newest. The
    first commit is the first one after the cut-over's own commit. Nothing is recorded before the
    target is written.
    """
    target, record = facts.target, context.record
    if not isinstance(target, GroupFacts) or record.model.written is None or facts.plan is None:
        return
    as_written = target.partitions_as_written(record.model.id, facts.plan.next_offsets)
    assigned, moves = target.assigned(facts.plan.next_offsets), target.written_by_moves()

    def updated(row: PartitionReport) -> PartitionReport:
        key = (row.topic, row.partition)
        if row.planned is None:
            return row
        if key in as_written:
            return row.model_copy(update={"members_seen": row.members_seen or key in assigned})
        commit = target.view.committed.get(key)
        # A commit by another move says nothing about the consumers.
        if row.first_commit is None and commit is not None and key not in moves:
            return row.model_copy(update={"first_commit": commit.next_offset})
        return row

    rows = list(map(updated, record.model.partitions))
    if rows != record.model.partitions:
        record.change(partitions=rows)


def _check_command(context: CutOverContext) -> None:
    """Record the exit code of the ``start`` command once the command has ended.

    Raises:
        CutOverStopped: the command failed, or the exit code is missing.
    """
    report, code = context.record.model.start, context.start_command.status()
    if report is None or report.returned == 0 or code == "running":
        return
    if code in ("unknown", None):
        raise CutOverStopped(catalog.START_EXIT_CODE_MISSING())
    context.record.change(start=report.model_copy(update={"returned": code}))
    if code != 0:
        raise CutOverStopped(
            catalog.START_COMMAND_FAILED(exit_code=code),
            details=context.start_command.error_lines(),
        )
    log.info("the start command succeeded")
