"""PositionSet: where one side stands, topic-partition by topic-partition.

A side is anything that can be laid beside another: a Flink checkpoint, a consumer group, a Spark
query, a file, the broker's own logs. Past here they are all alike, and none of them is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from typing_extensions import assert_never

from migrate.errors import InputError, Refused
from migrate.extract import Source
from migrate.positions import Marker, Position, Start, TopicPartition, Unknown
from migrate.snapshot import GroupView, LogRange
from migrate.wording import did_you_mean

Logs: TypeAlias = Mapping[str, Mapping[int, LogRange]]


class AmbiguousPositions(Refused):
    """One side holds a topic-partition twice, with different next offsets."""

    def __init__(self, problem: str) -> None:
        super().__init__([problem])


class UnreadableInput(InputError):
    """A file or directory of positions that is missing, damaged or of an unknown version."""


@dataclass(frozen=True, slots=True)
class PositionSet:
    """Where one side stands.

    Attributes:
        label: the side as its user named it.
        starts: never holds ``ABSENT``: what a side does not know is missing from it.
        note: what else there is to say of the side, such as which batch it is.
    """

    label: str
    starts: Mapping[TopicPartition, Start]
    note: str = ""

    def at(self, topic: str, partition: int) -> Start:
        return self.starts.get((topic, partition), Unknown.ABSENT)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(topic for topic, _ in self.starts)


def resolve(start: Start, log: LogRange | None) -> int | None:
    """The next offset of a start, where it has one or the log tells it.

    Only ``earliest`` can be resolved by looking at a log: today's log end is not the ``latest`` of
    another day, and ``committed`` is known to a group alone.
    """
    match start:
        case int():
            return start
        case Marker.EARLIEST:
            return log.start if log is not None else None
        case Marker.LATEST | Marker.COMMITTED | Unknown():
            return None
        case _:
            assert_never(start)


def log_of(logs: Logs, topic: str, partition: int) -> LogRange | None:
    return logs.get(topic, {}).get(partition)


# -- makers --------------------------------------------------------------------------------------


def source_positions(label: str, sources: Iterable[Source], note: str = "") -> PositionSet:
    """The positions of some sources of a checkpoint.

    Raises:
        AmbiguousPositions: two of them read one partition and stand at different places, or they
            read several clusters.
    """
    starts: dict[TopicPartition, Start] = {}
    sources = list(sources)
    clusters = {position.cluster for source in sources for position in source.positions}
    if len(clusters) > 1:
        names = ", ".join(sorted(repr(name) for name in clusters if name is not None))
        raise AmbiguousPositions(
            f"{label}: its positions are of several clusters ({names}); choose one with --cluster "
            "ID, or a source with --source OPERATOR_ID"
        )
    for source in sources:
        for position in source.positions:
            start = _start(position)
            if starts.setdefault(position.topic_partition, start) != start:
                raise AmbiguousPositions(
                    f"{label}: two sources read {position.topic}-{position.partition} and stand "
                    f"at {shown(starts[position.topic_partition])} and {shown(start)}; choose one "
                    "with --source OPERATOR_ID"
                )
    return PositionSet(label, starts, note)


def _start(position: Position) -> Start:
    return position.start if position.start is not None else Unknown.UNRESOLVED


def group_positions(label: str, group: GroupView) -> PositionSet:
    """What a consumer group has committed, of all its topics."""
    starts = {place: committed.next_offset for place, committed in group.committed.items()}
    note = "" if group.exists else "there is no such group" + did_you_mean(group.alike)
    return PositionSet(label, starts, note)


def log_starts(label: str, logs: Logs) -> PositionSet:
    """The log start of every partition."""
    return PositionSet(label, {place: log.start for place, log in _each(logs)})


def log_ends(label: str, logs: Logs) -> PositionSet:
    """The log end of every partition."""
    return PositionSet(label, {place: log.end for place, log in _each(logs)})


def _each(logs: Logs) -> list[tuple[TopicPartition, LogRange]]:
    return [
        ((topic, partition), log)
        for topic, partitions in logs.items()
        for partition, log in partitions.items()
    ]


def shown(start: Start) -> str:
    """A start in words."""
    return start.value if not isinstance(start, int) else str(start)
