"""Track the savepoint, operator, and name of a state in the metadata of DataFrame columns.

A selected column keeps the metadata; a column that an expression computes has no metadata.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from migrate.extensions.keyed_state.column_metadata import (
    EXTERNAL,
    MAY_EXPIRE,
    OPERATOR,
    SAVEPOINT,
    STATE,
    TRUNCATE,
)
from migrate.extensions.stateful_query.catalog import START_DIFFERS_FROM_SAVEPOINT, START_MISSING
from migrate.inputs.flink.extract import read
from migrate.inputs.offsets_json import NextOffsets
from migrate.model.column_types import quoted
from migrate.model.message import Message
from migrate.model.positions import PositionState, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Two metadata keys: the ID of the ``mark_unexpired`` call that created a column, and the call's
# arguments.
_UNEXPIRED = "flink.unexpired"
_TIME_TO_LIVE = "flink.timeToLive"
# This column exists only in states with a TTL.
LAST_ACCESS = "last_access"


@dataclass(frozen=True, slots=True)
class StateOrigin:
    """A savepoint, an operator ID, and the name of the operator's state.

    The operator ID and the name are the values of the options with which the state was read (see
    ``keyed_state.views``).
    """

    savepoint: str
    operator_id: str
    state: str
    allow_external_files: bool
    truncate_keys: bool = False


def origin_of(state: DataFrame) -> StateOrigin | None:
    """Return the origin of a state; None if no column's metadata contains a savepoint."""
    for field in state.schema.fields:
        if SAVEPOINT in field.metadata:
            names = (SAVEPOINT, OPERATOR, STATE, EXTERNAL, TRUNCATE)
            return StateOrigin(*(field.metadata[name] for name in names))
    return None


def may_expire(state: DataFrame) -> bool:
    """Return whether a DataFrame might contain expired entries of a state with a TTL.

    Every state that the DataFrame reads is checked, because the DataFrame's plan shows these
    states. Spark Connect does not show the plan, so only the DataFrame's own columns are checked.
    If no column has state metadata, the result is True if the DataFrame has a ``last_access``
    column.
    """
    plan = getattr(state, "_jdf", None)
    marks = (
        _expiry_marks(state.schema)
        if plan is None
        else _plan_marks(plan.queryExecution().analyzed())
    )
    return any(marks) if marks else LAST_ACCESS in state.columns


def mark_unexpired(state: DataFrame, *time_to_live: int | None) -> DataFrame:
    """Return the same state, with its columns marked so that ``may_expire`` returns False.

    The marks also contain ``time_to_live``, which ``time_to_live_of`` later returns.
    """
    marks = {
        MAY_EXPIRE: False,
        _UNEXPIRED: str(uuid.uuid4()),
        _TIME_TO_LIVE: json.dumps(time_to_live),
    }
    return state.select(
        *(
            F.col(quoted(field.name)).alias(field.name, metadata={**field.metadata, **marks})
            for field in state.schema.fields
        )
    )


def time_to_live_of(frame: DataFrame) -> list[int | None] | None:
    """Return the ``time_to_live`` arguments of the ``mark_unexpired`` call behind a DataFrame.

    Return None if there was no such call. With Spark Connect, the call is found only if the
    DataFrame's own columns have its marks.
    """
    plan = getattr(frame, "_jdf", None)
    schemas = [frame.schema] if plan is None else _schemas(plan.queryExecution().analyzed())
    for schema in schemas:
        for field in schema.fields:
            if _UNEXPIRED in field.metadata:
                time_to_live: list[int | None] = json.loads(field.metadata[_TIME_TO_LIVE])
                return time_to_live
    return None


def _schemas(plan: Any) -> Iterator[StructType]:
    """Yield the schemas of a plan's nodes."""
    yield _schema_of(plan)
    for child in _inputs(plan):
        yield from _schemas(child)


def _inputs(plan: Any) -> list[Any]:
    sequences = (plan.children(), plan.subqueries())
    return [sequence.apply(n) for sequence in sequences for n in range(sequence.size())]


def _plan_marks(plan: Any) -> list[bool]:
    """Return, for each state column in a plan, whether its state might contain expired entries.

    The search stops at a plan node that ``mark_unexpired`` created, because the marks of this node
    replace the marks of the node's inputs.
    """
    schema = _schema_of(plan)
    inputs = _inputs(plan)
    calls = {call for child in inputs for call in _unexpired_calls(_schema_of(child))}
    if not inputs or _unexpired_calls(schema) - calls:
        return _expiry_marks(schema)
    return [mark for child in inputs for mark in _plan_marks(child)]


def _schema_of(plan: Any) -> StructType:
    return StructType.fromJson(json.loads(plan.schema().json()))


def _unexpired_calls(schema: StructType) -> set[str]:
    """Return the IDs of the ``mark_unexpired`` calls that created columns in the schema."""
    return {field.metadata[_UNEXPIRED] for field in schema.fields if _UNEXPIRED in field.metadata}


def _expiry_marks(schema: StructType) -> list[bool]:
    """Return, for each column of a state, whether the state might contain expired entries."""
    return [field.metadata[MAY_EXPIRE] for field in schema.fields if MAY_EXPIRE in field.metadata]


def contradictions(
    origins: Iterable[StateOrigin | None], starts: Iterable[NextOffsets]
) -> Iterator[Message]:
    """Yield a refusal for each partition that does not start at its offset in the savepoints.

    A partition is checked if a savepoint contains its offset and ``starts`` contains its topic.

    Raises:
        DecodeError: a savepoint cannot be read.
    """
    planned: dict[TopicPartition, set[int]] = {}
    for start in starts:
        for partition, next_offset in start.items():
            planned.setdefault(partition, set()).add(next_offset)
    topics = {topic for topic, _ in planned}
    saved: dict[TopicPartition, set[int]] = {}
    for origin in {origin for origin in origins if origin is not None}:
        extraction = read(origin.savepoint, allow_external_files=origin.allow_external_files)
        for source in extraction.sources:
            for position in source.positions:
                if position.state is PositionState.NEXT and position.next_offset is not None:
                    saved.setdefault(position.topic_partition, set()).add(position.next_offset)
    for (topic, number), offsets in sorted(saved.items()):
        starts_at = planned.get((topic, number), set())
        if topic in topics and not (starts_at and starts_at <= offsets):
            partition_name = f"{topic}-{number}"
            if starts_at:
                yield START_DIFFERS_FROM_SAVEPOINT(
                    partition=partition_name, starts=sorted(starts_at), offsets=sorted(offsets)
                )
            else:
                yield START_MISSING(partition=partition_name, offsets=sorted(offsets))
