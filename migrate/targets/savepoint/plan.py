"""What changes of a savepoint that gets other positions, and what its state then counts twice or
lacks. Pure: the plan of the positions has been made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from migrate.inputs.flink.extract import Code, Finding, PlanInput, Severity, Source
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import Gone, NewPartitions, Policies
from migrate.model.positions import Marker, Position, PositionState, TopicPartition
from migrate.model.wording import counted, join_some
from migrate.planning.obstacles import operator_prefix, refuse_blockers, relevant_findings
from migrate.planning.plan import Plan, PlannedPartition, Refusal, Verdict
from migrate.planning.transactions import resolve_transactions
from migrate.targets.savepoint import ClusterPartition

# How many partitions one refusal names.
_NAMED = 20
# Of the savepoint's own findings, what is worth a warning although its state goes with it.
_WARNED_OF = frozenset(
    (
        Code.NOT_A_STOP,
        Code.NUMBERING_BEGAN_ANEW,
        Code.FINISHED_OPERATORS,
        Code.STALE_POSITIONS,
        Code.PENDING_TRANSACTIONS,
        Code.HYBRID_SOURCE,
    )
)


@dataclass(frozen=True, slots=True)
class SourceChange:
    """What changes of one source of a savepoint, in one cluster.

    Attributes:
        new_offsets: the next offset of each partition that changes; None: it is removed.
        partitions: every partition that is planned; ``current`` is where the savepoint has it.
        refusals: why it must not be made.
    """

    operator_id: str
    new_offsets: Mapping[ClusterPartition, int | None]
    partitions: tuple[PlannedPartition, ...]
    refusals: tuple[Refusal, ...]


def source_change(
    source: Source, cluster: str | None, plan: Plan, side: str, policies: Policies
) -> SourceChange:
    """What a plan changes of a source; nothing where it is refused as a whole.

    Args:
        source: as the savepoint has it, of this cluster alone.
        plan: where its partitions are to go on.
        side: how the positions are called.
    """
    if plan.refusals and not plan.partitions:
        return SourceChange(source.operator_id, {}, (), ())
    own = {position.topic_partition: position for position in source.positions}
    new_offsets: dict[ClusterPartition, int | None] = {}
    untold: list[TopicPartition] = []
    planned: list[PlannedPartition] = []
    for one in plan.partitions:
        place = one.topic, one.partition
        position = own.get(place)
        if one.verdict is Verdict.NEW_PARTITION and policies.new_partitions is _AS_FLINK:
            if position is not None:
                untold.append(place)
                continue
            if source.absent_start_at_earliest:
                continue  # Flink finds it, and starts it there, too
        if one.problem or (position is None and one.next_offset is None):
            continue
        planned.append(replace(one, current=_stands_at(position, one)))
        if position is None or position.start != one.next_offset:
            new_offsets[ClusterPartition(cluster, *place)] = one.next_offset
    known = {one.topic_partition for one in plan.partitions}
    gone: list[TopicPartition] = []
    for place, position in own.items():
        if place in known or _stays(position, policies):
            continue
        if not _is_gone(place, plan.snapshot):
            untold.append(place)
        elif policies.gone is Gone.SKIP:
            new_offsets[ClusterPartition(cluster, *place)] = None
        else:
            gone.append(place)
    return SourceChange(
        source.operator_id,
        new_offsets,
        tuple(planned),
        tuple(_refusals(source, side, untold, gone)),
    )


_AS_FLINK = NewPartitions.AS_FLINK


def split_shared_topics(
    change: SourceChange, source: Source, cluster: str | None, others: Iterable[Source]
) -> tuple[SourceChange, list[str]]:
    """A change without what other sources of the job read of the same topics, and what is told.

    Sources that were told their partitions read one topic without sharing any: what one holds must
    not be added to another, and who is to read what none holds is not known. Sources that share
    some may subscribe to the topic, and one has not found all yet: Flink would find the rest.

    Args:
        source: as for ``source_change``.
        cluster: the source's; None is one that the savepoint does not name.
        others: the other sources of the savepoint, of every cluster.
    """
    own = _partitions_by_topic(source)
    same: list[tuple[str, dict[str, frozenset[int]]]] = []
    unnamed: list[tuple[str, dict[str, frozenset[int]]]] = []  # of the same cluster or another
    for other in others:
        for of in other.clusters:
            if of == cluster or None in (of, cluster):
                readers = same if of == cluster else unnamed
                readers.append((other.operator_id, _partitions_by_topic(other.of_cluster(of))))
    added: dict[str, list[ClusterPartition]] = {}
    for place, next_offset in change.new_offsets.items():
        # A topic that it holds nothing of is one that the user's pattern gives it.
        held = own.get(place.topic)
        if next_offset is not None and held is not None and place.partition not in held:
            added.setdefault(place.topic, []).append(place)
    new_offsets = dict(change.new_offsets)
    told: list[str] = []
    not_known: list[str] = []
    for topic, places in added.items():
        held = own[topic]
        beside = {name: of[topic] for name, of in same if topic in of}
        elsewhere = {name for name, of in unnamed if of.get(topic, held) != held}
        sharing = [name for name, of in beside.items() if of != held and of & held]
        names = _names([place[1:] for place in places])
        if elsewhere:
            not_known.append(
                f"whether operator {', '.join(sorted(elsewhere))} reads the topic {topic} of the "
                f"same Kafka cluster as operator {source.operator_id} is not known, as one of them "
                f"names no cluster: nor is who is to read {names}"
            )
        elif sharing:
            not_known.append(
                f"whether operator {source.operator_id} is to read {names} is not known: operator "
                f"{', '.join(sharing)} reads some of the same partitions of the topic, and not all "
                "the same"
            )
        elif any(of != held for of in beside.values()):
            for place in places:
                holders = [name for name, of in beside.items() if place.partition in of]
                if not holders:
                    not_known.append(
                        f"which of {len(beside) + 1} sources is to read {place} is not known: they "
                        "read other partitions of its topic, and not the same"
                    )
                    continue
                del new_offsets[place]
                told.append(
                    f"{place} stays with operator {', '.join(holders)}, and is not added to "
                    f"{source.operator_id}, which reads other partitions of the topic"
                )
    stay = {place[1:] for place in change.new_offsets.keys() - new_offsets.keys()}
    partitions = tuple(one for one in change.partitions if one.topic_partition not in stay)
    how = "choose one with --source, and what it is to read with --partitions"
    refusals = (*change.refusals, *(Refusal(text, how) for text in not_known))
    return replace(change, new_offsets=new_offsets, partitions=partitions, refusals=refusals), told


def _partitions_by_topic(source: Source) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for position in source.positions:
        found.setdefault(position.topic, set()).add(position.partition)
    return {topic: frozenset(partitions) for topic, partitions in found.items()}


def _stands_at(position: Position | None, planned: PlannedPartition) -> int | None:
    """Up to where the savepoint's state has read a partition, where that is known."""
    if position is None or position.start is Marker.EARLIEST:
        return 0 if planned.next_offset == 0 else planned.log_start
    return position.next_offset


def _stays(position: Position, policies: Policies) -> bool:
    if position.state is PositionState.FINISHED:
        return True
    kept = policies.partitions
    if kept is None:
        return False
    named = {policies.topic_map.get(topic, topic): numbers for topic, numbers in kept.items()}
    return position.partition not in named.get(position.topic, frozenset())


def _is_gone(place: TopicPartition, snapshot: ClusterSnapshot | None) -> bool:
    return snapshot is not None and place[1] not in snapshot.topics.get(place[0], {})


def _refusals(
    source: Source, side: str, untold: Sequence[TopicPartition], gone: Sequence[TopicPartition]
) -> Iterator[Refusal]:
    reader = "the query" if source.listed else f"operator {source.operator_id}"
    if untold:
        yield Refusal(
            f"{side} does not tell where {_names(untold)} {'goes' if len(untold) == 1 else 'go'} "
            f"on, which {reader} reads",
            "leave what it does not tell as it is, naming the others with --partitions; or choose "
            "with --bootstrap-servers and --new-partitions earliest or latest",
        )
    if gone:
        yield Refusal(
            f"{reader} reads {_names(gone)}, which the broker does not have",
            "name the brokers that the job read from with --bootstrap-servers, or take it out of "
            "the state with --gone skip",
        )


def _names(places: Sequence[TopicPartition]) -> str:
    return join_some((f"{topic}-{partition}" for topic, partition in sorted(places)), _NAMED)


def restrict_to_topics(
    sources: Iterable[Source], topics: Set[str], policies: Policies
) -> Iterator[Source]:
    """Sources with their positions of these topics alone, or of those that the job would find."""
    pattern = policies.topic_pattern
    for source in sources:
        found = set(pattern.matching(source.topics)) if pattern is not None else set[str]()
        kept = tuple(
            position
            for position in source.positions
            if policies.topic_map.get(position.topic, position.topic) in topics | found
        )
        if kept:
            yield replace(source, positions=kept)


def refuse_left_out(
    side: str, topics: Iterable[str], nobody: str = "no source of the savepoint"
) -> Refusal:
    """Topics of a side that nobody who goes on from it reads."""
    return Refusal(
        f"{side} has positions of {', '.join(sorted(topics))}, which {nobody} reads: its records "
        "would be read by none, or, where topics are found by a pattern, from the start",
        "name that pattern with --topic-pattern, or those that move with --partitions",
    )


def state_mismatches(
    changes: Iterable[SourceChange], found: PlanInput, *, allowed: bool
) -> tuple[list[Refusal], list[str]]:
    """What the state of a job counts twice or lacks that goes on from other positions.

    Returns:
        Refusals, and what else is told: where it is allowed or the job keeps no state, each
        partition in a line.
    """
    ids = {one.operator_id for one in found.findings if one.code is Code.STATE_NOT_MOVED}
    held = [size for operator_id, size in found.state_bytes.items() if operator_id in ids]
    lines = _lines(changes, kept=bool(held))
    if not lines or not held:
        return [], lines
    whose = (
        f"{counted(len(held), 'operator')} of the job {'keeps' if len(held) == 1 else 'keep'} "
        f"{sum(held)} bytes of state, which is that of the savepoint's own positions"
    )
    if allowed:
        return [], [f"{whose} (--allow-state-mismatch)", *lines]
    return [
        Refusal(
            f"{whose}: {join_some(lines, _NAMED, '; ')}",
            "go on with that state all the same with --allow-state-mismatch",
        )
    ], []


def position_changes(changes: Iterable[SourceChange]) -> list[str]:
    """The same, of a query whose state is kept: each partition in a line."""
    return _lines(changes, kept=True)


def _lines(changes: Iterable[SourceChange], *, kept: bool) -> list[str]:
    """Return a line for each partition that goes on elsewhere.

    The operator is named where several read the topic.
    """
    changes = list(changes)
    readers = Counter(topic for change in changes for topic in {p.topic for p in change.partitions})
    return [
        (f"operator {change.operator_id}: " if readers[planned.topic] > 1 else "")
        + _line(planned, kept=kept)
        for change in changes
        for planned in change.partitions
        if planned.next_offset is not None and planned.difference != 0
    ]


def _line(planned: PlannedPartition, *, kept: bool) -> str:
    name = f"{planned.name}"
    by = planned.difference
    if by is None:
        tail = ": how much of it is in the state is not known" if kept else ""
        return f"{name} goes on from {planned.next_offset}{tail}"
    records = f"up to {counted(abs(by), 'record')} {'is' if abs(by) == 1 else 'are'}"
    if by < 0:
        does = f"{records} counted twice" if kept else f"{records} read again"
        return f"{name} goes back from {planned.current} to {planned.next_offset}: {does}"
    does = f"{records} not in the state" if kept else f"{records} not read"
    return f"{name} goes ahead from {planned.current} to {planned.next_offset}: {does}"


def check_savepoint(
    found: PlanInput,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    policies: Policies,
    *,
    named: bool,
) -> tuple[list[Refusal], list[str]]:
    """What of a savepoint itself stands in the way, and what must be known of it.

    Args:
        named: whether the user chose the sources by name.
    """
    findings, refusals, _ = resolve_transactions(
        relevant_findings(found, chosen, named), found, snapshot, policies, restored=True
    )
    in_flight = [finding for finding in findings if finding.code is Code.IN_FLIGHT_RECORDS]
    others = [finding for finding in findings if finding.code is not Code.IN_FLIGHT_RECORDS]
    refusals = [*refusals, *refuse_blockers(others, policies)]
    told = [
        operator_prefix(finding) + finding.message
        for finding in others
        if finding.code in _WARNED_OF and finding.severity is Severity.WARNING
    ]
    if in_flight and policies.allow_in_flight:
        told.append(_in_flight(in_flight))
    elif in_flight:
        refusals.append(
            Refusal(
                _in_flight(in_flight),
                "take an aligned checkpoint, or stop the job with a savepoint (with async I/O with "
                "--drain); or add --allow-in-flight to let it process them",
            )
        )
    return refusals, told


def _in_flight(findings: Sequence[Finding]) -> str:
    ids = ", ".join(sorted({finding.operator_id or "" for finding in findings}))
    return (
        f"records are in flight in the savepoint (operators {ids}): Flink processes them first, "
        "whatever positions it goes on from, and a position that goes back reads them once more"
    )
