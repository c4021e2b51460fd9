"""The Kafka sources of a job in a common format, and the positions of a FlinkKafkaConsumer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from itertools import chain

from decoder import (
    BeamKafkaIO,
    DynamicKafkaSource,
    HybridSource,
    KafkaSource,
    LegacyConsumer,
    Operator,
    ReaderSplit,
    UnknownSource,
)
from decoder.kafka.enumerator import AssignmentStatus, EnumeratorEntry, EnumeratorState
from decoder.kafka.legacy import EARLIEST, GROUP, LATEST, NOT_SET, LegacyOffset
from decoder.kafka.split import Split
from migrate.inputs.flink.kafka_source import PositionStart, merged_positions, unknown_start
from migrate.model.positions import Marker, Position, PositionFields, PositionState, TopicPartition

_VERSION_3 = 3  # an enumerator version whose entries contain splits with offsets
# Create a Position from its fields, in half the time that ``Position(*fields)`` takes.
_position: Callable[[PositionFields], Position] = partial(tuple.__new__, Position)

KafkaState = KafkaSource | DynamicKafkaSource | HybridSource | LegacyConsumer | BeamKafkaIO


class SourceKind(str, Enum):
    """The kind of a Kafka source: its class in Flink or Beam, or a list of positions."""

    KAFKA_SOURCE = "KafkaSource"
    FLINK_KAFKA_CONSUMER = "FlinkKafkaConsumer"
    DYNAMIC_KAFKA_SOURCE = "DynamicKafkaSource"
    HYBRID_SOURCE = "HybridSource"
    BEAM_KAFKA_IO = "BeamKafkaIO"
    POSITION_LIST = "position list"  # from any input except Flink and Beam, such as a Spark query


_KINDS = {
    KafkaSource: SourceKind.KAFKA_SOURCE,
    LegacyConsumer: SourceKind.FLINK_KAFKA_CONSUMER,
    DynamicKafkaSource: SourceKind.DYNAMIC_KAFKA_SOURCE,
    HybridSource: SourceKind.HYBRID_SOURCE,
    BeamKafkaIO: SourceKind.BEAM_KAFKA_IO,
}


@dataclass(frozen=True)
class Source:
    """A Kafka source of a job.

    Attributes:
        discovery_finished: for each cluster, whether the first discovery of partitions had
            finished; None if the state does not show this. The key None represents a cluster
            without a name.
        position_fields: the fields of the positions, sorted by cluster, topic, and partition. A
            source may have 100,000 positions, and a loop over the fields takes less time than a
            loop over ``positions``.
        brokers: for each cluster of a DynamicKafkaSource, its bootstrap servers; each string is a
            list of ``host:port``, separated by commas.
    """

    operator_id: str
    name: str | None
    uid: str | None
    kind: SourceKind
    parallelism: int
    max_parallelism: int
    discovery_finished: Mapping[str | None, bool | None]
    position_fields: tuple[PositionFields, ...]
    brokers: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def positions(self) -> tuple[Position, ...]:
        """The positions, sorted by cluster, topic, and partition."""
        return tuple(map(_position, self.position_fields))

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(position.topic for position in self.positions)

    @property
    def clusters(self) -> frozenset[str | None]:
        """The clusters of the positions; None represents a cluster without a name."""
        return frozenset(position.cluster for position in self.positions)

    @property
    def initial_discovery_finished(self) -> bool | None:
        """True if the first discovery of partitions had finished in every cluster.

        None means that the state does not show this. If the discovery had finished, a partition
        that is missing from the state starts at the log start offset. If it had not finished, the
        start depends on the job's starting policy, which is not in the state.
        """
        finished = set(self.discovery_finished.values())
        if False in finished:
            return False
        return None if None in finished else True

    @property
    def starts_absent_partitions_at_log_start(self) -> bool:
        """True if the restored job starts absent partitions at the log start offset.

        An absent partition is on the broker, but not in the state.

        A FlinkKafkaConsumer always starts such partitions at the log start offset. Source:
        FlinkKafkaConsumerBase.open @ connector 3.4.0-1.20.
        """
        if self.kind is SourceKind.FLINK_KAFKA_CONSUMER:
            return True
        return self.initial_discovery_finished is True

    def of_cluster(self, cluster: str | None) -> Source:
        """Return the source with one cluster's positions; None means a cluster without a name."""
        return replace(
            self,
            discovery_finished={cluster: self.discovery_finished.get(cluster)},
            position_fields=tuple(p for p in self.positions if p.cluster == cluster),
        )


def source_of(operator: Operator, state: KafkaState) -> Source:
    """Return the Kafka source of an operator.

    A HybridSource has positions only while its current source is a Kafka source.
    """
    clusters = kafka_clusters(state)
    positions: tuple[PositionFields, ...]
    if isinstance(state, LegacyConsumer):
        positions = tuple(legacy_positions(state))
    else:
        positions = tuple(
            chain.from_iterable(
                merged_positions(clusters[cluster], cluster)
                for cluster in sorted(clusters, key=lambda name: name or "")
            )
        )
    return Source(
        operator.operator_id,
        operator.name,
        operator.uid,
        _KINDS[type(state)],
        operator.parallelism,
        operator.max_parallelism,
        {
            cluster: known.enumerator.initial_discovery_finished if known.enumerator else None
            for cluster, known in clusters.items()
        }
        or {None: None},
        positions,
        _brokers(state),
    )


def kafka_clusters(state: KafkaState | UnknownSource) -> Mapping[str | None, KafkaSource]:
    """Return the state of a source in each cluster; None means a cluster without a name.

    The result is empty for a FlinkKafkaConsumer (because its state has a different format) and for
    an unknown source.
    """
    match state:
        case KafkaSource():
            return {None: state}
        case DynamicKafkaSource():
            return dict(state.clusters.items())
        case HybridSource():
            return kafka_clusters(state.current)
        case BeamKafkaIO():
            return {None: _as_a_kafka_source(state)}
        case LegacyConsumer() | UnknownSource():
            return {}


def _as_a_kafka_source(state: BeamKafkaIO) -> KafkaSource:
    """Convert a KafkaIO to a KafkaSource; unassigned splits become enumerator entries."""
    reader_splits = tuple(
        ReaderSplit(subtask, Split(mark.topic, mark.partition, mark.next_offset, None))
        for subtask, mark in state.assigned
    )
    waiting = tuple(
        EnumeratorEntry(
            mark.topic,
            mark.partition,
            AssignmentStatus.UNASSIGNED,
            Split(mark.topic, mark.partition, mark.next_offset, None),
        )
        for mark in state.unassigned
    )
    return KafkaSource(reader_splits, EnumeratorState(_VERSION_3, waiting, None))


def _brokers(state: KafkaState) -> dict[str, frozenset[str]]:
    """Return the brokers in the enumerator state of a DynamicKafkaSource, by cluster ID."""
    if isinstance(state, HybridSource) and not isinstance(state.current, UnknownSource):
        state = state.current
    if not isinstance(state, DynamicKafkaSource) or state.enumerator is None:
        return {}
    brokers: dict[str, set[str]] = {}
    for clusters in state.enumerator.streams.values():
        for cluster, stream in clusters.items():
            brokers.setdefault(cluster, set()).add(stream.bootstrap_servers)
    return {cluster: frozenset(servers) for cluster, servers in brokers.items()}


_MARKERS = {EARLIEST: Marker.EARLIEST, LATEST: Marker.LATEST, GROUP: Marker.COMMITTED}


def legacy_positions(state: LegacyConsumer) -> Iterator[Position]:
    """Yield the positions of a FlinkKafkaConsumer, sorted by topic and partition.

    The offsets are stored as union list state. After a restore, every subtask has the offsets of
    all subtasks. If a subtask is closed before the next checkpoint, the subtask stores all of these
    partitions in that checkpoint (FlinkKafkaConsumerBase.snapshotState). Therefore, the state may
    list a partition several times.
    """
    copies: dict[TopicPartition, list[LegacyOffset]] = {}
    for offset in state.offsets:
        copies.setdefault((offset.topic, offset.partition), []).append(offset)
    for topic, partition in sorted(copies):
        first, *others = copies[topic, partition]
        stored = {first.stored_offset, *(other.stored_offset for other in others)}
        status, start, reason = _legacy_start(stored, len(others) + 1)
        subtask = first.subtask if len(stored) == 1 else None
        yield Position(topic, partition, status, start, None, subtask, reason=reason)


def _legacy_start(stored: set[int], copies: int) -> PositionStart:
    """Return the start of a partition that is listed ``copies`` times with these offsets."""
    if len(stored) > 1:
        limits = f"from {min(stored)} to {max(stored)}"
        return unknown_start(f"the state contains it {copies} times, with offsets {limits}")
    (offset,) = stored
    if (marker := _MARKERS.get(offset)) is not None:
        return PositionState(marker.value), marker, ""
    if offset == NOT_SET:
        return unknown_start("its start was not set yet when the checkpoint was taken")
    # The stored offset is that of the last processed record. If it is -1, the next offset is 0.
    return PositionState.NEXT, offset + 1, ""


def topics_of(sources: Iterable[Source]) -> set[str]:
    return {topic for source in sources for topic in source.topics}
