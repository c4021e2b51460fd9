"""The verification of a move, as a table and explanations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from migrate.model.option_names import option
from migrate.model.policies import Gone, OnExpired
from migrate.model.positions import SPARK_PREFIX, format_start
from migrate.model.wording import counted, join_some, printable
from migrate.planning.verify import StartOutcome, Verification, VerifiedPartition
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, table_lines


def verification_table(verification: Verification, out: TextIO, *, wide: bool = False) -> str:
    """Return a table of the offsets at which the target starts or started, and a totals line."""
    screen, rows = Screen.of(out), verification.partitions
    expected_by = "CHECKPOINT" if verification.plan is None else "PLAN"
    columns: tuple[Column[VerifiedPartition], ...] = (
        Column("OUTCOME", lambda row: row.outcome.value, style=_style),
        Column("TOPIC", lambda row: row.topic, own_line=Line.ABOVE),
        Column("PARTITION", lambda row: row.partition),
        Column(expected_by, lambda row: format_start(row.expected), right=True),
        Column("STARTED-AT" if verification.has_run else "WILL-START-AT", _start),
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


def _start(row: VerifiedPartition) -> int | None:
    """Return the start offset of a partition; None if the query does not read the partition."""
    return None if row.outcome is StartOutcome.MISSING else row.started


def _is_repeated(row: VerifiedPartition) -> bool:
    return row.outcome is StartOutcome.REPEATED


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


# The maximum number of items that are shown in a list.
_MAX_SHOWN = 20
_CORRECT = "the start offsets in the checkpoint location were correct"


def outcome_lines(verification: Verification, *, allow_moved_on: bool = False) -> Iterator[str]:
    """Yield explanations of the outcomes, with advice for the user.

    If ``allow_moved_on`` is set, the advice does not include it.
    """
    yield from _about_the_plan(verification)
    if verification.continuous:
        yield (
            "the query started with the continuous trigger; this trigger ignores the start offsets "
            "in the checkpoint location and does not record its own; compare the query's output "
            "with the checkpoint"
        )
    yield from map(printable, verification.other_problems[1:])
    counts = verification.counts
    if verification.other_topics:
        yield (
            f"the query reads {printable(join_some(verification.other_topics, _MAX_SHOWN))}, but "
            "none of these topics; check that this is the query's checkpoint location"
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
            f"missing ({unread}): not in each batch of the query's log, so the query does not read "
            "these partitions from the start offsets in the checkpoint location; check that it "
            "reads these topics with the source numbers N of these offsets (sources/N); then move "
            "again to a new checkpoint location, because this one contains the wrong batch"
        )
    yield from _about_missing_offsets(verification)
    unlisted = sum(
        row.outcome is StartOutcome.UNKNOWN and row.started is None
        for row in verification.partitions
    )
    if unlisted and not verification.continuous:
        yield (
            f"cannot tell ({unlisted}): neither in the start offsets in the checkpoint location "
            "nor in the newest batch of the query's log; unless the query assigns its partitions, "
            "it reads them from its next batch; verify again after the next batch"
        )
    repeated = [_started_below(row) for row in verification.partitions if _is_repeated(row)]
    if below := sum(repeated):
        yield (
            f"repeated ({below}): the target starts below the position, and rereads the records "
            "between; if CHK is newer than the checkpoint that was moved, pass the checkpoint that "
            "was moved, or the plan that was applied (plan:FILE); otherwise, move again"
        )
    if again := len(repeated) - below:
        yield (
            f"repeated ({again}): a batch of the query's log ends below the previous batch; "
            "records were read twice, unless a repartitioning of the state skipped a failed batch"
        )
    for outcome, meaning in _meanings().items():
        if outcome in counts:
            yield f"{outcome.value} ({counts[outcome]}): {meaning}"
    yield from _about_moved_on(verification, allow_moved_on=allow_moved_on)
    if verification.maybe_flink_commits:
        yield (
            f"{verification.maybe_flink_commits} of these commits may be from a Flink job or from "
            "migrate (no leader epoch, no metadata); if a Flink job still commits for this group, "
            "stop the job, and move again"
        )
    yield from _about_lost_evidence(verification, allow_moved_on=allow_moved_on)
    if verification.target.startswith(SPARK_PREFIX) and verification.verified_or_moved_on:
        skips, check = (
            ("may have skipped", "check that it contains the query's first records")
            if verification.has_run
            else ("may skip", f"to check it, run `migrate to-spark` with {option('sink', 'DIR')}")
        )
        yield (
            "not checked: the query's sink; if an earlier query wrote to the sink, the sink "
            f"{skips} the first batches of this query; {check}"
        )


def _meanings() -> dict[StartOutcome, str]:
    return {
        StartOutcome.LOST: "the target starts above the position, and skips the records between; "
        "if CHK is older than the checkpoint that was moved, pass the checkpoint that was moved, "
        "or the plan that was applied (plan:FILE); if the move accepted this loss (as with "
        f"{option('on_expired', OnExpired.EARLIEST)}), only a verification of its plan can take "
        "that into account; otherwise, move again",
        StartOutcome.EXPIRED: "the target's next offset is below the log start offset; these "
        "records were deleted, and a query fails there; move again from a newer checkpoint, or "
        f"continue with {option('on_expired', OnExpired.EARLIEST)}",
        StartOutcome.BEYOND_END: "the target's next offset is higher than the log end offset; the "
        "topic was recreated, or this is a different cluster than the job's",
        StartOutcome.RECREATED: "the topic was recreated after the plan was created or applied, "
        "so the positions are of a different log; move again from a checkpoint of the new topic",
        StartOutcome.SUSPECT: "most records below the offset are newer than the checkpoint; the "
        "topic was recreated, this is a different cluster than the job's, or producers set later "
        "timestamps; verify the plan that was applied (plan:FILE), which contains the topics' IDs",
        StartOutcome.GONE: "the broker has no such topic or partition; check that these are the "
        "brokers of the move; if the topic was deleted, create a plan without it "
        f"({option('gone', Gone.SKIP)}), and verify this plan (plan:FILE)",
    }


def _about_missing_offsets(verification: Verification) -> Iterator[str]:
    """Yield the reasons why partitions of the broker have no start offset in the target."""
    missing = StartOutcome.MISSING
    rows = [row for row in verification.partitions if row.outcome is missing]
    rows = [row for row in rows if row.started is None]
    in_checkpoint = sum(not row.added for row in rows)
    added = [row.name for row in rows if row.added]
    is_query = verification.target.startswith(SPARK_PREFIX)
    if is_query and rows:
        yield (
            f"{missing.value} ({len(rows)}): the query has no start offset for these partitions; "
            "it does not read the topic, or the partition was added after the move, "
            "and the log may no longer contain its first records; check that this is the query's "
            "checkpoint location, and move again to a new one"
        )
    if is_query:
        return
    source = "checkpoint" if verification.plan is None else "plan"
    if in_checkpoint:
        yield (
            f"{missing.value} ({in_checkpoint}): the group has no offset for these partitions, so "
            "its consumers start according to auto.offset.reset; nothing was committed (as in a "
            "dry run), a rollback removed the offsets, or Kafka removed them because they expired "
            "or the topic was recreated; unless you rolled back, move again"
        )
    if added:
        yield (
            f"{missing.value} ({len(added)}): {printable(join_some(added, _MAX_SHOWN))} is not in "
            f"the {source}, usually because the partition was added later; the group has no offset "
            "for it, so its consumers start according to auto.offset.reset; set "
            "auto.offset.reset=earliest, or move again to commit an offset"
        )


def _how_to_accept(*, allow_moved_on: bool) -> str:
    """Return what to do if the user knows that no record was lost."""
    return "no action is needed" if allow_moved_on else f"add {option('allow_moved_on', True)}"


def _about_moved_on(verification: Verification, *, allow_moved_on: bool) -> Iterator[str]:
    """Yield the reasons why partitions have moved on, as far as rollback files show the reasons."""
    moved_on = StartOutcome.MOVED_ON.value
    accept = _how_to_accept(allow_moved_on=allow_moved_on)
    for file, count in verification.moved_on_since.items():
        yield (
            f"{moved_on} ({count}): according to {printable(file)}, migrate committed these "
            "positions, and another client (or a run of migrate in a different directory) has "
            "committed higher offsets since; the group no longer shows the start offsets, so "
            "verify cannot determine whether the consumers started at the positions; if the "
            f"group's consumers made these commits, {accept}; otherwise, stop the other client, "
            "and move again"
        )
    unexplained = verification.counts.get(StartOutcome.MOVED_ON, 0)
    unexplained -= sum(verification.moved_on_since.values())
    if unexplained:
        yield (
            f"{moved_on} ({unexplained}): the group's offsets are higher than the positions, and "
            "no rollback file in this directory shows that migrate committed them. Possible "
            "causes: (1) another client has committed since the move, so the group no longer shows "
            "the start offsets; verify before the consumers start, or, if the group's consumers "
            f"made these commits, {accept}; (2) CHK is older than the checkpoint that was moved; "
            "pass the checkpoint that was moved, or the plan that was applied (plan:FILE); (3) "
            "migrate committed these offsets, but its rollback file is in a different directory; "
            "verify in that directory"
        )


def summary_line(verification: Verification, *, allow_moved_on: bool = False) -> str:
    """Return a line that reports whether the move is verified."""
    partitions = verification.partitions
    if not partitions:
        return "not verified: no partitions to compare"
    if verification.other_problems:
        return f"not verified: {verification.other_problems[0]}"
    plan = verification.plan
    if plan is not None and plan.differences:
        return "not verified: the plan differs from its origin"
    if plan is not None and plan.unmatched:
        unmatched = counted(len(plan.unmatched), "partition")
        return f"not verified: {unmatched} cannot be matched with certainty in the target's cluster"
    bad = sum(row.outcome is not StartOutcome.OK for row in partitions)
    of_all = f"{bad} of {counted(len(partitions), 'partition')}"
    whole = "the one partition" if len(partitions) == 1 else f"all {len(partitions)} partitions"
    if not bad and verification.first_batches_gone:
        said = f"{_CORRECT} in {whole}, but the query's start cannot be determined"
        return f"verified except for this: {said}" if allow_moved_on else f"not verified: {said}"
    if not bad and verification.passed_by_log_start:
        return (
            f"{_CORRECT} in {whole}; it cannot be determined whether retention deleted "
            "records before the first batch"
        )
    if not bad:
        start = "started" if verification.has_run else "will start"
        if plan is not None and plan.not_compared:
            return f"verified against the plan alone: {whole} {start} at the plan's offsets"
        if plan is not None and plan.other_starts:
            as_checkpoint = len(partitions) - len(plan.other_starts)
            return (
                f"verified: {whole} {start} at the plan's offsets, {as_checkpoint} of them where "
                "the checkpoint ended"
            )
        return f"verified: {whole} {start} where the checkpoint ended"
    if allow_moved_on and verification.verified_or_moved_on:
        return f"verified except for {of_all} with higher group offsets, as allowed"
    return f"not verified: {of_all} failed verification"


def _about_the_plan(verification: Verification) -> Iterator[str]:
    """Yield the result of comparing the plan with the positions on which it is based."""
    plan = verification.plan
    if plan is None:
        return
    if plan.not_compared:
        yield (
            "the plan was not compared with its origin, because the origin cannot be read: "
            f"{printable(plan.not_compared)}"
        )
    for line in plan.differences[:_MAX_SHOWN]:
        yield f"the plan differs from its origin: {printable(line)}"
    if len(plan.differences) > _MAX_SHOWN:
        yield f"and {len(plan.differences) - _MAX_SHOWN} more differences; create a new plan"
    if plan.unmatched:
        yield (
            f"without a match in the target's cluster ({len(plan.unmatched)}): "
            f"{printable(join_some(plan.unmatched, _MAX_SHOWN))}"
        )
    if plan.other_starts:
        yield (
            f"start offset in the plan differs from the checkpoint ({len(plan.other_starts)}): "
            f"{printable(join_some(plan.other_starts, _MAX_SHOWN))}"
        )


def _about_lost_evidence(verification: Verification, *, allow_moved_on: bool) -> Iterator[str]:
    """Yield facts that can no longer be verified because log entries or records were deleted."""
    accept = _how_to_accept(allow_moved_on=allow_moved_on)
    passed = verification.passed_by_log_start
    if passed:
        topic, partition = passed[0]
        yield (
            f"the log start offset of {counted(len(passed), 'partition')} is now higher than the "
            "start offset in the checkpoint location (the first is "
            f"{printable(topic)}-{partition}); retention may have deleted these records before the "
            "query read them; if the query has always run with "
            f"failOnDataLoss=true (it fails on such a loss), {accept}"
        )
    if verification.first_batches_gone:
        yield (
            "the query's log no longer contains its first batches, so its start cannot be "
            "verified (Spark keeps spark.sql.streaming.minBatchesToRetain batches, by default "
            "100); if an earlier verify or the record of the cut-over shows the start, or if the "
            f"lowest offsets in the sink are the start offsets, {accept}"
        )
