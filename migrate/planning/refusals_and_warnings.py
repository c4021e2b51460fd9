"""The refusals and warnings of a plan, and the messages about its partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from decoder.urls import redact_url
from migrate.inputs.flink.source import Source, topics_of
from migrate.model.catalog import COMMITS_BEYOND_POSITIONS, NO_SUCH_PARTITION
from migrate.model.cluster_snapshot import ClusterSnapshot, GroupView
from migrate.model.finding import Code, Finding, Severity
from migrate.model.message import Message
from migrate.model.policies import Policies
from migrate.model.positions import Origin
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import (
    AGE_OF_COPY_UNKNOWN,
    AGE_UNKNOWN,
    ALL_MAYBE_RECREATED,
    GROUP_BEYOND_POSITIONS,
    GROUP_MOVED_AHEAD,
    GROUP_MOVED_AHEAD_OF_READER,
    GROUP_REWOUND,
    MAYBE_RECREATED,
    MERGED_POSITIONS,
    MERGED_POSITIONS_MISSING,
    NEW_GROUP,
    NOT_CHECKED,
    PARTIAL_TOPIC,
    RENAMED_TOPIC,
    SOURCE_GROUP_EMPTY,
    UNLISTED_PARTITION,
)
from migrate.model.wording import counted, iso_time, join_some
from migrate.planning.plan import Plan, PlannedPartition, Verdict

# The maximum number of partitions that a refusal, or a line about skipped partitions, lists.
_MAX_NAMED = 20
# Verdicts whose messages contain offsets and therefore differ by partition.
_VERDICTS_WITH_OFFSETS = (Verdict.EXPIRED, Verdict.BEYOND_END)


def partition_refusals(partitions: Iterable[PlannedPartition]) -> Iterator[Message]:
    """Yield one refusal for each kind of partition problem."""
    alike: dict[tuple[Verdict, str], list[tuple[PlannedPartition, Message]]] = {}
    for planned in partitions:
        if (problem := planned.problem) is not None:
            differs = planned.verdict in _VERDICTS_WITH_OFFSETS
            key = planned.verdict, problem.code if differs else problem
            alike.setdefault(key, []).append((planned, problem))
    for (verdict, _), same in alike.items():
        first, problem = same[0]
        names = join_some((planned.name for planned, _ in same), _MAX_NAMED)
        offsets = verdict in _VERDICTS_WITH_OFFSETS and len(same) > 1
        yield problem.about(
            f"{names}: {verdict.value}" + (f" (the offsets of {first.name})" if offsets else "")
        )


def collect_warnings(
    findings: Iterable[Finding],
    snapshot: ClusterSnapshot | None,
    partitions: Sequence[PlannedPartition],
    policies: Policies,
) -> Iterator[WarningText]:
    """Yield warnings about findings, partitions, the source group, and a missing broker."""
    for_a_group = snapshot is not None and snapshot.target_group is not None
    at_the_end = bool(partitions) and all(planned.records_left == 0 for planned in partitions)
    for finding in findings:
        if finding.code is Code.OUTPUT_BEYOND and at_the_end:
            continue  # no output can be beyond positions at the log end offset
        policy = finding.code.policy
        of_the_group = policy.shown_for_groups and for_a_group
        if finding.severity is Severity.WARNING or policy.allowed(policies) or of_the_group:
            yield WarningText(finding.text)
    yield from _cost_warnings(partitions)
    group = snapshot.source_group if snapshot is not None else None
    if group is not None and not any(
        group.next_offset(planned.topic, planned.partition) is not None for planned in partitions
    ):
        yield WarningText(SOURCE_GROUP_EMPTY(group=group.name, alike=group.alike))
    if snapshot is None:
        yield WarningText(NOT_CHECKED())


def _cost_warnings(partitions: Sequence[PlannedPartition]) -> Iterator[WarningText]:
    """Yield warnings about records that the move may lose or duplicate."""
    if suspects := [planned for planned in partitions if planned.verdict is Verdict.SUSPECT]:
        # Only ``OK`` is evidence that this is the job's cluster, because the other verdicts come
        # from markers and policies.
        is_all = not any(planned.verdict is Verdict.OK for planned in partitions)
        recreated = ALL_MAYBE_RECREATED if is_all else MAYBE_RECREATED
        yield WarningText(recreated(count=len(suspects), partition=suspects[0].name))
    if older := [planned for planned in partitions if planned.older_offsets]:
        yield WarningText(
            UNLISTED_PARTITION(
                count=len(older), partition=older[0].name, records=older[0].older_offsets
            )
        )
    if beyond := _commits_beyond(partitions):
        yield WarningText(GROUP_BEYOND_POSITIONS(**beyond))
    if merged := [planned for planned in partitions if planned.read_already]:
        yield WarningText(
            MERGED_POSITIONS(
                records=sum(planned.read_already for planned in merged),
                count=len(merged),
                partition=merged[0].name,
                next_offset=merged[0].next_offset,
                job_reached=merged[0].job_reached,
            )
        )
    if partly := [planned for planned in partitions if planned.unknown_to_some]:
        yield WarningText(MERGED_POSITIONS_MISSING(count=len(partly), partition=partly[0].name))


def ran_on_refusals(partitions: Iterable[PlannedPartition]) -> Iterator[Message]:
    """Yield a refusal if the source group proves that the job kept running."""
    if beyond := _commits_beyond(partitions):
        yield COMMITS_BEYOND_POSITIONS(**beyond)


def target_group_warnings(
    origin: Origin, snapshot: ClusterSnapshot | None, partitions: Iterable[PlannedPartition]
) -> Iterator[WarningText]:
    """Yield warnings about a new group and about records that the group duplicates or skips.

    These are not refusals, because the user wants to move the group.
    """
    if snapshot is None or snapshot.target_group is None:
        return
    group = snapshot.target_group
    if not group.exists:
        yield new_group_warning(group)
    moved = [(planned, planned.difference) for planned in partitions if planned.difference]
    for sign in (-1, 1):
        same_way = [(planned, by * sign) for planned, by in moved if by * sign > 0]
        if not same_way:
            continue
        first = same_way[0][0]
        facts: dict[str, Any] = {
            "group": group.name,
            "count": len(same_way),
            "partition": first.name,
            "current": first.current,
            "next_offset": first.next_offset,
            "records": sum(by for _, by in same_way),
        }
        if sign < 0:
            yield WarningText(GROUP_REWOUND(**facts))
        elif (reader := reader_of(origin)) is not None:
            yield WarningText(GROUP_MOVED_AHEAD_OF_READER(**facts, reader=reader))
        else:
            yield WarningText(GROUP_MOVED_AHEAD(**facts))


def new_group_warning(group: GroupView) -> WarningText:
    """Return the warning that a consumer group will be created."""
    return WarningText(NEW_GROUP(group=group.name, alike=group.alike))


def reader_of(origin: Origin) -> str | None:
    """Return the reader of the positions, or None if it is unknown."""
    match origin.kind:
        case "checkpoint":
            return "Flink"
        case "batch":
            return "Spark"
    return f"group {origin.group!r}" if origin.group is not None else None


def missing_partition_refusals(
    chosen: Iterable[Source], partitions: Sequence[PlannedPartition], policies: Policies
) -> Iterator[Message]:
    """Yield a refusal for chosen partitions that are neither in the checkpoint nor on the broker.

    Yield nothing for a plan without partitions. ``make_plan`` refuses such a plan itself.
    """
    if policies.partitions is None or not partitions:
        return
    planned = {partition.topic_partition for partition in partitions}
    topics = topics_of(chosen)
    if policies.topic_pattern is not None:
        topics.update(policies.topic_pattern.matching(policies.partitions))
    for old in sorted(topics & policies.partitions.keys()):
        topic = policies.topic_map.get(old, old)
        missing = sorted(n for n in policies.partitions[old] if (topic, n) not in planned)
        if missing:
            yield NO_SUCH_PARTITION(partitions=[f"{topic}-{number}" for number in missing])


def unknown_age_warnings(origin: Origin, snapshot: ClusterSnapshot | None) -> Iterator[WarningText]:
    """Warn if a recreated topic cannot be detected, because the checkpoint's time is uncertain."""
    if snapshot is None or origin.kind != "checkpoint":
        return
    if origin.written_at is None:
        yield WarningText(AGE_UNKNOWN())
    elif origin.copied_from is not None:
        yield WarningText(
            AGE_OF_COPY_UNKNOWN(
                origin=redact_url(origin.copied_from), time=iso_time(origin.written_at)
            )
        )


def renamed_topic_warnings(moved: Iterable[Source], policies: Policies) -> Iterator[WarningText]:
    """Warn that the offsets of one topic are used for a topic with a different name.

    ``moved`` contains the positions that move, under the topic names at the target.
    """
    topics = topics_of(moved)
    for old, new in sorted(policies.topic_map.items()):
        if new in topics and new != old:
            yield WarningText(RENAMED_TOPIC(old=old, new=new))


def partial_topic_warnings(
    chosen: Sequence[Source], snapshot: ClusterSnapshot | None, policies: Policies
) -> Iterator[WarningText]:
    """Warn if only some partitions of a topic move; Spark must not read the other partitions.

    ``chosen`` contains all positions, under the topic names in the checkpoint.
    """
    if policies.partitions is None:
        return
    known = {position.topic_partition for source in chosen for position in source.positions}
    incomplete = []
    for old, moving in policies.partitions.items():
        new = policies.topic_map.get(old, old)
        logs = snapshot.topics.get(new, {}) if snapshot is not None else {}
        if ({number for topic, number in known if topic == old} | logs.keys()) - moving:
            incomplete.append(new)
    if incomplete:
        yield WarningText(PARTIAL_TOPIC(count=len(incomplete), topic=min(incomplete)))


def _commits_beyond(partitions: Iterable[PlannedPartition]) -> dict[str, Any]:
    """Return facts about the source group's commits beyond the positions; empty if none exist."""
    beyond = [planned for planned in partitions if planned.ran_on_by]
    if not beyond:
        return {}
    first = beyond[0]
    return {
        "records": sum(planned.ran_on_by for planned in beyond),
        "partitions": len(beyond),
        "first": first.name,
        "committed": first.flink_committed,
        "next_offset": first.next_offset,
    }


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield a plan's counts, the partitions that need attention, and the notes."""
    if plan.partitions:
        verdicts = Counter(planned.verdict for planned in plan.partitions)
        counts = ", ".join(
            f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]
        )
        partitions = counted(len(plan.partitions), "partition")
        yield f"{partitions} of {counted(len(plan.topics), 'topic')}: {counts}"
    for planned in plan.partitions:
        cost = "".join(_cost(planned))
        if (planned.verdict is not Verdict.OK or cost) and planned.next_offset is not None:
            yield (f"{planned.name}: {planned.verdict.value}, from {planned.next_offset}{cost}")
    for verdict in (Verdict.TOPIC_GONE, Verdict.PARTITION_GONE):
        skipped = [
            planned.name
            for planned in plan.partitions
            if planned.verdict is verdict and planned.problem is None
        ]
        if skipped:
            yield f"{join_some(skipped, _MAX_NAMED)}: {verdict.value}, skipped"
    yield from plan.notes


def _cost(planned: PlannedPartition) -> Iterator[str]:
    for effect, records in (("loses", planned.lost), ("duplicates", planned.repeated)):
        if records != 0:
            amount = "?" if records is None else f"up to {records}"
            yield f", {effect} {amount} records"
