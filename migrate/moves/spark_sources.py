"""``--spark-source``: the Flink source that each Kafka source of a Spark query goes on from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from migrate.inputs.flink.choose_source import TOPIC_PREFIX, choose, choose_sources
from migrate.inputs.flink.extract import PlanInput
from migrate.inputs.flink.source import Source, topics_of
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.model.policies import Policies
from migrate.moves.load_inputs import read_input
from migrate.moves.options import Request
from migrate.moves.pipeline import plan_parts
from migrate.planning import Plan
from migrate.planning.shared_topics import shared_topics
from migrate.targets.source_options import SparkSource

_SHOWN = 5
# The highest number of a Spark source: beyond what any query has, it is a slip.
_LAST = 9999

# Spark source -> the Flink sources it goes on from, each with the positions that it takes.
Assignment = Mapping[int, Sequence[Source]]


def plan_streams(
    request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[list[SparkSource], tuple[str, ...]]:
    """Plan each Spark source by itself.

    Args:
        request: what moves.
        names: the Flink sources that each Spark source goes on from, as ``choose_sources`` takes
            them.

    Returns:
        Where each starts, and the warnings of all.

    Raises:
        Refused: what would lose or repeat records is not allowed; or a topic of a Flink source
            that is named goes to no Spark source.
        NoSuchSource: a name of no source.
        UsageError: options that do not go together.
    """
    positions, chosen, assignment = _read(request, names)
    whole = _whole(chosen, assignment)
    move = plan_parts(
        request, positions, chosen, assignment.values(), asked_about=whole, named=True
    )
    labels = [f"Spark source {number}" for number in assignment]
    warnings = move.report(labels)
    _report_assignment(chosen, assignment)
    refusals = [
        *_clusters_not_named(whole, move.snapshot, request.policies),
        *_forgotten(chosen, assignment, request.policies),
        *(
            f"{label}: {reason}"
            for label, plan in zip(labels, move.plans, strict=True)
            for reason in plan.refusals
        ),
    ]
    if refusals:
        raise Refused(refusals)
    only_some = request.policies.partitions is not None
    sources = [
        SparkSource(number, plan.next_offsets, only_some)
        for number, plan in zip(assignment, move.plans, strict=True)
    ]
    return sources, warnings


def plan_as_one(
    request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[Plan, dict[int, frozenset[str]]]:
    """Plan all Spark sources together: no topic is read from two places.

    Args:
        request: what moves.
        names: as for ``plan_streams``.

    Returns:
        The plan, and the topics that each Spark source reads, by the target's names.

    Raises:
        as ``plan_streams``, and where a Flink source goes to no Spark source: the job does not run
        on to read it. Sources that read one topic from different positions are among the plan's
        refusals.
    """
    positions, chosen, assignment = _read(request, names)
    whole = _whole(chosen, assignment)
    move = plan_parts(request, positions, chosen, [whole], asked_about=whole, named=True)
    move.report()
    _report_assignment(chosen, assignment)
    (plan,) = move.plans
    refusals = [
        *_unnamed(chosen, assignment, request.policies),
        *_forgotten(chosen, assignment, request.policies),
    ]
    if refusals:
        raise Refused([*refusals, *map(str, plan.refusals)])
    if len(assignment) == 1:
        return plan, {number: frozenset(plan.topics) for number in assignment}
    renamed = request.policies.topic_map
    return plan, {
        number: frozenset(
            renamed.get(topic, topic) for source in sources for topic in source.topics
        )
        for number, sources in assignment.items()
    }


def _read(
    request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[PlanInput, list[Source], Assignment]:
    """Return what moves, its sources that are chosen, and what each Spark source takes."""
    for number, source_names in names.items():
        if not 0 <= number <= _LAST or not source_names or isinstance(source_names, str):
            raise UsageError(
                f"--spark-source {number}: {source_names!r}: not a source number and names"
            )
    if request.policies.topic_pattern is not None and len(names) > 1:
        raise UsageError(
            "--topic-pattern: which of several streams would read a new topic is not known; plan "
            "each by itself, with --source"
        )
    positions = read_input(request)
    chosen = choose(positions, request)
    return positions, chosen, _assign(positions, chosen, names)


def _assign(
    positions: PlanInput, chosen: Sequence[Source], names: Mapping[int, Sequence[str]]
) -> Assignment:
    """Return what each Spark source takes; of a topic that is named, its positions alone."""
    by_id = {source.operator_id: source for source in chosen}
    assignment: dict[int, list[Source]] = {}
    for number in sorted(names):
        taken: dict[str, set[str]] = {}
        for name in names[number]:
            named = choose_sources(positions, name)
            for source in (by_id[s.operator_id] for s in named if s.operator_id in by_id):
                topics = {name.removeprefix(TOPIC_PREFIX)} if _is_topic(name) else source.topics
                taken.setdefault(source.operator_id, set()).update(topics & source.topics)
        if not any(taken.values()):
            raise UsageError(
                f"--spark-source {number}={names[number][0]}: --source or --cluster leaves it out"
            )
        assignment[number] = [
            replace(
                by_id[operator_id],
                positions=tuple(p for p in by_id[operator_id].positions if p.topic in topics),
            )
            for operator_id, topics in taken.items()
        ]
    return assignment


def _is_topic(name: str) -> bool:
    return name.startswith(TOPIC_PREFIX)


def _whole(chosen: Sequence[Source], assignment: Assignment) -> list[Source]:
    """Return the Flink sources that are named, with all they read."""
    ids = {source.operator_id for sources in assignment.values() for source in sources}
    return [source for source in chosen if source.operator_id in ids]


def _left_out(chosen: Sequence[Source], assignment: Assignment) -> list[Source]:
    """Return the Flink sources of which no Spark source takes anything."""
    ids = {source.operator_id for source in _whole(chosen, assignment)}
    return [source for source in chosen if source.operator_id not in ids]


def _unnamed(chosen: Sequence[Source], assignment: Assignment, policies: Policies) -> Iterator[str]:
    """Refuse Flink sources that should move, and that no Spark source goes on from."""
    for source in _left_out(chosen, assignment):
        if policies.partitions is None or source.topics & set(policies.partitions):
            yield (
                f"operator {source.operator_id} ({', '.join(sorted(source.topics))}) goes to no "
                "Spark source, so that its records would be read by none; name it too "
                "(spark-source), or choose what moves (move.source, move.partitions)"
            )


def _clusters_not_named(
    sources: Sequence[Source], snapshot: ClusterSnapshot | None, policies: Policies
) -> Iterator[str]:
    """Refuse topics that several sources read, perhaps on two clusters, where one broker answers.

    Without a broker each stream has its own positions, whatever its cluster is.
    """
    if snapshot is None or policies.one_cluster:
        return
    way_out = (
        "if they read the same Kafka cluster, add --one-cluster; if not, leave out -b: each "
        "Spark source then starts at its own positions, and these are not checked"
    )
    for topic in shared_topics(sources):
        if topic.may_be_two:
            yield str(replace(topic.refuse_unnamed_cluster(), way_out=way_out))


def _forgotten(
    chosen: Sequence[Source], assignment: Assignment, policies: Policies
) -> Iterator[str]:
    """Refuse topics of a Flink source that is split, and that no Spark source takes."""
    for source in _whole(chosen, assignment):
        taken = {
            topic
            for sources in assignment.values()
            for part in sources
            if part.operator_id == source.operator_id
            for topic in part.topics
        }
        moving = source.topics if policies.partitions is None else set(policies.partitions)
        for topic in sorted((source.topics & moving) - taken):
            yield (
                f"topic {topic} of operator {source.operator_id} goes to no Spark source, so that "
                f"its records would be read by none; name it too (--spark-source N=topic:{topic}), "
                "or choose what moves with --partitions"
            )


def _taken_twice(assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Yield topics that go to several Spark sources, with the numbers of these."""
    readers: dict[str, list[int]] = {}
    for number, sources in assignment.items():
        for topic in topics_of(sources):
            readers.setdefault(topic, []).append(number)
    for topic, numbers in sorted(readers.items()):
        if len(numbers) > 1:
            yield topic, " and ".join(map(str, numbers))


def _report_assignment(chosen: Sequence[Source], assignment: Assignment) -> None:
    """Log what the numbers of Spark's sources leave open."""
    for topic, numbers in _taken_twice(assignment):
        log.info(
            f"note: {topic} goes to Spark sources {numbers}: right where they are joined; "
            "a union of them has its records twice"
        )
    if unseeded := sorted(set(range(max(assignment))) - assignment.keys()):
        numbers = ", ".join(map(str, unseeded[:_SHOWN])) + (" …" if unseeded[_SHOWN:] else "")
        log.warning(
            f"of the query's streams before {max(assignment)}, these start without a "
            f"seed: {numbers}; right where none of them is Kafka's, which would start at its own "
            "startingOffsets, by default the log end; once the query has started, migrate verify "
            "shows it"
        )
    for source in _left_out(chosen, assignment):
        topics = ", ".join(sorted(source.topics))
        log.info(f"note: operator {source.operator_id} ({topics}) goes to no Spark source")
