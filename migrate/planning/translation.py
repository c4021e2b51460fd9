"""A plan for a target that reads from a different cluster than the job does. Pure, no I/O.

The plan is made for the job's cluster first. Each next offset is then replaced with the
corresponding offset in the other cluster. The records around both offsets, and samples from across
the logs, must show that they correspond (``find_copy``). If the other log contains records more
than once, ``--on-ambiguous first`` allows the first place. An offset is never computed from another
offset, for example by adding a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from migrate.model.catalog import (
    COPY_AMBIGUOUS,
    COPY_DUPLICATED,
    COPY_EXPIRED,
    COPY_FILTERED,
    COPY_FOREIGN,
    COPY_LAGGING,
    COPY_MISSING,
    COPY_NOT_STARTED,
    COPY_REPARTITIONED,
    COPY_TOPIC_MISSING,
    COPY_WITH_OTHER_PARTITIONS,
    ONE_CLUSTER_FOR_BOTH,
)
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.message import Message
from migrate.model.policies import OnAmbiguous, Policies
from migrate.model.positions import TopicPartition, log_of
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import ABORTED_COPIES, HISTORY_NOT_COMPARABLE, HISTORY_SAMPLED
from migrate.model.wording import counted, join_some
from migrate.planning.match_records import Bound, Match
from migrate.planning.obstacles import name_collision_refusals
from migrate.planning.plan import MatchOutcome, Plan, PlannedPartition, Translation
from migrate.planning.refusals_and_warnings import target_group_warnings

# The maximum number of partitions that a refusal names.
_MAX_NAMED = 20


def topic_refusals(
    plan: Plan, target: ClusterSnapshot, names: Mapping[str, str]
) -> Iterator[Message]:
    """Yield refusals for topics that ``target`` lacks or has with a different partition count.

    Two topics that share a name in ``target`` are also refused, and so are topics that are their
    own copies. ``names`` contains the topic names in ``target``, by their names in the plan.
    """
    if refusal := own_copy_refusal(plan.topics, names, plan.cluster_id, target.cluster_id):
        yield refusal
        return
    yield from name_collision_refusals(plan.topics, names)
    here = plan.snapshot.topics if plan.snapshot is not None else {}
    for topic in sorted({planned.topic for planned in plan.partitions if planned.topic in here}):
        name = names.get(topic, topic)
        logs = target.topics.get(name)
        if logs is None:
            yield COPY_TOPIC_MISSING(topic=topic, name=name, alike=target.alike.get(name, ()))
        elif len(logs) != len(here[topic]):
            yield COPY_WITH_OTHER_PARTITIONS(
                topic=topic, partitions=len(here[topic]), name=name, copied=len(logs)
            )


def own_copy_refusal(
    topics: Iterable[str], names: Mapping[str, str], job_id: str | None, target_id: str | None
) -> Message | None:
    """Return the refusal of topics that would be compared with themselves, or None.

    Such a comparison always succeeds, so it shows nothing. A copy in the same cluster has a
    different name.

    Args:
        topics: the names of the topics in the job's cluster.
        names: the names of the topics in the target's cluster.
        job_id: the ID of the job's cluster, if known.
        target_id: the ID of the target's cluster, if known.
    """
    same = sorted(topic for topic in topics if names.get(topic, topic) == topic)
    if job_id is None or job_id != target_id or not same:
        return None
    return ONE_CLUSTER_FOR_BOTH(cluster=job_id, topics=same)


def translated_plan(
    plan: Plan,
    translated: Mapping[TopicPartition, Match],
    target: ClusterSnapshot,
    policies: Policies,
    *,
    is_whole: bool = False,
) -> Plan:
    """Return the plan with the offsets in the other cluster, ``target``.

    ``translated`` contains the match of each partition that has a next offset. With ``is_whole``,
    all comparable records were compared.
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
        warnings=(
            *plan.warnings,
            *target_group_warnings(plan.origin, target, partitions),
            *_aborted_warnings(partitions, translated),
            *_sampled_warnings(partitions, is_whole),
        ),
        topic_map=policies.topic_map,
        to_cluster_id=target.cluster_id,
        to_topic_ids={t: target.topic_ids[t] for t in sorted(topics & target.topic_ids.keys())},
        snapshot=replace(target, source_group=source_group),
        notes=(*plan.notes, *_notes(partitions, translated)),
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
    assert planned.log_start is not None and planned.log_end is not None  # a broker was queried
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
            match.compared,
            match.unread,
        ),
    )
    if match.outcome.is_match:
        return new
    if match.outcome.is_lossless and policies.on_ambiguous is OnAmbiguous.FIRST:
        if planned.repeated is None or match.bound is Bound.AT_LEAST:
            return replace(new, repeated=None)
        return replace(new, repeated=planned.repeated + match.records)
    return replace(
        new, next_offset=None, problem=COPY_MISSING(reason=match.reason or match.outcome.value)
    )


def _translation_refusals(
    partitions: tuple[PlannedPartition, ...], translated: Mapping[TopicPartition, Match]
) -> Iterator[Message]:
    """Yield one refusal for each kind of problem with the translated partitions."""
    alike: dict[tuple[MatchOutcome, str], list[tuple[PlannedPartition, Match]]] = {}
    for planned in partitions:
        if planned.problem and (proof := planned.translation) is not None:
            match = translated[proof.topic, planned.partition]
            alike.setdefault((match.outcome, match.reason), []).append((planned, match))
    for (outcome, reason), same in alike.items():
        matches = [match for _, match in same]
        if outcome is MatchOutcome.LAGGING and not any(match.records for match in matches):
            refusal = COPY_NOT_STARTED()
        elif outcome is MatchOutcome.LAGGING:
            refusal = COPY_LAGGING(records=_bounded(matches, "consumed record"))
        elif (template := _TEMPLATES.get(outcome)) is not None:
            refusal = template(records=_bounded(matches))
        else:
            refusal = COPY_MISSING(reason=reason)
        names = join_some((planned.name for planned, _ in same), _MAX_NAMED)
        yield refusal.about(f"{names}: {outcome.value}")


_TEMPLATES = {
    MatchOutcome.AMBIGUOUS: COPY_AMBIGUOUS,
    MatchOutcome.WENT_BACK: COPY_DUPLICATED,
    MatchOutcome.EXPIRED: COPY_EXPIRED,
    MatchOutcome.FILTERED: COPY_FILTERED,
    MatchOutcome.FOREIGN: COPY_FOREIGN,
    MatchOutcome.OTHER_PARTITIONING: COPY_REPARTITIONED,
}


def _bounded(matches: Sequence[Match], noun: str = "record") -> str:
    """Return the total number of records in matches, with a qualifier such as ``at least``."""
    bounds = {match.bound for match in matches} - {Bound.EXACT}
    count = counted(sum(match.records for match in matches), noun)
    if not bounds:
        return count
    if len(bounds) > 1:  # the sum is neither a lower nor an upper bound
        return f"about {count}"
    (bound,) = bounds
    return f"{bound.value} {count}"


def _aborted_warnings(
    partitions: tuple[PlannedPartition, ...], translated: Mapping[TopicPartition, Match]
) -> Iterator[WarningText]:
    """Yield a warning about records of aborted transactions after the positions."""
    aborted = {
        planned.name: match.aborted
        for planned in partitions
        if planned.translation is not None
        and (match := translated.get((planned.translation.topic, planned.partition))) is not None
        and match.aborted
    }
    if aborted:
        yield WarningText(ABORTED_COPIES(partitions=list(aborted), records=sum(aborted.values())))


def _sampled_warnings(
    partitions: tuple[PlannedPartition, ...], is_whole: bool
) -> Iterator[WarningText]:
    """Yield a warning about the partitions in which not all records were compared."""
    sampled = {
        planned.name: found.unread
        for planned in partitions
        if (found := planned.translation) is not None
        and found.is_sampled
        and (found.outcome.is_match or found.outcome.is_lossless)
    }
    if sampled:
        message = HISTORY_NOT_COMPARABLE if is_whole else HISTORY_SAMPLED
        yield WarningText(message(partitions=list(sampled), records=sum(sampled.values())))


NOT_COMPARABLE = (
    "they cannot be compared, because the topic is compacted, or its log in the job's cluster has "
    "lost records"
)
ASSUMPTION = (
    "for records that were not compared, migrate assumes that the mirror preserves partitions "
    "and order, and that no other client writes to the target's topic"
)


def _notes(
    partitions: tuple[PlannedPartition, ...], translated: Mapping[TopicPartition, Match]
) -> Iterator[str]:
    """Yield lines about the translated partitions."""
    found = [found for planned in partitions if (found := planned.translation) is not None]
    if not found:
        return
    counts = []
    for outcome in MatchOutcome:
        alike = [one for one in found if one.outcome is outcome]
        if alike:
            compared = sum(one.compared for one in alike)
            records = f" ({counted(compared, 'record')})" if compared else ""
            counts.append(f"{len(alike)} {outcome.value}{records}")
    yield f"searched the other cluster for {counted(len(found), 'position')}: {', '.join(counts)}"
    kept = [one for one in found if one.outcome.is_match or one.outcome.is_lossless]
    if any(one.outcome is not MatchOutcome.PROVED for one in kept):
        yield ASSUMPTION
    by_syncs = sum(
        match.is_by_syncs and match.next_offset is not None for match in translated.values()
    )
    if by_syncs:
        yield (
            f"equal records surround {counted(by_syncs, 'position')}; the mirror's offset syncs "
            "show which of these records were copied"
        )
