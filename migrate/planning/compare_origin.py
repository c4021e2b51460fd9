"""Compare a saved plan with the current positions of its checkpoint or other origin. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from migrate.inputs.flink.source import Source
from migrate.model.positions import Marker, TopicPartition, format_start
from migrate.planning.plan import Plan, PlannedPartition

# The start of a partition in each source, by operator id.
_Starts = dict[str, int | Marker | None]


def plan_differences(plan: Plan, sources: Iterable[Source]) -> Iterator[str]:
    """Yield the differences between a plan and its origin, each in one line.

    Args:
        plan: the plan, as read from its file.
        sources: the current sources of the plan's origin.
    """
    starts_now: dict[TopicPartition, _Starts] = {}
    for source in sources:
        for position in source.positions if source.operator_id in plan.operators else ():
            if position.cluster in (None, plan.source_cluster):
                topic = plan.topic_map.get(position.topic, position.topic)
                starts = starts_now.setdefault((topic, position.partition), {})
                starts[source.operator_id] = position.start
    known = {operator for starts in starts_now.values() for operator in starts}
    for operator in sorted(set(plan.operators) - known):
        yield f"operator {operator} has no positions there"
    for planned in plan.partitions:
        starts = starts_now.pop(planned.topic_partition, {})
        if problem := _difference(planned, starts):
            yield f"{planned.name}: {problem}"
    if not plan.only_some_partitions:
        for (topic, partition), starts in sorted(starts_now.items(), key=lambda item: item[0]):
            yield f"{topic}-{partition}: the plan lacks it, which is at {_join_starts(starts)}"


def name_other_starts(plan: Plan) -> tuple[str, ...]:
    """Name the partitions that start at another offset than the checkpoint has, with the verdict.

    These are resolved markers, new partitions, and starts that the user's options chose.
    """
    return tuple(
        f"{planned.name} ({planned.verdict.value}: the checkpoint has "
        f"{_format_start(planned.position)}, the plan starts at {planned.next_offset})"
        for planned in plan.partitions
        if planned.next_offset is not None and planned.job_next_offset != planned.position
    )


def _difference(planned: PlannedPartition, starts: Mapping[str, int | Marker | None]) -> str:
    """Return how a partition of the plan differs from its current ``starts``, or an empty text."""
    if planned.operator_id is None:
        return f"the plan has it as unknown, and it is at {_join_starts(starts)}" if starts else ""
    if planned.operator_id not in starts:
        return f"operator {planned.operator_id} does not have it"
    start = starts[planned.operator_id]
    if start != planned.position:
        planned_start = _format_start(planned.position)
        return f"it is at {_format_start(start)}, and the plan has it at {planned_start}"
    if planned.verdict.is_at_position and any(
        isinstance(other, int) and isinstance(start, int) and other < start
        for other in starts.values()
    ):
        return f"the plan has it at {start}, which is not the lowest of {_join_starts(starts)}"
    return ""


def _join_starts(starts: Mapping[str, int | Marker | None]) -> str:
    return " and ".join(_format_start(start) for start in starts.values())


def _format_start(start: int | Marker | None) -> str:
    return "no offset" if start is None else format_start(start)
