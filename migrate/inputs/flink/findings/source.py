"""Findings about a Kafka source."""

from __future__ import annotations

from collections.abc import Iterator

from decoder import (
    BeamKafkaIO,
    Checkpoint,
    DynamicKafkaSource,
    HybridSource,
    LegacyConsumer,
    StopKind,
    UnknownSource,
)
from migrate.inputs.flink.source import KafkaState, Source
from migrate.model.finding import Finding
from migrate.model.finding_catalog import (
    BEAM_DISCOVERY,
    COMMITTED_MARKER,
    HYBRID_SOURCE,
    HYBRID_SOURCE_DAMAGED,
    HYBRID_SOURCE_ELSEWHERE,
    HYBRID_SPLITS_LEFT,
    INITIAL_DISCOVERY,
    LATEST_MARKER,
    NO_ENUMERATOR,
    RETAINED_CLUSTERS,
    STALE_POSITIONS,
    STALE_POSITIONS_IF_STOPPED,
    UNDISCOVERED_TOPICS,
    UNRESOLVED_POSITIONS,
)
from migrate.model.positions import Marker, Position, PositionState

# The version of the checkpoint metadata that Flink releases up to 1.10 write.
_METADATA_2 = 2
# Looked up only once, because 100,000 lookups of the enum member (one per position) would take
# longer than all other work.
_NEXT = PositionState.NEXT


def findings_of_source(
    source: Source, state: KafkaState, checkpoint: Checkpoint
) -> Iterator[Finding]:
    """Yield the findings about a Kafka source; the caller adds the operator."""
    yield from _position_findings(source)
    if isinstance(state, HybridSource):
        yield from _hybrid_findings(state)
        if isinstance(state.current, UnknownSource):
            return
        state = state.current
    if isinstance(state, LegacyConsumer):
        yield from _stopped_consumer_findings(checkpoint)
        return
    if isinstance(state, BeamKafkaIO):
        # Beam lists the partitions only once (KafkaUnboundedSource.split @ Beam 2.50.0 and 2.62.0).
        yield Finding(BEAM_DISCOVERY())
        return
    if state.enumerator is None:
        yield Finding(NO_ENUMERATOR())
    elif not source.initial_discovery_finished:
        yield Finding(INITIAL_DISCOVERY())
    if isinstance(state, DynamicKafkaSource):
        yield from _dynamic_findings(source, state)


def _position_findings(source: Source) -> Iterator[Finding]:
    """Yield the findings about positions that are unresolved, ``latest``, or ``committed``."""
    # Create a Position only if the state is not NEXT, because a source may have 100,000 positions.
    without_offset = [
        Position(*fields) for fields in source.position_fields if fields[2] is not _NEXT
    ]
    unresolved = [p for p in without_offset if p.state is PositionState.UNRESOLVED]
    if unresolved:
        first = unresolved[0]
        partition = f"{first.topic}-{first.partition}{_on_cluster(first.cluster)}"
        yield Finding(
            UNRESOLVED_POSITIONS(
                count=len(unresolved),
                total=len(source.position_fields),
                partition=partition,
                reason=first.reason,
            )
        )
    for marker, message in ((Marker.LATEST, LATEST_MARKER), (Marker.COMMITTED, COMMITTED_MARKER)):
        if count := sum(p.start is marker for p in without_offset):
            yield Finding(message(count=count))


def _stopped_consumer_findings(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Yield a finding if the job of a FlinkKafkaConsumer may have been stopped with a savepoint.

    Since Flink 1.15 (or 1.14 with --drain), a stop-with-savepoint stops the consumer before it
    takes the savepoint. The savepoint then contains the consumer's offsets from the previous
    checkpoint.

    Source: SourceStreamTask @ Flink 1.10.3, 1.13.6, 1.14.6, 1.15.4, 1.20.3;
    FlinkKafkaConsumerBase.snapshotState @ connector 3.4.0-1.20.
    """
    stop = checkpoint.type.stop
    if stop is StopKind.NONE or checkpoint.metadata_version == _METADATA_2:
        return
    known = stop is not StopKind.UNKNOWN
    message = STALE_POSITIONS() if known else STALE_POSITIONS_IF_STOPPED()
    yield Finding(message, is_certain=known)


def _hybrid_findings(state: HybridSource) -> Iterator[Finding]:
    number = state.source_index + 1
    match state.current:
        case UnknownSource(partly_kafka=True, reason=reason):
            yield Finding(HYBRID_SOURCE_DAMAGED(number=number, reason=reason))
        case UnknownSource():
            yield Finding(HYBRID_SOURCE_ELSEWHERE(number=number))
        case _:
            yield Finding(HYBRID_SOURCE(number=number))
    if state.other_splits:
        yield Finding(HYBRID_SPLITS_LEFT(splits=state.other_splits))


def _dynamic_findings(source: Source, state: DynamicKafkaSource) -> Iterator[Finding]:
    streams = state.enumerator.streams.values() if state.enumerator is not None else ()
    subscribed = {
        (cluster, topic)
        for clusters in streams
        for cluster, stream in clusters.items()
        for topic in stream.topics
    }
    missing = sorted(subscribed - {(p.cluster, p.topic) for p in source.positions})
    if missing:
        cluster, topic = missing[0]
        first = f"{topic}{_on_cluster(cluster)}"
        yield Finding(UNDISCOVERED_TOPICS(count=len(missing), topic=first))
    if state.retained:
        clusters = sorted(state.retained)
        yield Finding(RETAINED_CLUSTERS(count=len(clusters), clusters=clusters))


def _on_cluster(cluster: str | None) -> str:
    return f" on cluster {cluster!r}" if cluster is not None else ""
