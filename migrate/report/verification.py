"""What became of a move, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.table import Table
from rich.text import Text

from migrate.report.console import console_for, print_whole
from migrate.report.text import number_text
from migrate.verification import Outcome, Verification
from migrate.wording import visible


def verification_table(verification: Verification, out: TextIO) -> str:
    """How the target started, partition by partition, and a total."""
    console, text = console_for(out)
    table = Table("topic", box=None)
    for column in ("partition", "checkpoint", "started"):
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


def moved_on_lines(verification: Verification) -> Iterator[str]:
    """What it means that a group has moved on, and what may have moved it."""
    moved_on = verification.counts.get(Outcome.MOVED_ON)
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
