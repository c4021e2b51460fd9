"""Reread the origin of a saved plan, and compare it with the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from decoder import DecodeError
from migrate.inputs.flink.extract import read
from migrate.inputs.flink.source import Source
from migrate.inputs.plan_input import listed_source
from migrate.inputs.position_inputs import FILE_READERS, SideKind, parse_side, side_input
from migrate.inputs.spark_log import positions_after
from migrate.inputs.spark_log_entries import offsets_path
from migrate.inputs.spark_progress import batch_signs
from migrate.inputs.spark_query import query_directory, query_operator_id
from migrate.model.catalog import (
    BATCH_NOT_IN_LOG,
    POSITIONS_NOT_READABLE_AGAIN,
    QUERY_PROGRESS_UNKNOWN,
)
from migrate.model.errors import InputError, Refused
from migrate.model.positions import Marker, TopicPartition, format_position
from migrate.model.warning import warn
from migrate.model.warning_catalog import QUERY_MAY_RUN
from migrate.planning import Plan, PlannedPartition, Verdict
from migrate.planning.verify import PlanCheck
from migrate.storage.files import Files, MissingExtra

# For one partition, the start in each source, by the source's operator ID.
_StartByOperator = dict[str, int | Marker | None]
# The errors that are raised if an origin can no longer be read.
_UNREADABLE = (DecodeError, InputError, MissingExtra, OSError)


def compare_with_origin(plan: Plan, *, allow_external_files: bool) -> PlanCheck:
    """Compare a plan with its origin (a checkpoint, a batch of a Spark query, or positions)."""
    other_starts = _name_other_starts(plan)
    try:
        sources = _read_sources(plan, allow_external_files)
    except _UNREADABLE as error:
        return PlanCheck(not_compared=str(error), other_starts=other_starts)
    except _AnotherOrigin as other:
        return PlanCheck((str(other),), other_starts=other_starts)
    return PlanCheck(tuple(_differences(plan, sources)), other_starts=other_starts)


class _AnotherOrigin(Exception):
    """The path of the plan's origin now contains a different checkpoint or query."""


def _read_sources(plan: Plan, allow_external_files: bool) -> Sequence[Source]:
    """Reread the sources of the plan's origin.

    Raises:
        DecodeError, InputError, MissingExtra, OSError: the origin can no longer be read.
        _AnotherOrigin: the path now contains a different checkpoint or query.
    """
    origin = plan.origin
    match origin.kind:
        case "checkpoint":
            extraction = read(origin.pointer, allow_external_files=allow_external_files)
            if extraction.origin.number != origin.number:
                raise _AnotherOrigin(
                    f"{origin.pointer} now contains checkpoint {extraction.origin.number}, but "
                    f"the plan is for checkpoint {origin.number}"
                )
            return extraction.sources
        case "batch":
            files = Files()
            directory, operator_id = _find_query(plan, files)
            if not files.is_file(offsets_path(directory, origin.number)):
                raise InputError(BATCH_NOT_IN_LOG(directory=directory, batch=origin.number))
            positions = positions_after(origin.pointer, directory, origin.number, files)
            return [listed_source(operator_id, "Spark query", positions, starts_others=True)]
        case "positions":
            side = parse_side(origin.pointer)
            if side.kind not in {*FILE_READERS, SideKind.HUDI}:
                raise InputError(POSITIONS_NOT_READABLE_AGAIN(pointer=origin.pointer))
            sources = side_input(side, None, ()).sources
            return [
                replace(source, operator_id=name) for source in sources for name in plan.operators
            ]


def query_signs(plan: Plan) -> Iterator[str]:
    """Yield a line of evidence if the plan's Spark query has continued since the plan's batch.

    Raises:
        Refused: the plan was made without ``allow_ran_on``, and the checkpoint location cannot be
            read or now belongs to a different query.
    """
    try:
        _find_query(plan, Files())
        yield from batch_signs(plan.origin)
    except (*_UNREADABLE, _AnotherOrigin) as problem:
        if not plan.allow_ran_on:
            raise Refused(QUERY_PROGRESS_UNKNOWN(problem=str(problem))) from problem
        warn(QUERY_MAY_RUN())


def _find_query(plan: Plan, files: Files) -> tuple[str, str]:
    """Return the checkpoint location of the plan's Spark query, and the query's operator ID.

    Raises:
        InputError: the location or its metadata is missing, or the metadata is damaged.
        _AnotherOrigin: the query is not the one in the plan.
    """
    directory = query_directory(plan.origin.pointer, files)
    operator_id = query_operator_id(directory, files)
    if operator_id not in plan.operators:
        raise _AnotherOrigin(f"{directory} now belongs to a different query")
    return directory, operator_id


def _differences(plan: Plan, sources: Iterable[Source]) -> Iterator[str]:
    """Yield the differences between a plan and its origin's current sources, each in one line."""
    starts_now: dict[TopicPartition, _StartByOperator] = {}
    for source in sources:
        for position in source.positions if source.operator_id in plan.operators else ():
            if position.cluster in (None, plan.source_cluster):
                topic = plan.topic_map.get(position.topic, position.topic)
                starts = starts_now.setdefault((topic, position.partition), {})
                starts[source.operator_id] = position.start
    known = {operator for starts in starts_now.values() for operator in starts}
    for operator in sorted(set(plan.operators) - known):
        yield f"operator {operator} no longer has positions"
    for planned in plan.partitions:
        starts = starts_now.pop(planned.topic_partition, {})
        if problem := _difference(planned, starts):
            yield f"{planned.name}: {problem}"
    if not plan.only_some_partitions:
        for (topic, partition), starts in sorted(starts_now.items(), key=lambda item: item[0]):
            yield f"{topic}-{partition}: not in the plan; its position is {_join_starts(starts)}"


def _name_other_starts(plan: Plan) -> tuple[str, ...]:
    """List the partitions that do not start at the origin's offset, with their verdicts.

    A partition at ``earliest`` is omitted. The job has read none of its records, so the position is
    the log start offset, and starting there changes nothing. ``verify`` with a checkpoint also
    counts the partition as unchanged.
    """
    return tuple(
        f"{planned.name} ({planned.verdict.value}: the checkpoint has "
        f"{format_position(planned.position)}, the plan starts at {planned.next_offset})"
        for planned in plan.partitions
        if planned.next_offset is not None
        and planned.job_next_offset != planned.position
        and not (planned.verdict is Verdict.MARKER_RESOLVED and planned.position is Marker.EARLIEST)
    )


def _difference(planned: PlannedPartition, starts: Mapping[str, int | Marker | None]) -> str:
    """Return the difference between a partition's ``starts`` and the plan; "" if they agree."""
    if planned.operator_id is None:
        return f"unknown in the plan, but its position is {_join_starts(starts)}" if starts else ""
    if planned.operator_id not in starts:
        return f"operator {planned.operator_id} does not have this partition"
    start = starts[planned.operator_id]
    if start != planned.position:
        planned_start = format_position(planned.position)
        return f"its position is {format_position(start)}, but {planned_start} in the plan"
    if planned.verdict.is_at_position and any(
        isinstance(other, int) and isinstance(start, int) and other < start
        for other in starts.values()
    ):
        all_starts = _join_starts(starts)
        return f"its position in the plan is {start}, which is not the lowest of {all_starts}"
    return ""


def _join_starts(starts: Mapping[str, int | Marker | None]) -> str:
    return " and ".join(format_position(start) for start in starts.values())
