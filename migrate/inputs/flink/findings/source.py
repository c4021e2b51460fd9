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

# The metadata version of Flink releases up to 1.10.
_METADATA_2 = 2
# Looked up only once, because 100,000 lookups of the enum member (one per position) would take
# longer than all other work.
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
        # KafkaUnboundedSource.split @ Beam 2.50.0 and 2.62.0 requests the partitions only once.
        yield Finding(
            Code.INITIAL_DISCOVERY,
            "it is a KafkaIO source in an Apache Beam pipeline; it reads only the partitions that "
            "existed when the pipeline started, and has read no records of other "
            "partitions",
        )
        return
    if state.enumerator is None:
        yield Finding(
            Code.NO_ENUMERATOR,
            "no enumerator state is stored, so a bounded partition that finished would be missing",
        )
    elif not source.initial_discovery_finished:
        yield Finding(
            Code.INITIAL_DISCOVERY,
            "the state does not show that the first discovery of partitions had finished; "
            "for a missing partition, the job's policy determines the start position, and "
            "the state does not contain this policy",
        )
    if isinstance(state, DynamicKafkaSource):
        yield from _dynamic_findings(source, state)


def _position_findings(source: Source) -> Iterator[Finding]:
    """Yield the findings about positions that are unresolved or at ``latest`` or ``committed``."""
    # Create a Position only if the state is not NEXT, because a source may have 100,000 positions.
    without_offset = [
        Position(*fields) for fields in source.position_fields if fields[2] is not _NEXT
    ]
    unresolved = [p for p in without_offset if p.state is PositionState.UNRESOLVED]
    if unresolved:
        first = unresolved[0]
        yield Finding(
            Code.UNRESOLVED_POSITIONS,
            f"the state lacks {len(unresolved)} of {len(source.position_fields)} "
            "positions; the first is "
            f"{first.topic}-{first.partition}{_on_cluster(first.cluster)} ({first.reason})",
        )
    for marker, code, consequence in (
        (
            Marker.LATEST,
            Code.LATEST_MARKER,
            "starting at the current log end offset would skip the records since the checkpoint",
        ),
        (
            Marker.COMMITTED,
            Code.COMMITTED_MARKER,
            "only Flink's own consumer group has their start positions",
        ),
    ):
        marked = [p for p in without_offset if p.start is marker]
        if marked:
            yield Finding(
                code,
                f"no record has been read from {counted(len(marked), 'partition')}, still "
                f"at the '{marker.value}' marker; {consequence}",
            )


def _stopped_consumer_findings(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Yield the finding about a FlinkKafkaConsumer that may have been stopped with a savepoint.

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
        + (
            "the FlinkKafkaConsumer's positions are from the previous checkpoint, so the "
            "job's output between that checkpoint and the stop would be duplicated; use a "
            "checkpoint or a savepoint without a stop, because its positions are exact"
        ),
        is_certain=known,
    )


def _hybrid_findings(state: HybridSource) -> Iterator[Finding]:
    place = f"source {state.source_index + 1} in its list"
    if isinstance(state.current, UnknownSource):
        damaged = (
            "; some of its state belongs to a Kafka source, and some cannot be decoded "
            f"({state.current.reason})"
        )
        yield Finding(
            Code.HYBRID_SOURCE_ELSEWHERE,
            f"it is a HybridSource at {place}"
            + (
                damaged
                if state.current.partly_kafka
                else (
                    ", which is not a Kafka source; it has not reached Kafka yet, or never "
                    "reads Kafka; unread data of the current source is not moved"
                )
            ),
        )
    else:
        yield Finding(
            Code.HYBRID_SOURCE,
            f"it is a HybridSource at {place}, a Kafka source; the state does not contain "
            "later sources of the list",
        )
    if state.other_splits:
        yield Finding(
            Code.HYBRID_SOURCE_ELSEWHERE,
            f"its readers still have {counted(state.other_splits, 'split')} from other "
            "sources in its list; unread data in these splits is not moved",
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
            f"the state contains no partition of {counted(len(missing), 'topic')} of its "
            f"streams (the first is {topic}{_on_cluster(cluster)}); the job had not "
            "discovered these topics, and they are not moved",
        )
    if state.retained:
        names = ", ".join(map(repr, sorted(state.retained)))
        yield Finding(
            Code.RETAINED_CLUSTERS,
            "the job's metadata service had removed "
            f"cluster{'s' if len(state.retained) > 1 else ''} {names}, so the job no "
            "longer read from it; the positions are the job's resume positions if the "
            "service adds the cluster again",
        )


def _on_cluster(cluster: str | None) -> str:
    return f" on cluster {cluster!r}" if cluster is not None else ""
