"""The verification of a move, as a table and explanations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from migrate.model.positions import format_start
from migrate.model.wording import counted, join_some, printable
from migrate.planning.verify import StartOutcome, Verification, VerifiedPartition
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, table_lines


def verification_table(verification: Verification, out: TextIO, *, wide: bool = False) -> str:
    """Return a table of the offsets at which the target starts or started, and a line of totals."""
    screen, rows = Screen.of(out), verification.partitions
    expected_by = "CHECKPOINT" if verification.plan is None else "PLAN"
    columns: tuple[Column[VerifiedPartition], ...] = (
        Column("OUTCOME", lambda row: row.outcome.value, style=_style),
        Column("TOPIC", lambda row: row.topic, own_line=Line.ABOVE),
        Column("PARTITION", lambda row: row.partition),
        Column(expected_by, lambda row: format_start(row.expected), right=True),
        Column("STARTED-AT" if verification.has_run else "WILL-START-AT", lambda row: row.started),
        Column("OFFSETS", lambda row: row.records or None),
    )
    counts = ", ".join(
        f"{count} {outcome.value}" + _up_to(verification, outcome)
        for outcome, count in verification.counts.items()
    )
    total = f"{printable(verification.target)}: {counts}"
    return (
        "".join(table_lines(columns, rows, screen, wide=wide)) + screen.text(total, "bold") + "\n"
    )


def _started_below(row: VerifiedPartition) -> bool:
    started, expected = row.started, row.expected
    return isinstance(expected, int) and started is not None and started < expected


def _style(row: VerifiedPartition) -> str:
    match row.outcome:
        case StartOutcome.OK:
            return "green"
        case StartOutcome.MOVED_ON | StartOutcome.UNKNOWN:
            return "yellow"
        case _:
            return "bold red"


def _up_to(verification: Verification, outcome: StartOutcome) -> str:
    """Return `` (up to N offsets)`` for an outcome, or an empty string."""
    offsets = sum(row.records for row in verification.partitions if row.outcome is outcome)
    return f" (up to {counted(offsets, 'offset')})" if offsets else ""


_MEANINGS = {
    StartOutcome.EXPIRED: "the target goes on below the log start: its next records are gone, and "
    "a query fails there; move again from a newer checkpoint, or go on with --on-expired earliest",
    StartOutcome.BEYOND_END: "the target goes on beyond the log end: the topic was created again, "
    "or this is another cluster than the job's",
    StartOutcome.RECREATED: "the topic was deleted and created again since the plan was made: the "
    "offsets are of another log; make a new plan",
    StartOutcome.GONE: "the broker has no such topic or partition; are these the brokers of the "
    "move?",
    StartOutcome.MOVED_ON: "others have committed since, and where they started cannot be told "
    "from the group any more; verify before its consumers start, or add --allow-moved-on",
}
# The maximum number of items that are shown in a list.
_MAX_SHOWN = 20


def outcome_lines(verification: Verification) -> Iterator[str]:
    """Yield explanations of the outcomes, with advice for the user."""
    yield from _about_the_plan(verification)
    if verification.continuous:
        yield (
            "the query began with the continuous trigger, which ignores a seed and does not record "
            "where it started: compare what it has written with the checkpoint"
        )
    yield from map(printable, verification.other_problems[1:])
    counts = verification.counts
    if verification.other_topics:
        yield (
            f"the query reads {printable(join_some(verification.other_topics, _MAX_SHOWN))}, and "
            "none of these topics: is this the checkpoint location of another query?"
        )
        return
    if verification.more_topics:
        yield (
            f"not compared: {printable(join_some(verification.more_topics, _MAX_SHOWN))}, which "
            "the query also reads"
        )
    unread = sum(
        row.outcome is StartOutcome.MISSING and row.started is not None
        for row in verification.partitions
    )
    if unread:
        yield (
            f"missing ({unread}): seeded, and not in each batch of the query's log: does the query "
            "read these topics, by the seed's numbers?"
        )
    unlisted = sum(
        row.outcome is StartOutcome.UNKNOWN and row.started is None
        for row in verification.partitions
    )
    if unlisted and not verification.continuous:
        yield (
            f"cannot tell ({unlisted}): neither seeded nor in the newest batch of the query's log: "
            "the query reads it from its next batch on, or never, if it assigns partitions; verify "
            "after that batch"
        )
    again = sum(
        row.outcome is StartOutcome.REPEATED and not _started_below(row)
        for row in verification.partitions
    )
    if again:
        yield (
            f"repeated ({again}): a batch of the query's log ends below the one before it: records "
            "were read twice, unless a repartitioning of the state has skipped a batch that failed"
        )
    for outcome, meaning in _MEANINGS.items():
        if outcome in counts:
            yield f"{outcome.value} ({counts[outcome]}): {meaning}"
    if verification.maybe_flink_commits:
        yield (
            f"{verification.maybe_flink_commits} of these commits look like a Flink job's (no "
            "leader epoch, no metadata): if it still runs and commits for this group, stop it and "
            "move again"
        )
    yield from _about_lost_evidence(verification)


def summary_line(verification: Verification, *, allow_moved_on: bool = False) -> str:
    """Return a line that reports whether the move is verified."""
    partitions = verification.partitions
    if not partitions:
        return "not verified: there is no partition to compare"
    if verification.other_problems:
        return f"not verified: {verification.other_problems[0]}"
    plan = verification.plan
    if plan is not None and plan.differences:
        return "not verified: the plan is not what it was made from"
    if plan is not None and plan.unmatched:
        unmatched = counted(len(plan.unmatched), "partition")
        return f"not verified: {unmatched} without a certain match in the target's cluster"
    bad = sum(row.outcome is not StartOutcome.OK for row in partitions)
    of_all = f"{bad} of {counted(len(partitions), 'partition')}"
    whole = "the one partition" if len(partitions) == 1 else f"all {len(partitions)} partitions"
    if not bad and verification.first_batches_gone:
        said = f"the seed was right in {whole}, and whether the query began there cannot be told"
        return f"verified but for this: {said}" if allow_moved_on else f"not verified: {said}"
    if not bad and verification.passed_by_log_start:
        return (
            f"the seed was right in {whole}; what retention took before the first batch cannot be "
            "told"
        )
    if not bad:
        start = "started" if verification.has_run else "will start"
        if plan is not None and plan.not_compared:
            return f"verified against the plan alone: {whole} {start} where the plan says"
        if plan is not None and plan.other_starts:
            as_checkpoint = len(partitions) - len(plan.other_starts)
            return (
                f"verified: {whole} {start} where the plan says, {as_checkpoint} of them where the "
                "checkpoint ended"
            )
        return f"verified: {whole} {start} where the checkpoint ended"
    if allow_moved_on and verification.verified_or_moved_on:
        return f"verified but for {of_all}, moved on as allowed"
    return f"not verified: {of_all} did not come out ok"


def _about_the_plan(verification: Verification) -> Iterator[str]:
    """Yield the result of comparing the plan with the positions that it was made from."""
    plan = verification.plan
    if plan is None:
        return
    if plan.not_compared:
        yield (
            "the plan was not compared with what it was made from, which cannot be read: "
            f"{printable(plan.not_compared)}"
        )
    for line in plan.differences[:_MAX_SHOWN]:
        yield f"the plan is not what it was made from: {printable(line)}"
    if len(plan.differences) > _MAX_SHOWN:
        yield f"and {len(plan.differences) - _MAX_SHOWN} differences more; make the plan again"
    if plan.unmatched:
        yield (
            f"without a match in the target's cluster ({len(plan.unmatched)}): "
            f"{printable(join_some(plan.unmatched, _MAX_SHOWN))}"
        )
    if plan.other_starts:
        yield (
            f"not an offset of the checkpoint ({len(plan.other_starts)}): "
            f"{printable(join_some(plan.other_starts, _MAX_SHOWN))}"
        )


def _about_lost_evidence(verification: Verification) -> Iterator[str]:
    """Yield facts that can no longer be verified, because log entries or records were deleted."""
    passed = verification.passed_by_log_start
    if passed:
        topic, partition = passed[0]
        yield (
            f"the log start of {counted(len(passed), 'partition')} lies above the seed now (the "
            f"first is {printable(topic)}-{partition}): whether the query read those records "
            "before retention took them cannot be told; if it has always run with "
            "failOnDataLoss=true, which fails then, add --allow-moved-on"
        )
    if verification.first_batches_gone:
        yield (
            "the query's log does not hold its first batches any more, which show that it began at "
            "its seed (Spark keeps spark.sql.streaming.minBatchesToRetain of them, by default "
            "100): see the record of the cut-over, if there is one, or add --allow-moved-on"
        )
