"""Choose from a checkpoint's sources, according to ``--source`` and ``--cluster``.

The user specifies a source by its operator ID, its name, its uid, or a topic that it reads
(``topic:NAME``). Metadata up to version 4 contains no uids, but the operator ID shows whether a
source has a given uid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from migrate.inputs.flink.source import Source
from migrate.inputs.plan_input import PlanInput
from migrate.model.catalog import SIDE_IN_SEVERAL_CLUSTERS, SOURCES_AT_DIFFERENT_POSITIONS
from migrate.model.errors import NoSuchName, Refused
from migrate.model.finding import Code
from migrate.model.option_names import option
from migrate.model.policies import Policies
from migrate.model.positions import (
    PositionSet,
    Start,
    TopicPartition,
    Unknown,
    format_start,
)

# The prefix of a topic in a ``--source`` value.
TOPIC_PREFIX = "topic:"


@dataclass(frozen=True, slots=True)
class Choice:
    """The options for reading a checkpoint and for choosing a source in it."""

    allow_external_files: bool = False
    source: str | None = None
    cluster: str | None = None


ANY_SOURCE = Choice()


def choose(plan_input: PlanInput, choice: Choice) -> list[Source]:
    """Return the chosen sources, restricted to the chosen cluster.

    If the user did not choose a source, and all of the checkpoint's Kafka sources are unreadable,
    the list is empty, and the findings about these sources block the plan.

    Raises:
        NoSuchName: no source has the chosen name or reads the chosen cluster; or the checkpoint
            has no Kafka source.
    """
    named = _sources_named(plan_input, choice.source)
    chosen = _in_cluster(named, choice.cluster)
    if not chosen:
        _refuse_choice(plan_input, named, choice)
    return chosen


def choose_leniently(plan_input: PlanInput, choice: Choice) -> tuple[list[Source], set[str]]:
    """Return the chosen sources; ignore a name or a cluster that is not in this checkpoint.

    Returns:
        The sources, and the ignored options ("source", "cluster", or both).

    Raises:
        NoSuchName: the checkpoint has no Kafka source.
    """
    ignored: set[str] = set()
    sources = _sources_named(plan_input, choice.source)
    if not sources:
        sources = choose(plan_input, ANY_SOURCE)
        if choice.source is not None:
            ignored.add("source")
    in_cluster = _in_cluster(sources, choice.cluster)
    if sources and not in_cluster:
        ignored.add("cluster")
    return in_cluster or sources, ignored


def _sources_named(plan_input: PlanInput, name: str | None) -> list[Source]:
    """Return the sources with this name, or all sources if ``name`` is None."""
    return [source for source in plan_input.sources if name is None or _has_name(source, name)]


def _in_cluster(sources: list[Source], cluster: str | None) -> list[Source]:
    """Return the sources restricted to a cluster, or unchanged if ``cluster`` is None.

    If any source reads the cluster, the result also includes, unchanged, the sources without a
    cluster in their state, such as a KafkaSource. The plan then refuses these sources, because they
    might read a different cluster.
    """
    if cluster is None:
        return sources
    if not any(cluster in source.clusters for source in sources):
        return []
    return [
        source if None in source.clusters else source.of_cluster(cluster)
        for source in sources
        if source.clusters & {cluster, None}
    ]


def _refuse_choice(plan_input: PlanInput, named: Sequence[Source], choice: Choice) -> None:
    """Raise the error for a choice that matches no source.

    If the user did not choose a source, and all of the checkpoint's Kafka sources are unreadable,
    do nothing.
    """
    unread = any(finding.code.policy.unread for finding in plan_input.findings)
    if not named and choice.source is not None and (plan_input.sources or unread):
        there_are = "; ".join(map(_describe, plan_input.sources))
        known = _suggested_names(plan_input.sources)
        raise NoSuchName(
            f"no Kafka source matches {choice.source!r}",
            choice.source.removeprefix(TOPIC_PREFIX),
            known,
            f"this checkpoint contains: {there_are}",
        )
    if named:
        clusters = {name for source in named for name in source.clusters if name is not None}
        there_are = f"the sources read the clusters {', '.join(map(repr, sorted(clusters)))}"
        raise NoSuchName(
            f"no Kafka source reads cluster {choice.cluster!r}",
            choice.cluster or "",
            clusters,
            there_are
            if clusters
            else f"only a DynamicKafkaSource has cluster names; omit {option('cluster')}",
        )
    if not unread:
        others = {
            f"; {finding.text}"
            for finding in plan_input.findings
            if finding.code is Code.ANOTHER_SOURCE_KIND
        }
        raise NoSuchName(
            "this checkpoint contains no Kafka source; to list its contents, run `migrate inspect`"
            + "".join(sorted(others))
        )


def restrict_to_topics(
    sources: Iterable[Source], topics: Set[str], policies: Policies
) -> Iterator[Source]:
    """Yield the sources that read these topics, or topics that match ``--topic-pattern``.

    Positions in other topics are omitted. ``topics`` contains the names that the topics have after
    ``--topic-map`` is applied.
    """
    pattern = policies.topic_pattern
    for source in sources:
        matching = set(pattern.matching(source.topics)) if pattern is not None else set[str]()
        kept = tuple(
            position
            for position in source.positions
            if policies.topic_map.get(position.topic, position.topic) in topics | matching
        )
        if kept:
            yield replace(source, position_fields=kept)


def _has_name(source: Source, name: str) -> bool:
    if name.startswith(TOPIC_PREFIX):
        return name.removeprefix(TOPIC_PREFIX) in source.topics
    from migrate.model.operator_id import operator_id_of  # few commands choose a source

    return (
        name in (source.name, source.uid)
        or source.operator_id == name.lower()
        or source.operator_id == operator_id_of(name)
    )


def _suggested_names(sources: Iterable[Source]) -> dict[str, str]:
    """Return the topics, names, and uids to suggest, each with its value for ``--source``."""
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
        Refused: two sources have different positions for one partition, or the positions are in
            several clusters.
    """
    starts: dict[TopicPartition, Start] = {}
    sources = list(sources)
    clusters = {position.cluster for source in sources for position in source.positions}
    if len(clusters) > 1:
        names = sorted(name for name in clusters if name is not None)
        raise Refused(SIDE_IN_SEVERAL_CLUSTERS(label=label, clusters=names))
    for source in sources:
        for position in source.positions:
            start: Start = Unknown.UNRESOLVED if position.start is None else position.start
            if starts.setdefault(position.topic_partition, start) != start:
                raise Refused(
                    SOURCES_AT_DIFFERENT_POSITIONS(
                        label=label,
                        partition=f"{position.topic}-{position.partition}",
                        first=format_start(starts[position.topic_partition]),
                        second=format_start(start),
                    )
                )
    return PositionSet(label, starts, note)
