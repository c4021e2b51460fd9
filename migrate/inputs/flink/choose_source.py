"""The choice of a checkpoint's sources: ``--source`` and ``--cluster``.

The user names a source by its operator id, its name, its uid, or a topic that it reads
(``topic:NAME``). Metadata up to version 4 has no uids. But the operator id is the MurmurHash3 (128
bits, seed 0) of the uid, so a source is found by the hash of its uid.

Source: org.apache.flink.streaming.api.graph.StreamGraphHasherV2.generateUserSpecifiedHash @ Flink
1.20.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from migrate.inputs.flink.source import Source
from migrate.inputs.plan_input import PlanInput
from migrate.model.errors import NoSuchName, Refused
from migrate.model.finding import Code
from migrate.model.positions import (
    PositionSet,
    Start,
    TopicPartition,
    Unknown,
    format_start,
)

# The prefix of a value of ``--source`` that names a topic.
TOPIC_PREFIX = "topic:"


@dataclass(frozen=True, slots=True)
class Choice:
    """The options for reading a checkpoint, and for choosing its source."""

    allow_external_files: bool = False
    source: str | None = None
    cluster: str | None = None


ANY_SOURCE = Choice()


def choose(extraction: PlanInput, choice: Choice) -> list[Source]:
    """Return the chosen sources, restricted to the chosen cluster.

    Raises:
        NoSuchName: no source has the chosen name, or reads the chosen cluster.
    """
    return choose_cluster(choose_sources(extraction, choice.source), choice.cluster)


class LenientChoice(NamedTuple):
    """The chosen sources, and the options whose values this checkpoint does not have."""

    sources: list[Source]
    unknown: frozenset[str]


def choose_leniently(extraction: PlanInput, choice: Choice) -> LenientChoice:
    """Return the chosen sources; ignore a name or a cluster that this checkpoint does not have.

    Raises:
        NoSuchName: the checkpoint has no Kafka source.
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
    return LenientChoice(sources, frozenset(unknown))


def choose_sources(extraction: PlanInput, name: str | None) -> list[Source]:
    """Return the sources with this name, or all sources for None.

    Without a name, the list is empty if no source can be read, because all are damaged or of an
    unknown kind. The findings about these sources then block the plan.

    Raises:
        NoSuchName: no source has this name, or the checkpoint has no Kafka source.
    """
    sources = extraction.sources
    if not sources and not any(finding.code.policy.unread for finding in extraction.findings):
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
    chosen = [source for source in sources if _has_name(source, name)]
    if not chosen:
        raise NoSuchName(
            f"no Kafka source answers to {name!r}",
            name.removeprefix(TOPIC_PREFIX),
            _names(sources),
            "there are: " + "; ".join(map(_describe, sources)),
        )
    return chosen


def choose_cluster(sources: Sequence[Source], cluster: str | None) -> list[Source]:
    """Return the sources restricted to a cluster, or unchanged for None.

    A KafkaSource is always kept, because its state names no cluster. The plan then refuses it,
    because it may read another cluster.

    Raises:
        NoSuchName: no source reads the cluster.
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
    """Return the operator id that Flink derives from a uid: 32 hex digits."""
    import mmh3  # imported here because few commands need it

    return mmh3.hash_bytes(uid.encode("utf-8", "surrogateescape"), 0).hex()


def _has_name(source: Source, name: str) -> bool:
    if name.startswith(TOPIC_PREFIX):
        return name.removeprefix(TOPIC_PREFIX) in source.topics
    return (
        name in (source.name, source.uid)
        or source.operator_id == name.lower()
        or source.operator_id == operator_id_of(name)
    )


def _names(sources: Iterable[Source]) -> dict[str, str]:
    """Return the names to suggest, except operator ids, each with its value for ``--source``."""
    known: dict[str, str] = {}
    for source in sources:
        known |= {topic: TOPIC_PREFIX + topic for topic in source.topics}
        known |= {name: name for name in (source.name, source.uid) if name}
    return known


def _describe(source: Source) -> str:
    names = "".join(f" {name!r}" for name in (source.uid, source.name) if name)
    return f"{source.operator_id}{names} ({', '.join(sorted(source.topics))})"


def source_positions(label: str, sources: Iterable[Source], note: str = "") -> PositionSet:
    """Return the positions of a checkpoint's sources.

    Raises:
        Refused: two sources have different positions of one partition, or the positions are of
            several clusters.
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
            start: Start = Unknown.UNRESOLVED if position.start is None else position.start
            if starts.setdefault(position.topic_partition, start) != start:
                raise Refused(
                    f"{label}: two sources read {position.topic}-{position.partition} and stand "
                    f"at {format_start(starts[position.topic_partition])} and "
                    f"{format_start(start)}; choose one with --source OPERATOR_ID"
                )
    return PositionSet(label, starts, note)
