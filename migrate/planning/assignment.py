"""Refusals of an assignment of Flink sources to the Kafka sources of a Spark query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from migrate.inputs.flink.assign_sources import Assignment
from migrate.inputs.flink.source import Source
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import Policies
from migrate.planning.shared_topics import shared_topics


def refuse_unassigned_sources(assignment: Assignment, policies: Policies) -> Iterator[str]:
    """Refuse Flink sources that should move, but go to no Spark source."""
    for source in assignment.left_out:
        if policies.partitions is None or source.topics & set(policies.partitions):
            yield (
                f"operator {source.operator_id} ({', '.join(sorted(source.topics))}) goes to no "
                "Spark source, so that its records would be read by none; name it too "
                "(spark-source), or choose what moves (move.source, move.partitions)"
            )


def refuse_unnamed_clusters(
    sources: Sequence[Source], snapshot: ClusterSnapshot | None, policies: Policies
) -> Iterator[str]:
    """Refuse topics that several sources read, perhaps on two clusters.

    Without a broker, nothing is refused: each Spark source then gets its own positions.
    """
    if snapshot is None or policies.one_cluster:
        return
    way_out = (
        "if they read the same Kafka cluster, add --one-cluster; if not, leave out -b: each "
        "Spark source then starts at its own positions, and these are not checked"
    )
    for topic in shared_topics(sources):
        if topic.may_be_two_topics:
            yield str(replace(topic.refuse_unnamed_cluster(), way_out=way_out))


def refuse_unassigned_topics(assignment: Assignment, policies: Policies) -> Iterator[str]:
    """Refuse topics of an assigned Flink source that go to no Spark source."""
    taken: dict[str, set[str]] = {}
    for part in chain.from_iterable(assignment.by_number.values()):
        taken.setdefault(part.operator_id, set()).update(part.topics)
    for source in assignment.assigned:
        moving = source.topics if policies.partitions is None else set(policies.partitions)
        for topic in sorted((source.topics & moving) - taken[source.operator_id]):
            yield (
                f"topic {topic} of operator {source.operator_id} goes to no Spark source, so that "
                f"its records would be read by none; name it too (--spark-source N=topic:{topic}), "
                "or choose what moves with --partitions"
            )
