"""Start the query or the consumers by the user's command, and wait until they have begun."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from migrate.cutover.beginning import Begun, beginning
from migrate.cutover.context import CutOverContext, CutOverStopped
from migrate.cutover.decide_target import NOBODY_KNOWS, first_batch
from migrate.cutover.facts import Facts, GroupFacts, Need, Unavailable
from migrate.cutover.observe import observe, open_groups, read_group
from migrate.cutover.record import now
from migrate.model.log import log, timed
from migrate.model.positions import TopicPartition
from migrate.model.wording import parse_duration
from migrate.report.cut_over import PartitionReport, StartReport
from migrate.targets.group.commit_marks import METADATA_PREFIX

_PAUSE = 0.25
# Members are to be seen before they commit.
_GROUP_PAUSE = 0.05


def start(context: CutOverContext, facts: Facts) -> str:
    """Run the command; it runs on, or ends by itself once it has handed the query over.

    Raises:
        CutOverStopped: it cannot be run.
    """
    command, starting = context.spec.start, context.starting
    assert command is not None  # decided on it
    context.record.change(start=StartReport(at=now(), returned=None))
    try:
        number = starting.run(command, context.file.home)
    except (OSError, ValueError) as error:
        raise CutOverStopped(f"start: {getattr(error, 'strerror', None) or error}") from error
    return f"process {number}; its output is in {starting.log}"


def await_begin(context: CutOverContext, facts: Facts) -> str:
    """Wait for the first batch that is committed; of a group, for members or commits by others.

    What is seen of the group meanwhile is kept in the record: where its consumers began cannot be
    told later.

    Raises:
        CutOverStopped: the command failed, or it took too long.
        BrokerError: the group cannot be read.
    """
    patience = context.spec.timeouts.first_batch
    deadline = time.monotonic() + parse_duration(patience)
    what = "the first commit of the group" if facts.is_group else "the first batch"
    with timed(f"waiting for {what}"):
        look = _looks_at_the_target(context)
        while True:
            facts = look()
            watch_group(context, facts)
            if text := _begun(facts):
                return text
            _check_command(context)
            if time.monotonic() > deadline:
                _give_up(context, facts, patience)
            time.sleep(_GROUP_PAUSE if facts.is_group else _PAUSE)


def _looks_at_the_target(context: CutOverContext) -> Callable[[], Facts]:
    """Return how to look at the target again and again; at a group with one client, to be fast."""
    if context.file.checkpoint_dir is not None:
        return lambda: observe(context, Need.TARGET)
    facts, groups = observe(context), open_groups(context)
    return lambda: replace(facts, record=context.record.model, target=read_group(context, groups))


def _begun(facts: Facts) -> str:
    """Return how it has begun, in words; empty as long as it has not."""
    if isinstance(facts.target, Unavailable):
        raise facts.target.error
    if facts.is_group:
        begins = beginning(facts)
        return begins.reason if begins.begun is Begun.YES else ""
    batch = first_batch(facts)
    return f"batch {batch} is committed" if batch is not None else ""


def watch_group(context: CutOverContext, facts: Facts) -> None:
    """Keep what a look at the group shows of where its consumers begin.

    A member that has a partition while our commit still stands there begins at the plan. The first
    commit by others is kept, too.
    """
    target, record = facts.target, context.record
    if not isinstance(target, GroupFacts) or record.model.written is None or not facts.plan:
        return
    ours = target.marked(record.model.id, facts.plan.next_offsets)
    assigned = target.assigned(facts.plan.next_offsets)
    rows = [_watched(row, target, assigned, ours) for row in record.model.partitions]
    if rows != record.model.partitions:
        record.change(partitions=rows)


def _watched(
    row: PartitionReport,
    target: GroupFacts,
    assigned: set[TopicPartition],
    ours: set[TopicPartition],
) -> PartitionReport:
    place = (row.topic, row.partition)
    if row.planned is None:
        return row
    if place in ours:
        return row.model_copy(update={"members_seen": row.members_seen or place in assigned})
    held = target.view.committed.get(place)
    # Another move's commit shows nothing of the consumers.
    if row.first_commit is None and held and not held.metadata.startswith(METADATA_PREFIX):
        return row.model_copy(update={"first_commit": held.next_offset})
    return row


def _give_up(context: CutOverContext, facts: Facts, patience: str) -> None:
    if facts.is_group:
        text = (
            f"no member and no commit of {facts.target_name} was seen in {patience} "
            "(timeouts.first-batch); run the same command to wait longer"
        )
    else:
        text = (
            f"no batch was committed in {patience} (timeouts.first-batch); without new records a "
            "query commits no batch: run the same command to wait longer"
        )
    raise CutOverStopped(text, details=tuple(context.starting.last_lines()))


def _check_command(context: CutOverContext) -> None:
    """Stop where the command that starts the query has failed.

    Raises:
        CutOverStopped: it has, or nobody knows how it ended.
    """
    report = context.record.model.start
    if report is None or report.returned == 0 or context.starting.runs():
        return
    code = context.starting.ended()
    if code == "unknown":
        raise CutOverStopped(NOBODY_KNOWS)
    context.record.change(start=report.model_copy(update={"returned": code}))
    if code == 0:
        log.info("the command that starts the query has ended well")
        return
    how = f"exit code {code}" if code is not None else "it was not run"
    raise CutOverStopped(
        f"the command that starts the query has ended: {how}",
        details=tuple(context.starting.last_lines()),
    )
