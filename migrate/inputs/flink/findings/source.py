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
from migrate.model.finding import Code, Finding
from migrate.model.positions import Marker, Position, PositionState
from migrate.model.wording import counted

# The metadata version of Flink up to 1.10.
_METADATA_2 = 2
# Looked up only once, because 100,000 lookups of the enum's member (one for each position) would
# take longer than everything else.
_NEXT = PositionState.NEXT


def findings_of_source(
    source: Source, state: KafkaState, checkpoint: Checkpoint
) -> Iterator[Finding]:
    """Yield the findings about a Kafka source; the caller sets their operator."""
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
        # KafkaUnboundedSource.split @ Beam 2.50.0 and 2.62.0 asks for the partitions only once.
        yield Finding(
            Code.INITIAL_DISCOVERY,
            "it is an Apache Beam pipeline's KafkaIO, which reads the partitions that there were "
            "when the pipeline began: it has read none of one that it lacks",
        )
        return
    if state.enumerator is None:
        yield Finding(
            Code.NO_ENUMERATOR,
            "no enumerator state is stored: a bounded partition that finished would not show",
        )
    elif not source.initial_discovery_finished:
        yield Finding(
            Code.INITIAL_DISCOVERY,
            "the state does not say that the first discovery of partitions had finished: where a "
            "partition that it lacks would start is the job's policy, which is not in the state",
        )
    if isinstance(state, DynamicKafkaSource):
        yield from _dynamic_findings(source, state)


def _position_findings(source: Source) -> Iterator[Finding]:
    """Yield the findings about positions that are unresolved, or at ``latest`` or ``committed``."""
    # A Position is created only if the state is not NEXT: a source may have 100,000 positions.
    without_offset = [
        Position(*fields) for fields in source.position_fields if fields[2] is not _NEXT
    ]
    unresolved = [p for p in without_offset if p.state is PositionState.UNRESOLVED]
    if unresolved:
        first = unresolved[0]
        yield Finding(
            Code.UNRESOLVED_POSITIONS,
            f"{len(unresolved)} of {len(source.position_fields)} positions are not in the state; "
            f"the first is {first.topic}-{first.partition}{_on_cluster(first.cluster)}: "
            f"{first.reason}",
        )
    for marker, code, consequence in (
        (Marker.LATEST, Code.LATEST_MARKER, "today's log end would skip what came since then"),
        (
            Marker.COMMITTED,
            Code.COMMITTED_MARKER,
            "only Flink's own consumer group knows their start",
        ),
    ):
        marked = [p for p in without_offset if p.start is marker]
        if marked:
            yield Finding(
                code,
                f"{counted(len(marked), 'partition')} with no record read yet, still at the "
                f"'{marker.value}' marker: {consequence}",
            )


def _stopped_consumer_findings(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Yield the finding about a FlinkKafkaConsumer that was perhaps stopped with a savepoint.

    Since 1.15 (1.14 with --drain), Flink stops the consumer before it takes the savepoint. A
    stopped consumer stores the offsets of the previous checkpoint.

    Source: SourceStreamTask @ Flink 1.10.3, 1.13.6, 1.14.6, 1.15.4, 1.20.3;
    FlinkKafkaConsumerBase.snapshotState @ connector 3.4.0-1.20.
    """
    stop = checkpoint.type.stop
    if stop is StopKind.NONE or checkpoint.metadata_version == _METADATA_2:
        return
    known = stop is not StopKind.UNKNOWN
    yield Finding(
        Code.STALE_POSITIONS,
        ("" if known else "if Flink 1.15 stopped the job with this savepoint, or 1.14 drained it, ")
        + "what a FlinkKafkaConsumer has stored here is from the checkpoint before: what Flink "
        "emitted in between would be emitted again; a checkpoint, or a savepoint without stop, is "
        "exact",
        is_certain=known,
    )


def _hybrid_findings(state: HybridSource) -> Iterator[Finding]:
    place = f"source {state.source_index + 1} of its list"
    if isinstance(state.current, UnknownSource):
        damaged = (
            f": some of it is a Kafka source's and some does not decode ({state.current.reason})"
        )
        yield Finding(
            Code.HYBRID_SOURCE_ELSEWHERE,
            f"it is a HybridSource at {place}"
            + (
                damaged
                if state.current.partly_kafka
                else ", which is not Kafka's: it has not reached Kafka yet, or never reads it; "
                "what it has not read of that source does not move"
            ),
        )
    else:
        yield Finding(
            Code.HYBRID_SOURCE,
            f"it is a HybridSource at {place}, which reads Kafka; what comes after that one, if "
            "anything does, is not in the state",
        )
    if state.other_splits:
        yield Finding(
            Code.HYBRID_SOURCE_ELSEWHERE,
            f"its readers still hold {counted(state.other_splits, 'split')} of other sources of "
            "its list: what they have not read of them does not move",
        )


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
        yield Finding(
            Code.UNDISCOVERED_TOPICS,
            f"{counted(len(missing), 'topic')} of its streams without a partition in the state "
            f"(the first is {topic}{_on_cluster(cluster)}): not discovered yet, and not moved",
        )
    if state.retained:
        names = ", ".join(map(repr, sorted(state.retained)))
        yield Finding(
            Code.RETAINED_CLUSTERS,
            f"the job no longer read cluster{'s' if len(state.retained) > 1 else ''} {names}, "
            "which its metadata service had removed: the positions are those it would go on from "
            "if the service named it again",
        )


def _on_cluster(cluster: str | None) -> str:
    return f" on cluster {cluster!r}" if cluster is not None else ""
