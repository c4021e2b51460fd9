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
from migrate.model.option_names import option
from migrate.model.policies import MergeSources, Policies
from migrate.model.positions import Origin
from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import counted, did_you_mean, iso_time, join_some
from migrate.planning.plan import Plan, PlannedPartition, Verdict

# Partitions in a refusal.
_MAX_NAMED = 20
# Verdicts whose problem texts contain offsets and therefore differ by partition.
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
            continue  # the output cannot be beyond positions at the log end
        policy = finding.code.policy
        of_the_group = policy.shown_for_groups and for_a_group
        if finding.severity is Severity.WARNING or policy.allowed(policies) or of_the_group:
            yield warning_text(finding.code, finding.text)
    yield from _cost_warnings(partitions)
    group = snapshot.source_group if snapshot is not None else None
    if group is not None and not any(
        group.next_offset(planned.topic, planned.partition) is not None for planned in partitions
    ):
        yield warning_text(
            WarningCode.SOURCE_GROUP_EMPTY,
            f"group {group.name!r}{did_you_mean(group.alike)} has committed no offset for these "
            "topics, so the group does not show whether the job kept running",
        )
    if snapshot is None:
        yield warning_text(WarningCode.NOT_CHECKED, not_checked())


def not_checked() -> str:
    """Return the text of the warning that no broker was queried."""
    return f"not checked against Kafka; add {option('bootstrap_servers', 'HOST:PORT')}"


def _cost_warnings(partitions: Sequence[PlannedPartition]) -> Iterator[WarningText]:
    """Yield warnings about records that the move may lose or duplicate."""
    if suspects := [planned for planned in partitions if planned.verdict is Verdict.SUSPECT]:
        every = (
            "; because this applies to all partitions, the cluster is probably different, and "
            "these offsets would lose or duplicate records there"
        )
        yield warning_text(
            WarningCode.MAYBE_RECREATED,
            f"{counted(len(suspects), 'partition')} may belong to a recreated topic or to a "
            "different cluster (the first is "
            f"{suspects[0].name}){every if len(suspects) == len(partitions) else ''}; check that "
            f"{option('bootstrap_servers')} specifies the job's brokers",
        )
    if older := [planned for planned in partitions if planned.older_offsets]:
        yield warning_text(
            WarningCode.UNLISTED_PARTITION,
            f"{counted(len(older), 'partition')} with records older than the checkpoint "
            f"{'is' if len(older) == 1 else 'are'} not in the checkpoint (the first is "
            f"{older[0].name}: up to {older[0].older_offsets} records)",
        )
    if beyond := _commits_beyond(partitions):
        yield warning_text(
            Code.RAN_ON,
            "the job kept running after this checkpoint; Flink's group has committed "
            f"{counted(beyond['records'], 'record')} beyond the positions of "
            f"{counted(beyond['partitions'], 'partition')} (the first is {beyond['first']}: "
            f"committed {beyond['committed']}, next offset {beyond['next_offset']}); these records "
            "will be duplicated",
        )
    merged_by_min = option("merge_sources", MergeSources.MIN)
    if merged := [planned for planned in partitions if planned.read_already]:
        yield warning_text(
            WarningCode.MERGED_POSITIONS,
            f"{merged_by_min}: {counted(sum(p.read_already for p in merged), 'record')} in "
            f"{counted(len(merged), 'partition')} will be reprocessed (the first is "
            f"{merged[0].name}: from offset {merged[0].next_offset}, although one source had "
            f"reached offset {merged[0].job_reached})",
        )
    if partly := [planned for planned in partitions if planned.unknown_to_some]:
        yield warning_text(
            WarningCode.MERGED_POSITIONS,
            f"{merged_by_min}: one source of the topic has no position for "
            f"{counted(len(partly), 'partition')} (the first is {partly[0].name}), and will lose "
            "the records below the next offset",
        )


def ran_on_refusals(partitions: Iterable[PlannedPartition]) -> Iterator[Message]:
    """Yield a refusal if the source group proves that the job kept running."""
    if beyond := _commits_beyond(partitions):
        yield COMMITS_BEYOND_POSITIONS(**beyond)


def target_group_warnings(
    origin: Origin, snapshot: ClusterSnapshot | None, partitions: Iterable[PlannedPartition]
) -> Iterator[WarningText]:
    """Yield warnings about a new group and about records that the group duplicates or skips.

    They are not refusals, because the user wants to move the group.
    """
    if snapshot is None or snapshot.target_group is None:
        return
    group = snapshot.target_group
    if not group.exists:
        yield new_group_warning(group)
    moved = [(planned, planned.difference) for planned in partitions if planned.difference]
    for direction, effect, sign in (
        ("rewound", "up to {} will be reprocessed", -1),
        ("moved ahead", f"up to {{}}{reader_clause(origin)} will be skipped", 1),
    ):
        same_way = [(planned, by * sign) for planned, by in moved if by * sign > 0]
        if same_way:
            first = same_way[0][0]
            records = counted(sum(by for _, by in same_way), "record")
            yield warning_text(
                WarningCode.GROUP_MOVED,
                f"group {group.name!r} will be {direction} in "
                f"{counted(len(same_way), 'partition')} (the first is {first.name}: from "
                f"{first.current} to {first.next_offset}); {effect.format(records)}",
            )


def new_group_warning(group: GroupView) -> WarningText:
    """Return the warning that a consumer group will be created."""
    return warning_text(
        WarningCode.NEW_GROUP,
        f"group {group.name!r} does not exist and will be created{did_you_mean(group.alike)}; "
        "check the name",
    )


def reader_clause(origin: Origin) -> str:
    """Return ", which X has read", or "" for an unknown reader X of the positions."""
    match origin.kind:
        case "checkpoint":
            return " that Flink has read"
        case "batch":
            return " that Spark has read"
    return f" that group {origin.group!r} has read" if origin.group is not None else ""


def missing_partition_refusals(
    chosen: Iterable[Source], partitions: Sequence[PlannedPartition], policies: Policies
) -> Iterator[Message]:
    """Yield a refusal of ``--partitions`` that are in neither the checkpoint nor the broker.

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
    hidden = "a recreated topic cannot be detected"
    if origin.written_at is None:
        yield warning_text(
            WarningCode.AGE_UNKNOWN, f"the age of the checkpoint is unknown, so {hidden}"
        )
    elif origin.copied_from is not None:
        written_in = redact_url(origin.copied_from)
        yield warning_text(
            WarningCode.AGE_UNKNOWN,
            f"the checkpoint is a copy of {written_in}, and its file is dated "
            f"{iso_time(origin.written_at)}; if this is the time of the copy, {hidden}",
        )


def renamed_topic_warnings(moved: Iterable[Source], policies: Policies) -> Iterator[WarningText]:
    """Warn that the offsets of one topic are used for a topic with a different name.

    ``moved`` contains the positions that move, under the topic names at the target.
    """
    topics = topics_of(moved)
    for old, new in sorted(policies.topic_map.items()):
        if new in topics and new != old:
            yield warning_text(
                WarningCode.RENAMED_TOPIC,
                f"{option('topic_map', {old: new})}: the same offset may refer to a different "
                "record in the new topic; compare the records first",
            )


def partial_topic_warnings(
    chosen: Sequence[Source], snapshot: ClusterSnapshot | None, policies: Policies
) -> Iterator[WarningText]:
    """Warn if only some partitions of a topic move, because Spark must not read the others.

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
        yield warning_text(
            WarningCode.PARTIAL_TOPIC,
            f"{option('partitions')} omits partitions of {counted(len(incomplete), 'topic')} "
            f"(the first is {min(incomplete)}); the query must assign exactly the partitions that "
            "move",
        )


def _commits_beyond(partitions: Iterable[PlannedPartition]) -> dict[str, Any]:
    """Return facts about the source group's commits beyond the positions; empty if none is."""
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
    yield from plan.notes


def _cost(planned: PlannedPartition) -> Iterator[str]:
    for effect, records in (("loses", planned.lost), ("duplicates", planned.repeated)):
        if records != 0:
            amount = "?" if records is None else f"up to {records}"
            yield f", {effect} {amount} records"
