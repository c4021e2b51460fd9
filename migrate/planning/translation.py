"""A plan for a target that reads another cluster than the job. Pure, no I/O.

The plan is made for the job's cluster first. Then each next offset is replaced by that of the other
cluster. The records around both offsets must prove that they correspond (``match_records``). If
these records are in the other log more than once, ``--on-ambiguous first`` allows the first place.
An offset is never computed from another offset, for example by adding a constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import OnAmbiguous, Policies
from migrate.model.positions import TopicPartition, log_of
from migrate.model.wording import counted, did_you_mean, join_some
from migrate.planning.match_records import Match, MatchOutcome
from migrate.planning.obstacles import name_collision_refusals
from migrate.planning.plan import Plan, PlannedPartition, Refusal, Translation
from migrate.planning.refusals_and_warnings import target_group_warnings

# The maximum number of partitions that a refusal names.
_MAX_NAMED = 20


def topic_refusals(
    plan: Plan, target: ClusterSnapshot, names: Mapping[str, str]
) -> Iterator[Refusal]:
    """Yield refusals of topics that the other cluster lacks, or has with other partition counts.

    Two topics under one name there are refused, too. ``names`` has the topics' names there.
    """
    yield from name_collision_refusals(plan.topics, names)
    here = plan.snapshot.topics if plan.snapshot is not None else {}
    for topic in sorted({planned.topic for planned in plan.partitions if planned.topic in here}):
        name = names.get(topic, topic)
        logs = target.topics.get(name)
        if logs is None:
            yield Refusal(
                f"topic {topic}: the cluster that the target reads has no topic {name}"
                f"{did_you_mean(target.alike.get(name, ()))}",
                f"name the copy with --topic-map {topic}=NAME",
            )
        elif len(logs) != len(here[topic]):
            yield Refusal(
                f"topic {topic} has {counted(len(here[topic]), 'partition')}, and {name} in the "
                f"cluster that the target reads has {len(logs)}: in which of them a record is "
                "copied is not known",
                "mirror it to a topic with the same number of partitions",
            )


def translated_plan(
    plan: Plan,
    translated: Mapping[TopicPartition, Match],
    target: ClusterSnapshot,
    policies: Policies,
) -> Plan:
    """Return the plan with the offsets of the other cluster, ``target``.

    ``translated`` has the match of each partition that has a next offset.
    """
    partitions = tuple(
        _translate(planned, translated.get(planned.topic_partition), target, policies)
        for planned in plan.partitions
    )
    topics = {planned.topic for planned in partitions}
    source_group = plan.snapshot.source_group if plan.snapshot is not None else None
    return replace(
        plan,
        partitions=partitions,
        refusals=tuple(_translation_refusals(partitions, translated)),
        warnings=(*plan.warnings, *target_group_warnings(plan.origin, target, partitions)),
        topic_map=policies.topic_map,
        to_cluster_id=target.cluster_id,
        to_topic_ids={t: target.topic_ids[t] for t in sorted(topics & target.topic_ids.keys())},
        snapshot=replace(target, source_group=source_group),
        notes=(*plan.notes, *_notes(partitions)),
    )


def _translate(
    planned: PlannedPartition,
    match: Match | None,
    target: ClusterSnapshot,
    policies: Policies,
) -> PlannedPartition:
    topic = policies.topic_map.get(planned.topic, planned.topic)
    log = log_of(target.topics, topic, planned.partition)
    group = target.target_group
    new = replace(
        planned,
        topic=topic,
        log_start=log.start if log is not None else None,
        log_end=log.end if log is not None else None,
        current=group.next_offset(topic, planned.partition) if group is not None else None,
    )
    if match is None or planned.next_offset is None:
        return new
    assert planned.log_start is not None and planned.log_end is not None  # a broker was asked
    new = replace(
        new,
        next_offset=match.next_offset,
        translation=Translation(
            planned.topic,
            planned.next_offset,
            planned.log_start,
            planned.log_end,
            match.outcome,
            match.before,
            match.after,
            match.is_searched_to_end,
        ),
    )
    if match.outcome.is_proof:
        return new
    if match.outcome is MatchOutcome.AMBIGUOUS and policies.on_ambiguous is OnAmbiguous.FIRST:
        repeated = planned.repeated + match.records if planned.repeated is not None else None
        return replace(new, repeated=repeated)
    return replace(new, next_offset=None, problem=match.reason or match.outcome.value)


def _translation_refusals(
    partitions: tuple[PlannedPartition, ...], translated: Mapping[TopicPartition, Match]
) -> Iterator[Refusal]:
    """Yield one refusal for each kind of problem of the translated partitions."""
    alike: dict[tuple[MatchOutcome, str], list[tuple[PlannedPartition, Match]]] = {}
    for planned in partitions:
        if planned.problem and (proof := planned.translation) is not None:
            match = translated[proof.topic, planned.partition]
            alike.setdefault((match.outcome, match.reason), []).append((planned, match))
    for (outcome, reason), same in alike.items():
        names = join_some((planned.name for planned, _ in same), _MAX_NAMED)
        records = sum(match.records for _, match in same)
        match outcome:
            case MatchOutcome.LAGGING:
                what = f"at least {counted(records, 'consumed record')} not copied yet"
                way_out = "wait for the mirror with --wait 5m"
            case MatchOutcome.AMBIGUOUS:
                what = "the records around the position are there more than once"
                way_out = (
                    f"start at the first of them, and repeat up to {counted(records, 'record')}, "
                    "with --on-ambiguous first"
                )
            case MatchOutcome.EXPIRED:
                what = f"the log there begins at least {counted(records, 'record')} later"
                way_out = "mirror the topic again, or move while both clusters have the records"
            case _:
                what = reason
                way_out = (
                    "check that --topic-map names the copy of the topic, and that the mirror keeps "
                    "each record's partition"
                )
        yield Refusal(f"{names}: {outcome.value}: {what}", way_out)


def _notes(partitions: tuple[PlannedPartition, ...]) -> Iterator[str]:
    """Yield a line about all translated partitions, and one about proofs of incomplete searches."""
    proofs = [proof for planned in partitions if (proof := planned.translation) is not None]
    if not proofs:
        return
    outcomes = Counter(proof.outcome for proof in proofs)
    counts = ", ".join(
        f"{outcomes[outcome]} {outcome.value}" for outcome in MatchOutcome if outcomes[outcome]
    )
    compared = [
        proof.before + proof.after for proof in proofs if proof.outcome is MatchOutcome.PROVED
    ]
    least = f"; each proved by {min(compared)} records or more" if compared else ""
    yield f"{counted(len(proofs), 'position')} looked for in the other cluster: {counts}{least}"
    if cut := sum(not p.is_searched_to_end for p in proofs if p.outcome is MatchOutcome.PROVED):
        yield (
            f"{counted(cut, 'partition')} not searched to the log end: records that the mirror "
            "copied again further on are read twice"
        )
