"""Which sources of a checkpoint are meant: ``--source`` and ``--cluster``.

A source is named by its operator id, its name, its uid, or a topic it reads (``topic:NAME``).
Metadata up to version 4 holds no uid, but an operator id is the MurmurHash3 (128 bits, seed 0) of
its uid, so that a uid is found by hashing it.

Source: org.apache.flink.streaming.api.graph.StreamGraphHasherV2.generateUserSpecifiedHash @ Flink
1.20.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from migrate.inputs.flink.extract import PlanInput, Source
from migrate.model.errors import NoSuchName, Refused
from migrate.model.finding import Code
from migrate.model.positions import (
    Position,
    PositionSet,
    Start,
    TopicPartition,
    Unknown,
    format_start,
)

# What a name begins with that is a topic's.
TOPIC_PREFIX = "topic:"


@dataclass(frozen=True, slots=True)
class Reading:
    """How a checkpoint is read."""

    allow_external_files: bool = False


@dataclass(frozen=True, slots=True)
class Choice(Reading):
    """Which source of a checkpoint is meant."""

    source: str | None = None
    cluster: str | None = None


ANY_SOURCE = Choice()


def choose(extraction: PlanInput, choice: Choice) -> list[Source]:
    """The sources that are meant, as if they read the chosen cluster alone.

    Raises:
        NoSuchName: there is none.
    """
    return choose_cluster(choose_sources(extraction, choice.source), choice.cluster)


class Known(NamedTuple):
    """What a choice means where it may be another's: the sources, and the options that name what
    is not here, which choose nothing."""

    sources: list[Source]
    unknown: frozenset[str]


def choose_known(extraction: PlanInput, choice: Choice) -> Known:
    """The sources that are meant, or all where a name is another's.

    Raises:
        NoSuchName: there is none of any name.
    """
    unknown = set()
    try:
        sources = choose_sources(extraction, choice.source)
    except NoSuchName:
        sources = choose_sources(extraction, None)
        unknown.add("source")
    try:
        sources = choose_cluster(sources, choice.cluster)
    except NoSuchName:
        unknown.add("cluster")
    return Known(sources, frozenset(unknown))


def choose_sources(extraction: PlanInput, name: str | None) -> list[Source]:
    """The sources meant by ``name``, or all of them where it is None.

    None at all are chosen where the checkpoint holds nothing but sources that stand in the way
    (damaged, or of a kind not read here): the plan then refuses by them.

    Raises:
        NoSuchName: there is none.
    """
    sources = extraction.sources
    in_the_way = any(finding.code.policy.unread for finding in extraction.findings)
    if not sources and not in_the_way:
        others = {
            f"; {finding.operator_id}: {finding.message}"
            for finding in extraction.findings
            if finding.code is Code.ANOTHER_SOURCE_KIND
        }
        raise NoSuchName(
            "this checkpoint holds no Kafka source; 'migrate inspect' shows what it holds"
            + "".join(sorted(others))
        )
    if name is None:
        return list(sources)
    chosen = [source for source in sources if _answers_to(source, name)]
    if not chosen:
        raise NoSuchName(
            f"no Kafka source answers to {name!r}",
            name.removeprefix(TOPIC_PREFIX),
            _names(sources),
            "there are: " + "; ".join(map(_describe, sources)),
        )
    return chosen


def choose_cluster(sources: Sequence[Source], cluster: str | None) -> list[Source]:
    """The sources as if they read this cluster alone, or as they are where it is None.

    A KafkaSource stays among them, as its state names no cluster: the plan then refuses to take it
    for the same one.

    Raises:
        NoSuchName: none of them reads it.
    """
    if cluster is None or not sources:
        return list(sources)
    known = {name for source in sources for name in source.clusters if name is not None}
    if cluster not in known:
        there_are = ", ".join(map(repr, sorted(known))) or "none, and no DynamicKafkaSource"
        raise NoSuchName(
            f"no Kafka source reads a cluster {cluster!r}",
            cluster,
            known,
            f"there are: {there_are}",
        )
    return [
        source if None in source.clusters else source.of_cluster(cluster)
        for source in sources
        if source.clusters & {cluster, None}
    ]


def operator_id_of(uid: str) -> str:
    """The operator id that Flink derives from a uid: 32 hex digits."""
    import mmh3  # here, as few commands need it

    return mmh3.hash_bytes(uid.encode("utf-8", "surrogateescape"), 0).hex()


def _answers_to(source: Source, name: str) -> bool:
    if name.startswith(TOPIC_PREFIX):
        return name.removeprefix(TOPIC_PREFIX) in source.topics
    return (
        name in (source.name, source.uid)
        or source.operator_id == name.lower()
        or source.operator_id == operator_id_of(name)
    )


def _names(sources: Iterable[Source]) -> dict[str, str]:
    """What somebody may have mistyped, and how it is named: nobody types an operator id."""
    known: dict[str, str] = {}
    for source in sources:
        known |= {topic: TOPIC_PREFIX + topic for topic in source.topics}
        known |= {called: called for called in (source.name, source.uid) if called}
    return known


def _describe(source: Source) -> str:
    names = "".join(f" {name!r}" for name in (source.uid, source.name) if name)
    return f"{source.operator_id}{names} ({', '.join(sorted(source.topics))})"


def source_positions(label: str, sources: Iterable[Source], note: str = "") -> PositionSet:
    """The positions of some sources of a checkpoint.

    Raises:
        Refused: two of them read one partition and stand at different places, or they
            read several clusters.
    """
    starts: dict[TopicPartition, Start] = {}
    sources = list(sources)
    clusters = {position.cluster for source in sources for position in source.positions}
    if len(clusters) > 1:
        names = ", ".join(sorted(repr(name) for name in clusters if name is not None))
        raise Refused(
            f"{label}: its positions are of several clusters ({names}); choose one with --cluster "
            "ID, or a source with --source OPERATOR_ID"
        )
    for source in sources:
        for position in source.positions:
            start = _start(position)
            if starts.setdefault(position.topic_partition, start) != start:
                raise Refused(
                    f"{label}: two sources read {position.topic}-{position.partition} and stand "
                    f"at {format_start(starts[position.topic_partition])} and "
                    f"{format_start(start)}; choose one with --source OPERATOR_ID"
                )
    return PositionSet(label, starts, note)


def _start(position: Position) -> Start:
    return position.start if position.start is not None else Unknown.UNRESOLVED
