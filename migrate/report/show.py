"""The output of ``migrate show`` for a plan, a rollback file, or a query's checkpoint location."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, TextIO

from migrate.model.positions import SPARK_PREFIX, format_start
from migrate.model.wording import counted, printable
from migrate.planning import Plan
from migrate.report.plan import committed_text, plan_table
from migrate.report.table import Column, Line, table_text

if TYPE_CHECKING:
    from migrate.inputs.spark_query import QueryLocation
    from migrate.model.positions import TopicPartition
    from migrate.targets.group.rollback_file import RollbackFile


def plan_text(plan: Plan, name: str, out: TextIO, *, wide: bool = False) -> Iterator[str]:
    """Yield a plan: origin, target, partitions, warnings, and the command that applies it."""
    at_this_time = "" if plan.cluster_id is None else "; Kafka's offsets and LAG are of this time"
    yield f"plan made at {plan.made_at.isoformat(timespec='seconds')}{at_this_time}\n"
    stopped = " (stop-with-savepoint)" if plan.origin.stopped else ""
    yield f"from:    {printable(plan.origin.title)}, {printable(plan.origin.pointer)}{stopped}\n"
    yield f"to:      {printable(plan.target.title)}\n"
    cluster = plan.cluster_id or "no broker was queried, so nothing was checked against Kafka"
    there = f"; its target reads {plan.to_cluster_id}" if plan.is_translated else ""
    yield f"cluster: {printable(cluster + there)}\n\n"
    yield plan_table(plan.partitions, out, wide=wide)
    yield "\n"
    for warning in plan.warnings:
        yield f"warning: {printable(warning)}\n"
    command = printable(shlex.join(plan.apply_command(name)))
    yield f"{counted(len(plan.partitions), 'partition')}; apply: {command}\n"


def rollback_text(file: RollbackFile, name: str, out: TextIO) -> Iterator[str]:
    """Yield the group's offsets before the change, and the intended offsets after it."""
    before, after = file.before.committed, file.after.committed
    yield f"rollback file of {file.created_at}, written before a {file.change}\n"
    new = "" if file.before.exists else " (did not exist before)"
    yield f"group:   {printable(file.group)}{new}\n"
    yield f"brokers: {printable(file.bootstrap_servers)}\n\n"
    rows = [
        (partition, (committed_text(before.get(partition)), committed_text(after.get(partition))))
        for partition in sorted(before.keys() | after.keys())
    ]
    yield _table(("BEFORE", "AFTER"), rows, out)
    changed = counted(len(file.changed_partitions), "partition")
    command = printable(shlex.join(["migrate", "rollback", name]))
    yield f"{changed} changed; to preview the rollback: {command}\n"


def location_text(location: QueryLocation, name: str, out: TextIO) -> Iterator[str]:
    """Yield a query's start offsets, and the offsets that it reads next."""
    known = {"STARTS-AT": location.start_positions, "NEXT-OFFSET": location.committed}
    sides = {title: side for title, side in known.items() if side is not None}
    yield f"checkpoint location {printable(location.directory)}\n"
    if location.committed is None:
        yield "no query has run from it\n\n"
    else:
        yield f"a query has run from it, and is {location.committed.note}\n\n"
    partitions = sorted({key for side in sides.values() for key in side.starts})
    rows = [(key, [format_start(side.at(*key)) for side in sides.values()]) for key in partitions]
    yield _table(tuple(sides), rows, out)
    whole = counted(len(partitions), "partition")
    spark = name if name.startswith(SPARK_PREFIX) else SPARK_PREFIX + name
    command = printable(shlex.join(["migrate", "verify", "CHK", spark]))
    yield f"{whole}; to verify that the query starts where the checkpoint ended: {command}\n"


_Row = tuple["TopicPartition", Sequence[str]]


def _table(titles: Sequence[str], rows: Sequence[_Row], out: TextIO) -> str:
    def offsets(title: str, number: int) -> Column[_Row]:
        return Column(title, lambda row: row[1][number], right=True)

    columns: tuple[Column[_Row], ...] = (
        Column("TOPIC", lambda row: row[0][0], own_line=Line.ABOVE),
        Column("PARTITION", lambda row: row[0][1]),
        *map(offsets, titles, count()),
    )
    return table_text(columns, rows, out)
