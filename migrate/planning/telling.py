"""A plan in lines, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from migrate.planning.model import Plan, PlannedPartition, Verdict
from migrate.wording import counted


def plan_lines(plan: Plan) -> Iterator[str]:
    """A total, each partition that does not simply go on, and what is in order after all."""
    if plan.partitions:
        yield from _partition_lines(plan)
    yield from plan.notes


def _partition_lines(plan: Plan) -> Iterator[str]:
    topics = {planned.topic for planned in plan.partitions}
    verdicts = Counter(planned.verdict for planned in plan.partitions)
    counts = ", ".join(
        f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]
    )
    partitions = counted(len(plan.partitions), "partition")
    yield f"{partitions} of {counted(len(topics), 'topic')}: {counts}"
    for planned in plan.partitions:
        cost = "".join(_cost(planned))
        if (planned.verdict is not Verdict.OK or cost) and planned.next_offset is not None:
            yield (
                f"{planned.topic}-{planned.partition}: {planned.verdict.value}, "
                f"from {planned.next_offset}{cost}"
            )


def _cost(planned: PlannedPartition) -> Iterator[str]:
    for what, records in (("loses", planned.lost), ("repeats", planned.repeated)):
        if records != 0:
            amount = "?" if records is None else f"up to {records}"
            yield f", {what} {amount} records"
