"""Inputs of a plan: Kafka sources with positions, and findings.

An input is a decoded checkpoint, or a list of positions from a Spark query, a consumer group, a
file, or the Kafka logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from decoder import PendingTransaction
from migrate.inputs.flink.source import Source, SourceKind
from migrate.model.finding import Finding
from migrate.model.positions import (
    Marker,
    Origin,
    Position,
    PositionSet,
    PositionState,
    Start,
)


class PlanInput(Protocol):
    """The sources and findings of a checkpoint or of another input."""

    @property
    def origin(self) -> Origin: ...

    @property
    def sources(self) -> tuple[Source, ...]: ...

    @property
    def findings(self) -> tuple[Finding, ...]: ...

    @property
    def state_bytes(self) -> Mapping[str, int]:
        """The number of bytes of state that may contain records, by operator ID."""

    @property
    def pending(self) -> Mapping[str, Sequence[PendingTransaction]]:
        """The uncommitted transactions of each KafkaSink, by operator ID."""


@dataclass(frozen=True, slots=True)
class ListedPositions:
    """A ``PlanInput`` that is not a checkpoint but a single source with listed positions."""

    origin: Origin
    sources: tuple[Source, ...]
    findings: tuple[Finding, ...] = ()
    state_bytes: Mapping[str, int] = field(default_factory=dict)
    pending: Mapping[str, Sequence[PendingTransaction]] = field(default_factory=dict)


def listed_source(
    operator_id: str, name: str, positions: PositionSet, *, starts_others: bool
) -> Source:
    """Return positions as a source.

    If ``starts_others`` is true, the reader of these positions reads all other partitions from the
    log start offset. Otherwise, the start of the other partitions is unknown.
    """
    return Source(
        operator_id=operator_id,
        name=name,
        uid=None,
        kind=SourceKind.POSITION_LIST,
        parallelism=1,
        max_parallelism=1,
        discovery_finished={None: starts_others},
        position_fields=tuple(
            _position(topic, partition, start)
            for (topic, partition), start in sorted(positions.starts.items())
        ),
    )


def _position(topic: str, partition: int, start: Start) -> Position:
    match start:
        case int():
            return Position(topic, partition, PositionState.NEXT, start)
        case Marker():
            return Position(topic, partition, PositionState(start.value), start)
        case _:
            unresolved = PositionState.UNRESOLVED
            reason = "the input has no offset for it"
            return Position(topic, partition, unresolved, None, reason=reason)
