"""Check topics that several sources read: their positions and their Kafka clusters must agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from migrate.inputs.flink.source import Source
from migrate.model.catalog import (
    POSITIONS_DIFFER,
    POSITIONS_DIFFER_CLUSTER_UNKNOWN,
    SAME_TOPIC_TWO_CLUSTERS,
)
from migrate.model.message import Message
from migrate.model.policies import MergeSources, Policies
from migrate.model.positions import Marker, PositionState, format_start
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import ONE_CLUSTER
from migrate.model.wording import printable

# For one topic in one source: the state and the start offset of each partition.
_StartByPartition = dict[int, tuple[PositionState, int | Marker | None]]


class SharedTopic(NamedTuple):
    """A topic that several sources read.

    Attributes:
        starts: the start of each partition in each source, in the order of ``sources``.
        differing: the partitions that a source lacks, or whose state or start differs, in ascending
            order.
    """

    name: str
    sources: list[Source]
    starts: list[_StartByPartition]
    differing: list[int]

    @property
    def may_be_two_topics(self) -> bool:
        """True if one source does not identify its cluster, so the topic may be in two clusters."""
        return any(None in source.clusters for source in self.sources)

    @property
    def readers_text(self) -> str:
        """The operators of the sources as a phrase for messages."""
        return f"operators {', '.join(map(_label, self.sources))}"

    def disagreement_refusal(self, *, one_cluster: bool = False) -> Message:
        """Return the refusal for a topic whose sources have different positions."""
        partition = self.differing[0]
        starts = (own.get(partition, (None, None))[1] for own in self.starts)
        shown = ("none" if start is None else format_start(start) for start in starts)
        two_topics = self.may_be_two_topics and not one_cluster
        template = POSITIONS_DIFFER_CLUSTER_UNKNOWN if two_topics else POSITIONS_DIFFER
        return template(
            sources=len(self.sources),
            topic=self.name,
            count=len(self.differing),
            operators=[source.operator_id for source in self.sources],
            partition=f"{self.name}-{partition}",
            starts=" and ".join(shown),
        )

    def unnamed_cluster_refusal(self) -> Message:
        """Return the refusal for a topic whose sources may read different Kafka clusters."""
        return SAME_TOPIC_TWO_CLUSTERS(
            sources=len(self.sources), topic=self.name, readers=self.readers_text
        )


def shared_topics(sources: Iterable[Source]) -> list[SharedTopic]:
    """Return the topics that several of these sources read, sorted by name."""
    topics: dict[str, tuple[list[Source], list[_StartByPartition]]] = {}
    for source in sources:
        by_topic: dict[str, _StartByPartition] = {}
        for position in source.positions:
            starts = by_topic.setdefault(position.topic, {})
            starts[position.partition] = position.state, position.start
        for topic, starts in by_topic.items():
            readers, starts_of_readers = topics.setdefault(topic, ([], []))
            readers.append(source)
            starts_of_readers.append(starts)
    return [
        SharedTopic(topic, *topics[topic], _differing(topics[topic][1]))
        for topic in sorted(topics)
        if len(topics[topic][0]) > 1
    ]


def _differing(starts: Sequence[_StartByPartition]) -> list[int]:
    first = starts[0]
    return sorted(
        partition
        for partition in set().union(*starts)
        if any(other.get(partition) != first.get(partition) for other in starts)
    )


def shared_topic_refusals(topics: Iterable[SharedTopic], policies: Policies) -> Iterator[Message]:
    """Yield a refusal for each topic that has different positions or may be in two clusters."""
    for topic in topics:
        if policies.merge_sources is MergeSources.FAIL and topic.differing:
            yield topic.disagreement_refusal(one_cluster=policies.one_cluster)
        elif topic.may_be_two_topics and not policies.one_cluster:
            yield topic.unnamed_cluster_refusal()


def one_cluster_warnings(
    topics: Iterable[SharedTopic], policies: Policies
) -> Iterator[WarningText]:
    """Warn about topics whose sources are assumed to share a cluster (``--one-cluster``)."""
    for topic in topics:
        if policies.one_cluster and topic.may_be_two_topics:
            yield WarningText(ONE_CLUSTER(readers=topic.readers_text, topic=topic.name))


def _label(source: Source) -> str:
    """Return a source's operator ID, with its uid or name if known."""
    name = source.uid or source.name
    return f"{source.operator_id} ({printable(name)})" if name else source.operator_id
