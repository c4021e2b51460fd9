"""Match a savepoint's sources with the sources in the *side*, the input with the new positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from migrate.extensions.savepoints.catalog import (
    NO_COMMON_TOPIC,
    SAVEPOINT_CLUSTERS_UNNAMED,
    SAVEPOINT_OF_OTHER_CLUSTER,
)
from migrate.inputs.flink.choose_source import restrict_to_topics
from migrate.inputs.flink.source import Source, topics_of
from migrate.model.errors import NoSuchName, Refused
from migrate.model.log import log
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.policies import Policies
from migrate.moves.options import Request
from migrate.planning.shared_topics import shared_topics
from migrate.planning.source_changes import left_out_refusal


class SourceMatch(NamedTuple):
    """A source in the savepoint, limited to one cluster, and the matching sources in the side."""

    source: Source
    cluster: str | None
    side_sources: Sequence[Source]


def match_sources(
    chosen: Sequence[Source], all_side_sources: Sequence[Source], policies: Policies
) -> list[SourceMatch]:
    """Match each source in a savepoint, cluster by cluster, with sources in the side.

    If the side has a source with the same operator ID, only this source can match. Otherwise, every
    source in the side that reads a topic of the savepoint's source matches. If both sources
    identify their clusters, only positions in the same cluster match.

    If the user passes ``--partitions``, and the savepoint has several sources, only some sources
    get new positions. For each specified partition, the sources that have the partition get new
    positions. If no source has the partition, the sources that read its topic get new positions.
    All other sources keep their positions, and their ``side_sources`` are empty.
    """
    matches: list[SourceMatch] = []
    for source in chosen:
        for cluster in sorted(source.clusters, key=lambda name: name or ""):
            source_in_cluster = source.of_cluster(cluster) if cluster is not None else source
            same = [other for other in all_side_sources if other.operator_id == source.operator_id]
            in_cluster = [
                other if cluster is None or None in other.clusters else other.of_cluster(cluster)
                for other in same or all_side_sources
            ]
            side_sources = tuple(restrict_to_topics(in_cluster, source_in_cluster.topics, policies))
            matches.append(SourceMatch(source_in_cluster, cluster, side_sources))
    if policies.partitions is None or len(matches) == 1:
        return matches
    named = {
        (policies.topic_map.get(topic, topic), partition)
        for topic, partitions in policies.partitions.items()
        for partition in partitions
    }
    own_partitions = [
        {position.topic_partition for position in match.source.positions} for match in matches
    ]
    new = {topic for topic, _ in named - set().union(*own_partitions)}
    return [
        match
        if named & own or new & match.source.topics
        else match._replace(side_sources=())  # the source keeps its positions
        for match, own in zip(matches, own_partitions, strict=True)
    ]


def other_cluster_refusals(
    matches: Sequence[SourceMatch], all_side_sources: Sequence[Source]
) -> Iterator[Message]:
    """Yield a refusal of positions in other clusters, if the savepoint identifies its clusters."""
    own = {match.cluster for match in matches} - {None}
    others = {cluster for source in all_side_sources for cluster in source.clusters} - own - {None}
    if own and others:
        yield SAVEPOINT_OF_OTHER_CLUSTER(
            own=sorted(filter(None, own)), others=sorted(filter(None, others))
        )


def check_common_topic(
    matches: Sequence[SourceMatch], all_side_sources: Sequence[Source], side: str, request: Request
) -> None:
    """Check that the side and the savepoint have a common topic.

    Do nothing if the user has chosen sources or partitions.

    Raises:
        Refused: the side has none of the savepoint's topics.
    """
    if (request.source, request.policies.partitions) != (None, None):
        return
    if not any(match.side_sources for match in matches):
        topics = sorted(topics_of(all_side_sources))
        own = sorted(topics_of(match.source for match in matches))
        raise Refused(NO_COMMON_TOPIC(side=side, topics=topics, own=own))


def unnamed_position_refusals(matches: Sequence[SourceMatch]) -> Iterator[Message]:
    """Yield refusals of positions without a cluster, if the savepoint reads several clusters."""
    clusters = {
        match.cluster
        for match in matches
        if match.cluster is not None
        and any(match.cluster not in source.clusters for source in match.side_sources)
    }
    if len(clusters) > 1:
        yield SAVEPOINT_CLUSTERS_UNNAMED(clusters=sorted(clusters))


def unknown_cluster_refusals(matches: Sequence[SourceMatch], request: Request) -> Iterator[Message]:
    """Yield refusals of topics that several sources read, possibly from different clusters.

    Without a broker, a topic is accepted if each source that reads it takes positions only from the
    side's source with the same operator ID.
    """
    if request.policies.one_cluster:
        return
    moving = [match for match in matches if match.side_sources]
    from_others = {
        match.source.operator_id
        for match in moving
        if any(other.operator_id != match.source.operator_id for other in match.side_sources)
    }
    for topic in shared_topics(match.source for match in moving):
        ids = {source.operator_id for source in topic.sources}
        if topic.may_be_two_topics and (request.kafka.is_given or from_others & ids):
            yield topic.unnamed_cluster_refusal()


def left_out_topic_refusals(
    side: str, all_side_sources: Sequence[Source], matches: Sequence[SourceMatch], request: Request
) -> Iterator[Message]:
    """Yield a refusal if the side has positions in topics that no source in the savepoint reads.

    With ``--source``, log these topics instead.
    """
    own = {match.source.operator_id for match in matches}
    same = [source for source in all_side_sources if source.operator_id in own]
    # If the side is a checkpoint of the same job, only the topics of chosen sources count.
    topics = topics_of(same or all_side_sources)
    topics -= topics_of(source for match in matches for source in match.side_sources)
    if request.policies.partitions is not None:
        topics &= request.policies.partitions.keys()
    if topics and request.source is None:
        yield left_out_refusal(side, topics)
    elif topics:
        log.info(f"note: {option('source')} omits {', '.join(sorted(topics))}")


def check_topic_map(
    topic_map: Mapping[str, str],
    side: str,
    all_side_sources: Sequence[Source],
    chosen: Sequence[Source],
) -> None:
    """Check that ``--topic-map`` maps topics in the side (OLD) to topics in the savepoint (NEW).

    Raises:
        NoSuchName: a topic is missing.
    """
    known = topics_of(all_side_sources)
    read = topics_of(chosen)
    for old, new in topic_map.items():
        if old not in known:
            raise NoSuchName(
                f"{option('topic_map', {old: new})}: {side} has no topic {old}",
                old,
                known,
                f"it has: {', '.join(sorted(known))}",
            )
        if new not in read:
            raise NoSuchName(
                f"{option('topic_map', {old: new})}: no source in the savepoint reads {new}",
                new,
                read,
                f"the sources read: {', '.join(sorted(read))}; a savepoint keeps its topic "
                f"names, so set NEW to the topic in the savepoint that gets the positions of {old}",
            )
