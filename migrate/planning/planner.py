"""Make a plan: refuse the move if something blocks it as a whole; otherwise, plan each partition.

If several sources have a partition, their plans for the partition are merged. Partitions that exist
only on the broker are added.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from migrate.inputs.flink.source import Source, SourceKind, topics_of
from migrate.inputs.plan_input import PlanInput
from migrate.model.catalog import NO_OFFSET, NOTHING_SELECTED
from migrate.model.cluster_snapshot import ClusterSnapshot, Question
from migrate.model.finding import Code
from migrate.model.message import Message
from migrate.model.policies import Policies
from migrate.model.positions import SPARK, Target, TopicPartition
from migrate.planning.new_topics import pattern_to_ask, topic_pattern_warnings
from migrate.planning.obstacles import (
    blocker_refusals,
    name_collision_refusals,
    other_brokers_warnings,
    relevant_findings,
    several_cluster_refusals,
    shared_group_refusals,
)
from migrate.planning.partition import flink_committed, new_partition, plan_position
from migrate.planning.plan import Plan, PlannedPartition
from migrate.planning.refusals_and_warnings import (
    collect_warnings,
    missing_partition_refusals,
    partial_topic_warnings,
    partition_refusals,
    ran_on_refusals,
    renamed_topic_warnings,
    target_group_warnings,
    unknown_age_warnings,
)
from migrate.planning.shared_topics import (
    one_cluster_warnings,
    shared_topic_refusals,
    shared_topics,
)
from migrate.planning.transactions import resolve_transactions

DEFAULT_POLICIES: Policies = Policies()

# The maximum number of partitions that a refusal lists.
_MAX_NAMED = 20


def make_question(
    plan_input: PlanInput,
    chosen: Sequence[Source],
    policies: Policies,
    *,
    source_group: str | None = None,
    target: Target = SPARK,
    into: PlanInput | None = None,
) -> Question:
    """Return the question that the broker must answer for ``make_plan``.

    ``into`` is the savepoint or query that receives the positions; None for a new target.
    """
    topics = topics_of(_select_positions(source, policies) for source in chosen)
    transactions = set(chain.from_iterable(plan_input.pending.values()))
    if into is not None:
        topics |= topics_of(into.sources)
        transactions |= set(chain.from_iterable(into.pending.values()))
    return Question(
        frozenset(topics),
        source_group,
        target.group,
        plan_input.origin.written_at,
        policies.unresolved_since,
        pattern_to_ask(plan_input, chosen, policies),
        frozenset(transactions),
    )


def make_plan(
    plan_input: PlanInput,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    policies: Policies = DEFAULT_POLICIES,
    *,
    target: Target = SPARK,
    ignore_other_sources: bool = False,
    bootstrap_servers: str | None = None,
) -> Plan:
    """Plan the move of the chosen sources.

    ``plan_input`` is the whole checkpoint, because in-flight records in any operator are an
    obstacle. ``snapshot`` is the answer to ``make_question``; None if no broker was queried.
    """
    findings, refusals, notes = resolve_transactions(
        relevant_findings(plan_input, chosen, ignore_other_sources), plan_input, snapshot, policies
    )
    moved = [_select_positions(source, policies) for source in chosen]
    shared = shared_topics(moved)
    several_clusters = list(several_cluster_refusals(moved))
    refusals += blocker_refusals(findings, policies)
    refusals += several_clusters or shared_topic_refusals(shared, policies)
    refusals += shared_group_refusals(moved, snapshot)
    topics = topics_of(chosen)
    if policies.partitions is not None:
        topics &= policies.partitions.keys()
    refusals += name_collision_refusals(topics, policies.topic_map)
    partitions: list[PlannedPartition] = []
    if not refusals:
        partitions = _plan_partitions(moved, snapshot, policies)
        newer_checkpoint = any(finding.code is Code.RAN_ON for finding in findings)
        if newer_checkpoint and not any(partition.ran_on_by for partition in partitions):
            # The job kept running, but the number of offsets that it has read since the checkpoint
            # is unknown.
            partitions = [replace(partition, repeated=None) for partition in partitions]
        refusals += partition_refusals(partitions)
        refusals += missing_partition_refusals(chosen, partitions, policies)
        if not policies.allow_ran_on:
            refusals += ran_on_refusals(partitions)
    if not refusals and all(partition.next_offset is None for partition in partitions):
        refusals.append(_empty_refusal(chosen, policies))
    planned_topics = {partition.topic for partition in partitions}
    cluster = snapshot if snapshot is not None else ClusterSnapshot({})
    return Plan(
        plan_input.origin,
        target,
        tuple(partitions),
        tuple(refusals),
        (
            *collect_warnings(findings, snapshot, partitions, policies),
            *target_group_warnings(plan_input.origin, snapshot, partitions),
            *unknown_age_warnings(plan_input.origin, snapshot),
            *topic_pattern_warnings(plan_input, chosen, snapshot, planned_topics, policies),
            *one_cluster_warnings(shared, policies),
            *renamed_topic_warnings(moved, policies),
            *other_brokers_warnings(moved, bootstrap_servers),
            *(partial_topic_warnings(chosen, snapshot, policies) if target == SPARK else ()),
        ),
        cluster_id=cluster.cluster_id,
        topic_ids={topic: n for topic, n in cluster.topic_ids.items() if topic in planned_topics},
        source_group=cluster.source_group.name if cluster.source_group is not None else None,
        allow_ran_on=policies.allow_ran_on,
        only_some_partitions=policies.partitions is not None,
        topic_pattern=policies.topic_pattern.text if policies.topic_pattern is not None else None,
        operators=tuple(sorted({source.operator_id for source in chosen})),
        source_cluster=next(
            (name for s in chosen for name in s.clusters if name is not None), None
        ),
        topic_map=policies.topic_map,
        snapshot=snapshot,
        notes=tuple(notes),
    )


def _empty_refusal(chosen: Iterable[Source], policies: Policies) -> Message:
    """Return the refusal for a plan that moves nothing."""
    if policies.partitions is None:
        return NO_OFFSET()
    known = sorted({position.topic_partition for s in chosen for position in s.positions})
    topic = known[0][0] if known else "TOPIC"
    numbers = [str(partition) for name, partition in known if name == topic]
    return NOTHING_SELECTED(
        partitions=[f"{topic}-{partition}" for topic, partition in known],
        example=f"{topic}:{','.join(numbers[:2]) or '0,1'}",
    )


def _select_positions(source: Source, policies: Policies) -> Source:
    """Return the source with the positions that move, under the topic names at the target."""
    kept = policies.partitions
    return replace(
        source,
        position_fields=tuple(
            position._replace(topic=policies.topic_map.get(position.topic, position.topic))
            for position in source.positions
            if kept is None or position.partition in kept.get(position.topic, frozenset())
        ),
    )


def _plan_partitions(
    chosen: Sequence[Source], snapshot: ClusterSnapshot | None, policies: Policies
) -> list[PlannedPartition]:
    """Plan the sources' partitions and the new partitions; sort them by topic and number."""
    readers: dict[str, list[Source]] = {}
    plans_by_partition: dict[TopicPartition, list[PlannedPartition]] = {}
    for source in chosen:
        for topic in source.topics:
            readers.setdefault(topic, []).append(source)
        for position in source.positions:
            planned = plan_position(position, snapshot, policies)
            plans_by_partition.setdefault(position.topic_partition, []).append(
                replace(planned, operator_id=source.operator_id)
            )
    partitions = [
        _merge(plans, unknown_to_some=len(plans) < len(readers[topic]))
        for (topic, _), plans in plans_by_partition.items()
    ]
    if snapshot is not None:
        if policies.topic_pattern is not None:
            readers |= {topic: list(chosen) for topic in snapshot.matched_topics}
        partitions += _new_partitions(readers, plans_by_partition, snapshot, policies)
        partitions = [_add_group_offsets(partition, snapshot) for partition in partitions]
    return sorted(partitions, key=lambda partition: partition.topic_partition)


def _merge(plans: Sequence[PlannedPartition], *, unknown_to_some: bool) -> PlannedPartition:
    """Merge the plans of several sources for one partition.

    The merged plan has the lowest next offset, and the highest ``lost`` and ``repeated`` that a
    start at this offset causes for any source. If a source does not have the partition, all records
    from the log start to the next offset count as lost.
    """
    next_offsets = []
    for planned in plans:
        if planned.next_offset is None:
            return planned  # a problem or a skip in one source applies to the partition
        next_offsets.append(planned.next_offset)
    start = min(next_offsets)
    lowest = plans[next_offsets.index(start)]
    above = [(planned, at - start) for planned, at in zip(plans, next_offsets, strict=True)]
    reached = [planned.job_reached for planned in plans if planned.job_reached is not None]
    lost: int | None = max(max(0, (planned.lost or 0) - by) for planned, by in above)
    if unknown_to_some:
        lost = start - lowest.log_start if lowest.log_start is not None else None
    return replace(
        lowest,
        # If the ``job_reached`` of a source is unknown, this source may be ahead of the other
        # sources. A commit beyond their positions may then come from this source, so it does not
        # prove that the job kept running.
        job_reached=max(reached) if len(reached) == len(plans) else None,
        unknown_to_some=unknown_to_some,
        lost=lost,
        repeated=max((planned.repeated or 0) + by for planned, by in above),
    )


def _new_partitions(
    readers_by_topic: Mapping[str, Sequence[Source]],
    known: Container[TopicPartition],
    snapshot: ClusterSnapshot,
    policies: Policies,
) -> Iterator[PlannedPartition]:
    """Plan the selected partitions of these topics that the broker has and ``known`` lacks."""
    selected = {
        policies.topic_map.get(topic, topic): partitions
        for topic, partitions in (policies.partitions or {}).items()
    }
    for topic, readers in readers_by_topic.items():
        at_log_start = all(source.starts_absent_partitions_at_log_start for source in readers)
        from_list = any(source.kind is SourceKind.POSITION_LIST for source in readers)
        for partition, log in snapshot.topics.get(topic, {}).items():
            is_selected = policies.partitions is None or partition in selected.get(topic, ())
            if is_selected and (topic, partition) not in known:
                yield new_partition(
                    topic, partition, log, at_log_start, policies, from_position_list=from_list
                )


def _add_group_offsets(planned: PlannedPartition, snapshot: ClusterSnapshot) -> PlannedPartition:
    """Add the committed offsets of the target group and of the source group.

    If the job kept running, also increase ``repeated``.
    """
    target = snapshot.target_group
    planned = replace(
        planned,
        current=target.next_offset(planned.topic, planned.partition) if target else None,
        flink_committed=flink_committed(planned.topic, planned.partition, snapshot),
    )
    if not planned.ran_on_by:
        return planned
    # ``ran_on_by`` is not 0, so ``flink_committed`` and ``next_offset`` are not None. With a
    # snapshot, a partition with a next offset has a log end offset.
    assert planned.flink_committed is not None and planned.next_offset is not None
    assert planned.log_end is not None
    emitted = min(planned.flink_committed, planned.log_end) - planned.next_offset
    return replace(planned, repeated=max(planned.repeated or 0, emitted))
