"""An operator whose state was recognised as a Kafka source's -> that source with its positions.

A DynamicKafkaSource restores itself cluster by cluster, a HybridSource as the source it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from decoder import (
    DynamicKafkaSource,
    HybridSource,
    KafkaSource,
    LegacyConsumer,
    Operator,
    UnknownSource,
)
from migrate.flink.sources.legacy import legacy_positions
from migrate.flink.sources.merged import merged_positions
from migrate.flink.sources.model import KafkaState, Source, SourceKind


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
