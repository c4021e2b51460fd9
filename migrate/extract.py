"""A decoded checkpoint -> the positions of each Kafka source, and what else must be known.

Reader state and enumerator state are merged here, as KafkaSource restores itself: what a reader
holds is progress; what only the enumerator lists was finished, not yet assigned, or is unknown.
A DynamicKafkaSource restores itself so cluster by cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from decoder import Checkpoint
from decoder.kafka.enumerator import AssignmentStatus, EnumeratorEntry, EnumeratorState
from decoder.kafka.reader_state import SOURCE_READER_STATE
from decoder.kafka.source import DynamicKafkaSource, KafkaSource, ReaderSplit, UnknownSource
from decoder.kafka.split import COMMITTED, EARLIEST, LATEST, NOT_SET, Split
from decoder.metadata.model import CheckpointKind, Operator, StopKind
from migrate.positions import Marker, Position, PositionState

_MARKERS = {
    EARLIEST: (PositionState.EARLIEST, Marker.EARLIEST),
    LATEST: (PositionState.LATEST, Marker.LATEST),
    COMMITTED: (PositionState.COMMITTED, Marker.COMMITTED),
}

# Union list state of FlinkKafkaConsumer: FlinkKafkaConsumerBase @ connector 1.15.4.
_LEGACY_CONSUMER_STATE = "topic-partition-offset-states"
# What a two-phase sink keeps: SinkWriterStateHandler, CommitterOperator @ Flink 2.2.0.
_SINK_STATES = frozenset({"writer_raw_states", "streaming_committer_raw_states"})


# Findings about sources that are Kafka's and not read: they must not go unnoticed beside others.
UNREAD_SOURCES = frozenset({"damaged-source", "legacy-consumer"})


class SourceKind(str, Enum):
    KAFKA_SOURCE = "KafkaSource"
    DYNAMIC_KAFKA_SOURCE = "DynamicKafkaSource"


class Severity(str, Enum):
    """How a finding bears on a move: a blocker stops it, a warning may repeat or miss records."""

    BLOCKER = "blocker"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a checkpoint that whoever moves from it must know."""

    code: str
    severity: Severity
    operator_id: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Source:
    """One Kafka source of the job, its positions sorted by cluster, topic and partition.

    Attributes:
        discovery_finished: by cluster (None: a KafkaSource's own), whether the first discovery of
            its partitions had finished; None where the state does not tell.
    """

    operator_id: str
    name: str | None
    uid: str | None
    kind: SourceKind
    parallelism: int
    max_parallelism: int
    discovery_finished: Mapping[str | None, bool | None]
    positions: tuple[Position, ...]

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(position.topic for position in self.positions)

    @property
    def clusters(self) -> frozenset[str | None]:
        """The clusters of its positions; None is a KafkaSource's, whose state names none."""
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

    def of_cluster(self, cluster: str) -> Source:
        """The source as if it read this cluster alone."""
        return replace(
            self,
            discovery_finished={cluster: self.discovery_finished.get(cluster)},
            positions=tuple(p for p in self.positions if p.cluster == cluster),
        )


@dataclass(frozen=True, slots=True)
class Extraction:
    """What ``extract`` makes of a checkpoint."""

    checkpoint: Checkpoint
    sources: tuple[Source, ...]
    findings: tuple[Finding, ...]


def extract(checkpoint: Checkpoint) -> Extraction:
    """The Kafka sources of a checkpoint, their positions, and the findings about it."""
    sources: list[Source] = []
    findings = list(_about_the_checkpoint(checkpoint))
    for operator in checkpoint.operators:
        state = checkpoint.sources.get(operator.operator_id)
        if isinstance(state, KafkaSource | DynamicKafkaSource):
            source = _source(operator, state)
            sources.append(source)
            findings.extend(_about_a_source(source, state))
        findings.extend(_about_an_operator(operator, state, _stopped(checkpoint)))
    return Extraction(checkpoint, tuple(sources), tuple(findings))


# -- positions ----------------------------------------------------------------------------------


def _source(operator: Operator, state: KafkaSource | DynamicKafkaSource) -> Source:
    clusters: Mapping[str | None, KafkaSource]
    match state:
        case KafkaSource():
            kind, clusters = SourceKind.KAFKA_SOURCE, {None: state}
        case DynamicKafkaSource():
            kind, clusters = SourceKind.DYNAMIC_KAFKA_SOURCE, dict(state.clusters.items())
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
        },
        tuple(
            replace(position, cluster=cluster)
            for cluster, known in sorted(clusters.items(), key=lambda item: item[0] or "")
            for position in sorted(_merge(known), key=lambda position: position.topic_partition)
        ),
    )


def _merge(state: KafkaSource) -> Iterator[Position]:
    """Reader splits first: an enumerator's ASSIGNED entry is not progress."""
    held: dict[tuple[str, int], list[ReaderSplit]] = {}
    for reader_split in state.reader_splits:
        split = reader_split.split
        held.setdefault((split.topic, split.partition), []).append(reader_split)
    for copies in held.values():
        yield _held_by_a_reader(copies)
    for entry in _entries(state.enumerator):
        if (entry.topic, entry.partition) not in held:
            yield _known_to_the_enumerator(entry)


def _entries(enumerator: EnumeratorState | None) -> tuple[EnumeratorEntry, ...]:
    return enumerator.entries if enumerator is not None else ()


def _held_by_a_reader(copies: list[ReaderSplit]) -> Position:
    first = copies[0]
    split, subtask = first.split, first.subtask
    if any(copy.split != split for copy in copies):
        starts = sorted(copy.split.starting_offset for copy in copies)
        return _unresolved(
            split.topic,
            split.partition,
            split.stopping_offset,
            f"it stands in reader state {len(copies)} times, with starts {starts}",
        )
    if split.starting_offset >= 0:
        state, start = PositionState.NEXT, split.starting_offset
        return Position(split.topic, split.partition, state, start, split.stopping_offset, subtask)
    if split.starting_offset in _MARKERS:
        marker_state, marker = _MARKERS[split.starting_offset]
        return Position(
            split.topic, split.partition, marker_state, marker, split.stopping_offset, subtask
        )
    return _unresolved(
        split.topic,
        split.partition,
        split.stopping_offset,
        "its start was not initialised yet when the checkpoint was taken",
        subtask,
    )


def _known_to_the_enumerator(entry: EnumeratorEntry) -> Position:
    match entry.status:
        case AssignmentStatus.ASSIGNED:
            return _assigned_but_not_held(entry)
        case AssignmentStatus.UNASSIGNED:
            return _unassigned(entry)


def _assigned_but_not_held(entry: EnumeratorEntry) -> Position:
    """A split that was given to a reader and is no longer there was read to its end."""
    split = entry.split
    finished_at = _finished_at(split) if split is not None else None
    if split is not None and finished_at is not None:
        return Position(
            entry.topic,
            entry.partition,
            PositionState.FINISHED,
            finished_at,
            split.stopping_offset,
        )
    return _unresolved(
        entry.topic,
        entry.partition,
        split.stopping_offset if split is not None else None,
        "it was assigned to a reader that no longer holds it, and the offset it stopped at is "
        "not in the state",
    )


def _finished_at(split: Split) -> int | None:
    """The next offset of a finished split, where its stop is a number.

    A start that is still ``earliest`` cannot lie beyond the stop of a split that was read to its
    end; ``latest`` and ``committed`` can.
    """
    stop, start = split.stopping_offset, split.starting_offset
    if stop is None or stop < 0:
        return None
    if start >= 0:
        return max(start, stop)
    return stop if start == EARLIEST else None


def _unassigned(entry: EnumeratorEntry) -> Position:
    split = entry.split
    if split is None:
        return _unresolved(
            entry.topic,
            entry.partition,
            None,
            "it was not yet assigned, and the starting policy of the job is not in the state",
        )
    start: int | Marker
    if split.starting_offset == NOT_SET:
        return _unresolved(
            entry.topic,
            entry.partition,
            split.stopping_offset,
            "it was not yet assigned, and its start was not initialised",
        )
    if split.starting_offset in _MARKERS:
        _, start = _MARKERS[split.starting_offset]
    else:
        start = split.starting_offset
    return Position(
        entry.topic, entry.partition, PositionState.UNASSIGNED, start, split.stopping_offset
    )


def _unresolved(
    topic: str, partition: int, stopping_offset: int | None, reason: str, subtask: int | None = None
) -> Position:
    return Position(
        topic,
        partition,
        PositionState.UNRESOLVED,
        None,
        stopping_offset,
        subtask,
        reason=reason,
    )


# -- findings -----------------------------------------------------------------------------------


def _about_the_checkpoint(checkpoint: Checkpoint) -> Iterator[Finding]:
    if checkpoint.newer_siblings:
        yield Finding(
            "ran-on",
            Severity.BLOCKER,
            None,
            f"the job ran on after this checkpoint: chk-{checkpoint.newer_siblings[-1]} is "
            "complete beside it, so what Flink emitted since would be emitted again",
        )
    elif not _stopped(checkpoint):
        what = {
            CheckpointKind.CHECKPOINT: "a checkpoint",
            CheckpointKind.SAVEPOINT: "a savepoint without stop",
            CheckpointKind.UNKNOWN: "of a kind its metadata does not tell",
        }[checkpoint.type.kind]
        yield Finding(
            "not-a-stop",
            Severity.WARNING,
            None,
            f"this is {what}: if the job ran on after it, what Flink emitted since will be "
            "emitted again; only a stop-with-savepoint is a job's last output",
        )
    finished = [operator for operator in checkpoint.operators if operator.finished]
    if finished:
        names = ", ".join(operator.name or operator.operator_id for operator in finished)
        yield Finding(
            "finished-operators",
            Severity.WARNING,
            None,
            f"{len(finished)} operators had finished and hold no state ({names}): were one of "
            "them a bounded Kafka source, its positions are not in this checkpoint",
        )


def _stopped(checkpoint: Checkpoint) -> bool:
    """Whether the job ended with this snapshot, so that it is the job's last output."""
    return checkpoint.type.stop in (StopKind.SUSPEND, StopKind.TERMINATE)


def _about_a_source(source: Source, state: KafkaSource | DynamicKafkaSource) -> Iterator[Finding]:
    unresolved = [p for p in source.positions if p.state is PositionState.UNRESOLVED]
    if unresolved:
        first = unresolved[0]
        yield Finding(
            "unresolved-positions",
            Severity.BLOCKER,
            source.operator_id,
            f"{len(unresolved)} of {len(source.positions)} positions cannot be told from the "
            f"state; the first is {first.topic}-{first.partition}"
            f"{_on_cluster(first.cluster)}: {first.reason}",
        )
    for marker, code, says in (
        (Marker.LATEST, "latest-marker", "today's log end would skip what came since then"),
        (Marker.COMMITTED, "committed-marker", "only Flink's own consumer group knows their start"),
    ):
        marked = [p for p in source.positions if p.start is marker]
        if marked:
            yield Finding(
                code,
                Severity.WARNING,
                source.operator_id,
                f"{len(marked)} partitions have read no record and are still at the "
                f"'{marker.value}' marker: {says}",
            )
    if state.enumerator is None:
        yield Finding(
            "no-enumerator",
            Severity.WARNING,
            source.operator_id,
            "no enumerator state is stored: a bounded partition that finished would not show",
        )
    elif not source.initial_discovery_finished:
        yield Finding(
            "initial-discovery",
            Severity.NOTE,
            source.operator_id,
            "the state does not say that the first discovery of partitions had finished: where a "
            "partition that it lacks would start is the job's policy, which is not in the state",
        )
    if isinstance(state, DynamicKafkaSource):
        yield from _undiscovered_topics(source, state)


def _on_cluster(cluster: str | None) -> str:
    return f" on cluster {cluster!r}" if cluster is not None else ""


def _undiscovered_topics(source: Source, state: DynamicKafkaSource) -> Iterator[Finding]:
    streams = state.enumerator.streams.values() if state.enumerator is not None else ()
    wanted = {
        (cluster, topic)
        for clusters in streams
        for cluster, stream in clusters.items()
        for topic in stream.topics
    }
    missing = sorted(wanted - {(p.cluster, p.topic) for p in source.positions})
    if missing:
        cluster, topic = missing[0]
        yield Finding(
            "undiscovered-topics",
            Severity.WARNING,
            source.operator_id,
            f"{len(missing)} topics of its streams have no partition in the state (the first is "
            f"{topic}{_on_cluster(cluster)}): they were not discovered yet, and are not moved",
        )


def _about_an_operator(
    operator: Operator,
    state: KafkaSource | DynamicKafkaSource | UnknownSource | None,
    stopped: bool,
) -> Iterator[Finding]:
    def finding(code: str, severity: Severity, message: str) -> Finding:
        return Finding(code, severity, operator.operator_id, message)

    if operator.in_flight_bytes:
        yield finding(
            "in-flight-records",
            Severity.BLOCKER,
            f"{operator.in_flight_bytes} bytes of records lie in its channels, past the source "
            "and not yet processed (an unaligned checkpoint): moving from here loses them; take "
            "an aligned checkpoint, or stop the job with a savepoint",
        )
    if isinstance(state, UnknownSource):
        if state.partly_kafka:
            yield finding(
                "damaged-source",
                Severity.BLOCKER,
                "some of its state is a KafkaSource's and some of it does not decode: a damaged "
                f"KafkaSource, or a kind not known here ({state.reason})",
            )
        else:
            yield finding(
                "another-source-kind",
                Severity.WARNING,
                f"its source state is not a KafkaSource's; it is not moved ({state.reason})",
            )
    if _LEGACY_CONSUMER_STATE in operator.state_names:
        yield finding(
            "legacy-consumer",
            Severity.BLOCKER,
            "it is a FlinkKafkaConsumer, the source before KafkaSource, which this release does "
            "not read",
        )
    if any(
        named.name in _SINK_STATES and named.byte_offsets
        for subtask in operator.subtasks
        if subtask.managed_operator_state is not None
        for named in subtask.managed_operator_state.states
    ):
        # A stop-with-savepoint commits what is pending before the job ends.
        yield finding(
            "pending-transactions",
            Severity.NOTE if stopped else Severity.WARNING,
            "a sink keeps what it has yet to commit in this state: "
            + (
                "the job committed it when it stopped with this savepoint"
                if stopped
                else "unless the job commits it or is restored from here, that output is lost"
            ),
        )
        return
    held = [
        f"{size} bytes of {what}"
        for size, what in (
            (operator.keyed_state_bytes, "keyed state"),
            (operator.operator_state_bytes, "operator state"),
        )
        if size
    ]
    if held and SOURCE_READER_STATE not in operator.state_names:
        yield finding(
            "state-not-moved",
            Severity.NOTE,
            f"it holds {' and '.join(held)}: records consumed but not yet emitted may be among "
            "them (windows, joins, buffers), and state does not move",
        )
