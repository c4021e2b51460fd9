"""A Kafka source of a job, whichever it is; and the positions of a FlinkKafkaConsumer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
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
from migrate.inputs.flink.kafka_source import merged_positions
from migrate.model.positions import Marker, Position, PositionState, TopicPartition

_WITH_SPLITS = 3  # the enumerator version whose entries hold whole splits

KafkaState = KafkaSource | DynamicKafkaSource | HybridSource | LegacyConsumer | BeamKafkaIO


class SourceKind(str, Enum):
    KAFKA_SOURCE = "KafkaSource"
    FLINK_KAFKA_CONSUMER = "FlinkKafkaConsumer"
    DYNAMIC_KAFKA_SOURCE = "DynamicKafkaSource"
    HYBRID_SOURCE = "HybridSource"
    BEAM_KAFKA_IO = "BeamKafkaIO"


@dataclass(frozen=True, slots=True)
class Source:
    """One Kafka source of the job, its positions sorted by cluster, topic and partition.

    Attributes:
        discovery_finished: by cluster (None: one that the state does not name), whether the first
            discovery of its partitions had finished; None where the state does not tell.
        brokers: by the cluster that a DynamicKafkaSource names, ``host:port`` of some of its
            brokers, with commas between.
        listed: whether it is none of Flink's: positions of another side.
    """

    operator_id: str
    name: str | None
    uid: str | None
    kind: SourceKind
    parallelism: int
    max_parallelism: int
    discovery_finished: Mapping[str | None, bool | None]
    positions: tuple[Position, ...]
    brokers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    listed: bool = False

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(position.topic for position in self.positions)

    @property
    def clusters(self) -> frozenset[str | None]:
        """The clusters of its positions; None is one that the state does not name."""
        return frozenset(position.cluster for position in self.positions)

    @property
    def initial_discovery_finished(self) -> bool | None:
        """Whether it had in every cluster; None where the state of one does not tell.

        Only where it had does Flink start a partition absent from the state at the log start;
        else it starts by the job's starting policy, which is not in the state.
        """
        told = set(self.discovery_finished.values())
        if False in told:
            return False
        return None if None in told else True

    @property
    def absent_start_at_earliest(self) -> bool:
        """Whether Flink, restored, starts a partition that the state lacks at the log start.

        A FlinkKafkaConsumer always does: FlinkKafkaConsumerBase.open @ connector 3.4.0-1.20.
        """
        if self.kind is SourceKind.FLINK_KAFKA_CONSUMER:
            return True
        return self.initial_discovery_finished is True

    def of_cluster(self, cluster: str | None) -> Source:
        """The source as if it read this cluster alone; None: what names no cluster."""
        return replace(
            self,
            discovery_finished={cluster: self.discovery_finished.get(cluster)},
            positions=tuple(p for p in self.positions if p.cluster == cluster),
        )


def source_of(operator: Operator, state: KafkaState) -> Source:
    """An operator that was recognised as a Kafka source, with its positions.

    A HybridSource that reads a source of another kind has none.
    """
    kind, clusters = _clusters(state)
    if isinstance(state, LegacyConsumer):
        positions = tuple(legacy_positions(state))
    else:
        positions = tuple(
            chain.from_iterable(
                merged_positions(known, cluster)
                for cluster, known in sorted(clusters.items(), key=lambda item: item[0] or "")
            )
        )
    return Source(
        operator.operator_id,
        operator.name,
        operator.uid,
        kind,
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


def _clusters(state: KafkaState) -> tuple[SourceKind, Mapping[str | None, KafkaSource]]:
    """Its kind, and by cluster what is merged; None is the cluster that no state names."""
    match state:
        case KafkaSource():
            return SourceKind.KAFKA_SOURCE, {None: state}
        case DynamicKafkaSource():
            return SourceKind.DYNAMIC_KAFKA_SOURCE, dict(state.clusters.items())
        case HybridSource():
            if isinstance(state.current, UnknownSource):
                return SourceKind.HYBRID_SOURCE, {}
            return SourceKind.HYBRID_SOURCE, _clusters(state.current)[1]
        case LegacyConsumer():
            return SourceKind.FLINK_KAFKA_CONSUMER, {}
        case BeamKafkaIO():
            return SourceKind.BEAM_KAFKA_IO, {None: _as_a_kafka_source(state)}


def _as_a_kafka_source(state: BeamKafkaIO) -> KafkaSource:
    """Its splits as those of readers, and as those that an enumerator has not assigned yet."""
    held = tuple(
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
    return KafkaSource(held, EnumeratorState(_WITH_SPLITS, waiting, None))


def _brokers(state: KafkaState) -> dict[str, frozenset[str]]:
    """By the cluster's id, as the enumerator of a DynamicKafkaSource names them."""
    if isinstance(state, HybridSource) and not isinstance(state.current, UnknownSource):
        state = state.current
    if not isinstance(state, DynamicKafkaSource) or state.enumerator is None:
        return {}
    known: dict[str, set[str]] = {}
    for clusters in state.enumerator.streams.values():
        for cluster, named in clusters.items():
            known.setdefault(cluster, set()).add(named.bootstrap_servers)
    return {cluster: frozenset(servers) for cluster, servers in known.items()}


_MARKERS = {
    EARLIEST: (PositionState.EARLIEST, Marker.EARLIEST),
    LATEST: (PositionState.LATEST, Marker.LATEST),
    GROUP: (PositionState.COMMITTED, Marker.COMMITTED),
}


def legacy_positions(state: LegacyConsumer) -> Iterator[Position]:
    """Sorted by topic and partition.

    Union state: after a restore without a checkpoint since, every subtask lists all.
    """
    listed: dict[TopicPartition, list[LegacyOffset]] = {}
    for offset in state.offsets:
        listed.setdefault((offset.topic, offset.partition), []).append(offset)
    for place in sorted(listed):
        yield _listed_by_subtasks(listed[place])


def _listed_by_subtasks(copies: list[LegacyOffset]) -> Position:
    first = copies[0]
    topic, partition, stored = first.topic, first.partition, first.stored_offset
    if any(copy.stored_offset != stored for copy in copies):
        offsets = [copy.stored_offset for copy in copies]
        return _unresolved(
            first,
            None,
            f"it is listed {len(copies)} times, with offsets from {min(offsets)} to {max(offsets)}",
        )
    if stored in _MARKERS:
        marker_state, marker = _MARKERS[stored]
        return Position(topic, partition, marker_state, marker, None, first.subtask)
    if stored == NOT_SET:
        reason = "its start was not set yet when the checkpoint was taken"
        return _unresolved(first, first.subtask, reason)
    # The last record processed; -1 where none was, of a partition that is read from 0.
    return Position(topic, partition, PositionState.NEXT, stored + 1, None, first.subtask)


def _unresolved(listed: LegacyOffset, subtask: int | None, reason: str) -> Position:
    return Position(
        listed.topic,
        listed.partition,
        PositionState.UNRESOLVED,
        None,
        subtask=subtask,
        reason=reason,
    )


def topics_of(sources: Iterable[Source]) -> set[str]:
    """Return the topics that any of some sources reads."""
    return {topic for source in sources for topic in source.topics}
