"""Positions that are no checkpoint's, as what a plan is made from: a query's, a group's, a file's,
those of a broker's logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from decoder import PendingTransaction
from migrate.flink.extract import Finding
from migrate.flink.source import Source, SourceKind
from migrate.positions import Marker, Origin, Position, PositionSet, PositionState, Start

_STATES = {
    Marker.EARLIEST: PositionState.EARLIEST,
    Marker.LATEST: PositionState.LATEST,
    Marker.COMMITTED: PositionState.COMMITTED,
}


@dataclass(frozen=True, slots=True)
class ListedPositions:
    """A ``PlanInput`` of one source, which is none of Flink's."""

    origin: Origin
    sources: tuple[Source, ...]
    findings: tuple[Finding, ...] = ()
    state_bytes: Mapping[str, int] = field(default_factory=dict)
    pending: Mapping[str, Sequence[PendingTransaction]] = field(default_factory=dict)


def listed_source(
    operator_id: str, name: str, positions: PositionSet, *, starts_others: bool
) -> Source:
    """A source that stands where these positions are.

    Args:
        operator_id: what stands for an operator's.
        starts_others: whether its reader would start a partition that is not listed at the log
            start; else that is not known.
    """
    return Source(
        operator_id=operator_id,
        name=name,
        uid=None,
        kind=SourceKind.KAFKA_SOURCE,
        parallelism=1,
        max_parallelism=1,
        discovery_finished={None: starts_others},
        positions=tuple(
            _position(topic, partition, start)
            for (topic, partition), start in sorted(positions.starts.items())
        ),
        listed=True,
    )


def _position(topic: str, partition: int, start: Start) -> Position:
    match start:
        case int():
            return Position(topic, partition, PositionState.NEXT, start)
        case Marker():
            return Position(topic, partition, _STATES[start], start)
        case _:
            reason = "where it stands is not told"
            return Position(topic, partition, PositionState.UNRESOLVED, None, reason=reason)
