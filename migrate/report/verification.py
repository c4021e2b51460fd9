"""What became of a move, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.table import Table
from rich.text import Text

from migrate.comparing.verify import StartOutcome, Verification
from migrate.report.text import console_for, number_text, print_whole
from migrate.wording import visible


def verification_table(verification: Verification, out: TextIO) -> str:
    """How the target started, partition by partition, and a total."""
    console, text = console_for(out)
    table = Table("topic", box=None)
    start = "started" if verification.has_run else "will start at"
    for column in ("partition", "checkpoint", start):
        table.add_column(column, justify="right")
    table.add_column("outcome")
    table.add_column("records", justify="right")
    for one in verification.partitions:
        expected = one.expected if isinstance(one.expected, int) else one.expected.value
        table.add_row(
            Text(visible(one.topic)),
            str(one.partition),
            str(expected),
            number_text(one.started),
            one.outcome.value,
            str(one.records or ""),
        )
    print_whole(console, table)
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in verification.counts.items())
    console.print(Text(f"{visible(verification.target)}: {counts}", style="bold"), soft_wrap=True)
    return text.getvalue()


_MEANINGS = {
    StartOutcome.EXPIRED: (
        "the target goes on below the log start: its next records are gone, and a query fails "
        "there; move again from a newer checkpoint, or go on after the gap with --on-expired "
        "earliest"
    ),
    StartOutcome.BEYOND_END: (
        "the target goes on beyond the log end: the topic was created again, or this is another "
        "cluster than the job's"
    ),
    StartOutcome.RECREATED: (
        "the topic was deleted and created again since the plan was made: the offsets are of "
        "another log; make a new plan"
    ),
    StartOutcome.GONE: "the broker has no such topic or partition; are these the brokers of "
    "the move?",
}


def outcome_lines(verification: Verification) -> Iterator[str]:
    """What outcomes mean that a word does not say."""
    if verification.continuous:
        yield (
            "the query began with the continuous trigger, which does not heed a seed and leaves "
            "no word of where it started: compare what it has written with the checkpoint"
        )
    counts = verification.counts
    for outcome, meaning in _MEANINGS.items():
        if outcome in counts:
            yield f"{outcome.value} ({counts[outcome]}): {meaning}"
    yield from _about_moving_on(verification)


def _about_moving_on(verification: Verification) -> Iterator[str]:
    """What it means that a group has moved on, and what may have moved it."""
    moved_on = verification.counts.get(StartOutcome.MOVED_ON)
    if moved_on is None:
        return
    yield (
        f"moved on ({moved_on}): others have committed since, and where they started cannot be "
        "told from the group any more; verify before its consumers start, or add --allow-moved-on"
    )
    if verification.like_flinks:
        yield (
            f"{verification.like_flinks} of these commits look like a Flink job's (no leader "
            "epoch, no metadata): if it still runs and commits for this group, stop it and move "
            "again"
        )
