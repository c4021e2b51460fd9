"""What ``show`` shows: a plan, a rollback file, a query's checkpoint location, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from migrate.model.positions import SPARK_PREFIX, format_start
from migrate.model.wording import counted, printable
from migrate.planning import Plan
from migrate.report.plan import plan_table
from migrate.report.table import Column, Line, draw, numbers
from migrate.report.text import Screen

if TYPE_CHECKING:
    from migrate.inputs.spark_query import QueryLocation
    from migrate.model.cluster_snapshot import Committed
    from migrate.model.positions import TopicPartition
    from migrate.targets.group.rollback_file import RollbackFile


def plan_text(plan: Plan, name: str, out: TextIO, *, wide: bool = False) -> Iterator[str]:
    """The plan's head, its partitions as ``commit-group`` shows them, its warnings, a next step."""
    spark = plan.target.kind == "spark"
    yield f"plan of {plan.made_at.isoformat(timespec='seconds')}\n"
    yield f"from:    {printable(plan.origin.title)}, {printable(plan.origin.pointer)}\n"
    yield f"to:      {'a Spark query' if spark else f'consumer group {plan.target.name}'}\n"
    cluster = plan.cluster_id or "no broker was asked: nothing was checked against Kafka"
    yield f"cluster: {printable(cluster)}\n\n"
    yield plan_table(plan.partitions, out, wide=wide)
    yield "\n"
    for warning in plan.warnings:
        yield f"warning: {printable(warning)}\n"
    command = "to-spark" if spark else f"commit-group --group {plan.target.name}"
    brokers = "" if plan.cluster_id is None else " -b HOST:PORT"
    whole = counted(len(plan.partitions), "partition")
    yield f"{whole}; apply: migrate {command} --plan {name}{brokers}\n"


def rollback_text(file: RollbackFile, name: str, out: TextIO) -> Iterator[str]:
    """What the group held before the change, and what it was to hold after it."""
    before, after = file.before.committed, file.after.committed
    yield f"rollback file of {file.created_at}, written before a {file.change}\n"
    new = "" if file.before.exists else ", which did not exist before"
    yield f"group:   {printable(file.group)}{new}\n"
    yield f"brokers: {printable(file.bootstrap_servers)}\n\n"
    rows = [
        (place, (_offset(before.get(place)), _offset(after.get(place))))
        for place in sorted(before.keys() | after.keys())
    ]
    yield from _table(("BEFORE", "AFTER"), rows, out)
    changed = counted(len(file.touched), "partition")
    yield f"\n{changed} changed; what would come back: migrate rollback {name}\n"


def location_text(location: QueryLocation, name: str, out: TextIO) -> Iterator[str]:
    """Where a query started and where it stands."""
    known = {"STARTS-AT": location.started, "NEXT-OFFSET": location.committed}
    sides = {title: side for title, side in known.items() if side is not None}
    yield f"checkpoint location {printable(location.directory)}\n"
    if location.committed is None:
        yield "no query has run from it yet\n\n"
    else:
        yield f"a query has run from it: it stands {location.committed.note}\n\n"
    places = sorted({place for side in sides.values() for place in side.starts})
    rows = [(place, [format_start(side.at(*place)) for side in sides.values()]) for place in places]
    yield from _table(tuple(sides), rows, out)
    whole = counted(len(places), "partition")
    spark = name if name.startswith(SPARK_PREFIX) else SPARK_PREFIX + name
    yield f"\n{whole}; did it start where the checkpoint ended: migrate verify CHK {spark}\n"


_Row = tuple["TopicPartition", Sequence[str]]


def _table(titles: Sequence[str], rows: Sequence[_Row], out: TextIO) -> Iterator[str]:
    columns: tuple[Column[_Row], ...] = (
        Column("TOPIC", lambda row: printable(row[0][0]), apart=Line.ABOVE),
        numbers("PARTITION", lambda row: row[0][1]),
        *(_number_column(title, at) for at, title in enumerate(titles)),
    )
    return draw(columns, rows, Screen.of(out))


def _number_column(title: str, at: int) -> Column[_Row]:
    return Column(title, lambda row: row[1][at], right=True)


def _offset(committed: Committed | None) -> str:
    return "none" if committed is None else str(committed.next_offset)
