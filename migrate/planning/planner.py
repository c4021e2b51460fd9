"""``make_plan``: what stands in the way of the whole, then partition by partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from migrate.cluster_snapshot import ClusterSnapshot
from migrate.flink.extract import Code, PlanInput, Source
from migrate.planning.model import Plan, PlannedPartition, Refusal
from migrate.planning.new_topics import about_found_topics, topics_that_match
from migrate.planning.obstacles import (
    blocked_by_findings,
    clusters_mixed_up,
    concerning,
    disagreements,
    groups_mixed_up,
    names_collide,
    other_brokers,
)
from migrate.planning.partitions import plan_partitions
from migrate.planning.refusals_and_warnings import (
    group_ran_on,
    nowhere,
    of_unknown_age,
    only_some_partitions,
    other_logs,
    refuse,
    warnings,
)
from migrate.planning.transactions import answered
from migrate.policy_options import MergeSources, Policies
from migrate.positions import SPARK, Target

REFUSED_BY_DEFAULT: Policies = Policies()

# How many partitions are named.
_NAMED = 20


def make_plan(
    found: PlanInput,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    policies: Policies = REFUSED_BY_DEFAULT,
    *,
    target: Target = SPARK,
    named: bool = False,
    bootstrap_servers: str | None = None,
) -> Plan:
    """Plan the move of the chosen sources.

    Args:
        found: the whole checkpoint: what is in flight anywhere stands in the way.
        chosen: the sources to move, some or all of them.
        snapshot: what the broker said of their topics (``topics_to_ask``), or None without one.
        policies: what the user allows.
        named: whether the user chose them by name: then a source that is not read is left out
            knowingly.
        bootstrap_servers: the brokers that were asked, as they were named.
    """
    findings, refusals, notes = answered(
        concerning(found, chosen, named), found, snapshot, policies
    )
    refusals += blocked_by_findings(findings, policies)
    moved = [_as_the_target_names_it(source, policies) for source in chosen]
    mixed_up = list(clusters_mixed_up(moved))
    refusals += mixed_up
    if policies.merge_sources is MergeSources.FAIL and not mixed_up:
        refusals += disagreements(moved)
    refusals += groups_mixed_up(moved, snapshot)
    refusals += names_collide(chosen, policies)
    partitions: list[PlannedPartition] = []
    if not refusals:
        newer = any(finding.code is Code.RAN_ON for finding in findings)
        more = topics_that_match(snapshot, policies)
        partitions = plan_partitions(moved, snapshot, policies, more, newer_checkpoint=newer)
        refusals += refuse(partitions)
        refusals += nowhere(chosen, partitions, policies)
        if not policies.allow_ran_on:
            refusals += group_ran_on(partitions)
    if not refusals and all(planned.next_offset is None for planned in partitions):
        empty_plan = "there is nothing to move: no partition is left that has an offset"
        if policies.partitions is not None:
            held = sorted({one.topic_partition for source in chosen for one in source.positions})
            those = ", ".join(f"{topic}-{partition}" for topic, partition in held[:_NAMED])
            empty_plan += f"; the checkpoint holds {those}{', …' if held[_NAMED:] else ''}"
        refusals.append(Refusal(empty_plan))
    source_group = snapshot.source_group if snapshot is not None else None
    return Plan(
        found.origin,
        target,
        tuple(partitions),
        tuple(refusals),
        (
            *warnings(findings, snapshot, partitions, policies),
            *of_unknown_age(found.origin, snapshot),
            *about_found_topics(found, chosen, snapshot, partitions, policies),
            *other_logs(moved, policies),
            *other_brokers(moved, bootstrap_servers),
            *(only_some_partitions(chosen, snapshot, policies) if target == SPARK else ()),
        ),
        cluster_id=snapshot.cluster_id if snapshot is not None else None,
        topic_ids=_topic_ids(partitions, snapshot) if snapshot is not None else {},
        source_group=source_group.name if source_group is not None else None,
        allow_ran_on=policies.allow_ran_on,
        only_some_partitions=policies.partitions is not None,
        topic_pattern=policies.topic_pattern.text if policies.topic_pattern is not None else None,
        snapshot=snapshot,
        notes=tuple(notes),
    )


def _topic_ids(partitions: Iterable[PlannedPartition], snapshot: ClusterSnapshot) -> dict[str, str]:
    """Those of the topics that are planned; the snapshot may hold others that were only found."""
    planned = {one.topic for one in partitions}
    return {topic: one for topic, one in snapshot.topic_ids.items() if topic in planned}


def topics_to_ask(chosen: Iterable[Source], policies: Policies) -> set[str]:
    """The topics a snapshot must hold, as the target names them."""
    moved = (_as_the_target_names_it(source, policies) for source in chosen)
    return {topic for source in moved for topic in source.topics}


def _as_the_target_names_it(source: Source, policies: Policies) -> Source:
    """The source with the positions that are to move, its topics under their names of today."""
    kept = policies.partitions
    return replace(
        source,
        positions=tuple(
            position._replace(topic=policies.topic_map.get(position.topic, position.topic))
            for position in source.positions
            if kept is None or position.partition in kept.get(position.topic, frozenset())
        ),
    )
