"""A Kafka source of a job, whichever it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from decoder import DynamicKafkaSource, HybridSource, KafkaSource, LegacyConsumer
from migrate.positions import Position

KafkaState = KafkaSource | DynamicKafkaSource | HybridSource | LegacyConsumer


class SourceKind(str, Enum):
    KAFKA_SOURCE = "KafkaSource"
    FLINK_KAFKA_CONSUMER = "FlinkKafkaConsumer"
    DYNAMIC_KAFKA_SOURCE = "DynamicKafkaSource"
    HYBRID_SOURCE = "HybridSource"


@dataclass(frozen=True, slots=True)
class Source:
    """One Kafka source of the job, its positions sorted by cluster, topic and partition.

    Attributes:
        discovery_finished: by cluster (None: one that the state does not name), whether the first
            discovery of its partitions had finished; None where the state does not tell.
        brokers: by the cluster that a DynamicKafkaSource names, ``host:port`` of some of its
            brokers, with commas between.
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

    def of_cluster(self, cluster: str) -> Source:
        """The source as if it read this cluster alone."""
        return replace(
            self,
            discovery_finished={cluster: self.discovery_finished.get(cluster)},
            positions=tuple(p for p in self.positions if p.cluster == cluster),
        )
