"""What a plan tells its user: refusals with the way out, warnings, and the plan in lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from decoder.urls import shown_url
from migrate.inputs.flink.extract import Code, Finding, Severity, Source
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import Policies
from migrate.model.positions import Marker, Origin
from migrate.model.wording import counted, did_you_mean, iso_time, join_some
from migrate.planning.obstacles import where
from migrate.planning.plan import Plan, PlannedPartition, Refusal, Verdict

# How many partitions one refusal names.
_NAMED = 20
# Of these the problem has the partition's own numbers in it.
_OWN_NUMBERS = (Verdict.EXPIRED, Verdict.BEYOND_END)


def refuse(partitions: Iterable[PlannedPartition]) -> Iterator[Refusal]:
    """What is wrong with partitions: once for those of which the same is wrong."""
    alike: dict[tuple[Verdict, str, str], list[PlannedPartition]] = {}
    for planned in partitions:
        if planned.problem:
            way_out = _way_out(planned)
            problem = "" if planned.verdict in _OWN_NUMBERS else planned.problem
            alike.setdefault((planned.verdict, problem, way_out), []).append(planned)
    for (verdict, _, way_out), these in alike.items():
        names = join_some(map(_name, these), _NAMED)
        yield Refusal(f"{names}: {verdict.value}: {_problem(these)}", way_out)


def _problem(these: Sequence[PlannedPartition]) -> str:
    first = these[0]
    own = first.verdict in _OWN_NUMBERS and len(these) > 1
    return first.problem + (f" (the first; {len(these)} in all)" if own else "")


def _way_out(planned: PlannedPartition) -> str:
    match planned.verdict:
        case Verdict.EXPIRED:
            return "move from a newer checkpoint, or go on after the gap with --on-expired earliest"
        case Verdict.BEYOND_END:
            return (
                "name the brokers that the job read from with --bootstrap-servers, or skip to the "
                "end with --on-beyond-end latest"
            )
        case Verdict.TOPIC_GONE | Verdict.PARTITION_GONE:
            return (
                "name the brokers that the job read from with --bootstrap-servers, or leave it out "
                "with --gone skip"
            )
        case Verdict.NEW_PARTITION:
            return "choose with --new-partitions earliest or latest"
        case _:
            pass
    if planned.operator_id is None:
        return "choose with --new-partitions earliest or latest"
    choose = "choose with --unresolved earliest|latest|committed|timestamp:T"
    asked = planned.log_end is not None
    match planned.position:
        case Marker.EARLIEST:
            return "add --bootstrap-servers HOST:PORT"
        case Marker.COMMITTED:
            needed = "" if asked else "--bootstrap-servers HOST:PORT "
            return f"name Flink's own with {needed}--source-group GROUP, or {choose}"
        case Marker.LATEST:
            return (
                "move from a later checkpoint, which has its offset once it has had a record, or "
                + choose
            )
        case _:
            return choose


def warnings(
    findings: Iterable[Finding],
    snapshot: ClusterSnapshot | None,
    partitions: Sequence[PlannedPartition],
    policies: Policies,
) -> Iterator[str]:
    """What is not refused, and must be known."""
    to_a_group = snapshot is not None and snapshot.target_group is not None
    at_the_end = bool(partitions) and all(planned.records_left == 0 for planned in partitions)
    for finding in findings:
        if finding.code is Code.OUTPUT_BEYOND and at_the_end:
            continue  # there is nothing beyond
        policy = finding.code.policy
        told = policy.allowed(policies) or (policy.of_a_group and to_a_group)
        if finding.severity is Severity.WARNING or told:
            yield where(finding) + finding.message
    yield from _about_costs(partitions)
    if snapshot is not None and snapshot.target_group is not None:
        yield from _about_the_target(snapshot.target_group.name, partitions)
    group = snapshot.source_group if snapshot is not None else None
    if group is not None and not any(
        group.next_offset(planned.topic, planned.partition) is not None for planned in partitions
    ):
        yield (
            f"group {group.name!r}{did_you_mean(group.alike)} has committed nothing for these "
            "topics: if its name is right, that the job did not run on is not shown by it"
        )
    if snapshot is None:
        yield (
            "not checked against Kafka: offsets may be gone, partitions missing; add -b HOST:PORT"
        )


def _about_costs(partitions: Sequence[PlannedPartition]) -> Iterator[str]:
    """What will be lost or repeated although nothing is refused."""
    suspects = [planned for planned in partitions if planned.verdict is Verdict.SUSPECT]
    if suspects:
        yield (
            f"{len(suspects)} partitions look recreated (the first is {_name(suspects[0])}: the "
            "first record since the checkpoint lies below its position): "
            "what lies at their positions may be other records"
        )
    older = [planned for planned in partitions if planned.undiscovered]
    if older:
        first, held = older[0], older[0].undiscovered
        yield (
            f"{counted(len(older), 'new partition')} held records before the checkpoint, which "
            f"does not know of them (the first is {_name(first)}: up to {held}, by their "
            "timestamps): was the job told which partitions to read? then name those with "
            "--partitions"
        )
    beyond = [planned for planned in partitions if planned.ran_on]
    if beyond:
        yield (
            f"{_how_it_ran_on(beyond)}: these will be emitted again, and what it has emitted since "
            "its last commit"
        )
    merged = [planned for planned in partitions if planned.read_already]
    if merged:
        yield (
            f"--merge-sources min: {counted(sum(p.read_already for p in merged), 'record')} of "
            f"{counted(len(merged), 'partition')} will be read again by the source that was "
            f"further on (the first is {_name(merged[0])}: from {merged[0].next_offset}, where "
            f"one had reached {merged[0].reached})"
        )
    partly = [planned for planned in partitions if planned.unknown_to_some]
    if partly:
        yield (
            f"--merge-sources min: {counted(len(partly), 'partition')} (the first is "
            f"{_name(partly[0])}) not every source that reads its topic knows: one that was to "
            "read it too has not, and loses what lies below its next offset"
        )


def group_ran_on(partitions: Iterable[PlannedPartition]) -> Iterator[Refusal]:
    """What Flink's own group proves about the job."""
    beyond = [planned for planned in partitions if planned.ran_on]
    if beyond:
        yield Refusal(
            f"{_how_it_ran_on(beyond)}, and what Flink emitted since would be emitted again",
            "move from a newer checkpoint, or add --allow-ran-on to repeat them",
        )


def _about_the_target(group: str, partitions: Iterable[PlannedPartition]) -> Iterator[str]:
    """What a group that holds offsets already will read again or skip, in offsets of its own.

    Not refused: to be moved is what it is for. Who runs a move twice, the second time after the
    group's consumers have gone on, is to see it.
    """
    moved = [(planned, planned.difference) for planned in partitions if planned.difference]
    for where_to, does, some in (
        ("back", "reads up to {} again", [(p, -by) for p, by in moved if by < 0]),
        ("ahead", "never reads up to {}", [(p, by) for p, by in moved if by > 0]),
    ):
        if some:
            first = some[0][0]
            records = counted(sum(by for _, by in some), "record")
            yield (
                f"group {group!r} is moved {where_to} in {counted(len(some), 'partition')} (the "
                f"first is {_name(first)}: from {first.current} to {first.next_offset}): it "
                + does.format(records)
            )


def nowhere(
    chosen: Iterable[Source], partitions: Sequence[PlannedPartition], policies: Policies
) -> Iterator[Refusal]:
    """Partitions that the user wants moved and nobody has: a slip of the finger, most likely.

    Where nothing moves at all, that is said instead.
    """
    if policies.partitions is None or not partitions:
        return
    there = {(planned.topic, planned.partition) for planned in partitions}
    topics = {topic for source in chosen for topic in source.topics}
    for old in sorted(topics & policies.partitions.keys()):
        topic = policies.topic_map.get(old, old)
        missing = sorted(n for n in policies.partitions[old] if (topic, n) not in there)
        if missing:
            more = f" (and {len(missing) - 1} more of the topic)" if len(missing) > 1 else ""
            yield Refusal(
                f"--partitions: neither the checkpoint nor the broker has {topic}-{missing[0]}"
                f"{more}",
                "name those there are",
            )


def of_unknown_age(origin: Origin, snapshot: ClusterSnapshot | None) -> Iterator[str]:
    """That a topic created again may not show, where the checkpoint's own time is not known."""
    if snapshot is None or origin.kind != "checkpoint":
        return
    hidden = "a topic that was created again since, and has grown beyond these offsets, "
    if origin.written_at is None:
        yield (
            f"the age of this checkpoint is not known, as its store keeps no times: {hidden}would "
            "not show"
        )
    elif origin.copied_from is not None:
        yield (
            f"this checkpoint was written in {shown_url(origin.copied_from)}, and lies elsewhere: "
            f"if {iso_time(origin.written_at)} is the time of a copy, its age is not known, and "
            f"{hidden}does not show; copy it with its times (cp -p, rsync -t), or name it where it "
            "was written"
        )


def other_logs(moved: Iterable[Source], policies: Policies) -> Iterator[str]:
    """Offsets of one topic that are taken for another's.

    Args:
        moved: the sources with what moves of them, under the target's names.
    """
    if not policies.topic_map:
        return
    topics = {topic for source in moved for topic in source.topics}
    for old, new in sorted(policies.topic_map.items()):
        if new in topics and new != old:
            yield (
                f"--topic-map {old}={new}: a topic of another name is another log, where an offset "
                "is another record unless it was copied offset for offset, which MirrorMaker does "
                "not do: compare the records at these offsets first"
            )


def only_some_partitions(
    chosen: Sequence[Source], snapshot: ClusterSnapshot | None, policies: Policies
) -> Iterator[str]:
    """Topics of which Spark is not to read every partition.

    Args:
        chosen: the sources with all their positions, under the checkpoint's names.
    """
    if policies.partitions is None:
        return
    known: dict[str, set[int]] = {topic: set() for topic in policies.partitions}
    for source in chosen:
        for position in source.positions:
            if position.topic in known:
                known[position.topic].add(position.partition)
    narrowed = []
    for old, there in known.items():
        new, kept = policies.topic_map.get(old, old), policies.partitions[old]
        if snapshot is not None:
            there |= snapshot.topics.get(new, {}).keys()
        if there - kept:
            narrowed.append(new)
    if narrowed:
        yield (
            f"--partitions leaves out partitions of {counted(len(narrowed), 'topic')} (the first "
            f"is {min(narrowed)}): the query must assign exactly those that move, as the code of "
            "--format python does; one that subscribes to the topic fails, or reads the others too"
        )


def _how_it_ran_on(beyond: Sequence[PlannedPartition]) -> str:
    first = beyond[0]
    return (
        "the job ran on after this checkpoint: Flink's group has committed "
        f"{counted(sum(planned.ran_on for planned in beyond), 'record')} beyond "
        f"{counted(len(beyond), 'partition')} (the first is {_name(first)}: committed "
        f"{first.flink_committed}, to go on from {first.next_offset})"
    )


def _name(planned: PlannedPartition) -> str:
    return f"{planned.topic}-{planned.partition}"


def plan_lines(plan: Plan) -> Iterator[str]:
    """A total, each partition that does not simply go on, and what is in order after all."""
    if plan.partitions:
        yield from _partition_lines(plan)
    yield from plan.notes


def _partition_lines(plan: Plan) -> Iterator[str]:
    topics = {planned.topic for planned in plan.partitions}
    verdicts = Counter(planned.verdict for planned in plan.partitions)
    counts = ", ".join(
        f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]
    )
    partitions = counted(len(plan.partitions), "partition")
    yield f"{partitions} of {counted(len(topics), 'topic')}: {counts}"
    for planned in plan.partitions:
        cost = "".join(_cost(planned))
        if (planned.verdict is not Verdict.OK or cost) and planned.next_offset is not None:
            yield (
                f"{planned.topic}-{planned.partition}: {planned.verdict.value}, "
                f"from {planned.next_offset}{cost}"
            )


def _cost(planned: PlannedPartition) -> Iterator[str]:
    for what, records in (("loses", planned.lost), ("repeats", planned.repeated)):
        if records != 0:
            amount = "?" if records is None else f"up to {records}"
            yield f", {what} {amount} records"
