"""``--spark-source``: assign Flink sources to the Kafka sources of a Spark query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from migrate.inputs.flink.choose_source import TOPIC_PREFIX, choose, choose_sources
from migrate.inputs.flink.source import Source, topics_of
from migrate.inputs.plan_input import PlanInput
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.model.policies import Policies
from migrate.model.warning import WarningCode, warn
from migrate.moves.load_inputs import read_input
from migrate.moves.options import Request
from migrate.moves.pipeline import plan_parts
from migrate.planning import Plan
from migrate.planning.shared_topics import shared_topics
from migrate.targets.source_options import SparkSource

_SHOWN = 5
# The highest number of a Spark source that is accepted.
_MAX_NUMBER = 9999


class _Assignment(NamedTuple):
    """The assignment of Flink sources to the Kafka sources of a Spark query.

    Attributes:
        by_number: the Flink sources by the number of the Spark source. They have only the positions
            of topics that this Spark source reads.
        assigned: the Flink sources in ``by_number``, with all their positions.
        left_out: the chosen Flink sources that are not in ``by_number``.
    """

    by_number: Mapping[int, Sequence[Source]]
    assigned: Sequence[Source]
    left_out: Sequence[Source]


def plan_streams(
    request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[list[SparkSource], tuple[str, ...]]:
    """Make a separate plan for each Spark source.

    Args:
        request: what the user asked for.
        names: the names of Flink sources by the number of the Spark source, as ``choose_sources``
            takes them.

    Returns:
        The next offsets of each Spark source, and all warnings.

    Raises:
        Refused: the move would lose or repeat records and no option allows it; or no Spark source
            reads a topic of an assigned Flink source.
        NoSuchSource: no source has one of the names.
        UsageError: options that do not go together.
    """
    positions, assignment = _read_assignment(request, names)
    move = plan_parts(
        request,
        positions,
        assignment.assigned,
        assignment.by_number.values(),
        named=True,
    )
    labels = [f"Spark source {number}" for number in assignment.by_number]
    warnings = move.report(labels)
    _report_assignment(assignment)
    refusals = [
        *_refuse_unnamed_clusters(assignment.assigned, move.snapshot, request.policies),
        *_refuse_unassigned_topics(assignment, request.policies),
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
        for number, plan in zip(assignment.by_number, move.plans, strict=True)
    ]
    return sources, warnings


def plan_as_one(
    request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[Plan, dict[int, frozenset[str]]]:
    """Make one plan for all Spark sources: each topic has one start position per partition.

    If sources read one topic from different positions, the plan contains the refusal.

    Args:
        request: what the user asked for.
        names: as for ``plan_streams``.

    Returns:
        The plan, and the topics that each Spark source reads, by their names at the target.

    Raises:
        Refused: a Flink source, or one of its topics, goes to no Spark source; nothing would read
            these records after the job's stop.
        NoSuchSource, UsageError: as for ``plan_streams``.
    """
    positions, assignment = _read_assignment(request, names)
    move = plan_parts(request, positions, assignment.assigned, [assignment.assigned], named=True)
    move.report()
    _report_assignment(assignment)
    (plan,) = move.plans
    refusals = [
        *_refuse_unassigned_sources(assignment, request.policies),
        *_refuse_unassigned_topics(assignment, request.policies),
    ]
    if refusals:
        raise Refused([*refusals, *map(str, plan.refusals)])
    if len(names) == 1:
        return plan, {number: frozenset(plan.topics) for number in names}
    renamed = request.policies.topic_map
    return plan, {
        number: frozenset(renamed.get(topic, topic) for topic in topics_of(sources))
        for number, sources in assignment.by_number.items()
    }


def _read_assignment(
    request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[PlanInput, _Assignment]:
    """Read the positions, and assign the Flink sources to the Spark sources."""
    for number, source_names in names.items():
        if not 0 <= number <= _MAX_NUMBER or not source_names or isinstance(source_names, str):
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
    by_number = {
        number: _flink_sources(number, names[number], positions, chosen) for number in sorted(names)
    }
    ids = {source.operator_id for sources in by_number.values() for source in sources}
    return positions, _Assignment(
        by_number,
        [source for source in chosen if source.operator_id in ids],
        [source for source in chosen if source.operator_id not in ids],
    )


def _flink_sources(
    number: int, names: Sequence[str], positions: PlanInput, chosen: Sequence[Source]
) -> list[Source]:
    """Return the Flink sources of one Spark source, with only the positions of named topics."""
    by_id = {source.operator_id: source for source in chosen}
    topics: dict[str, set[str]] = {}
    for name in names:
        topic = {name.removeprefix(TOPIC_PREFIX)} if name.startswith(TOPIC_PREFIX) else None
        for source in choose_sources(positions, name):
            if own := by_id.get(source.operator_id):
                topics.setdefault(own.operator_id, set()).update(own.topics & (topic or own.topics))
    if not any(topics.values()):
        raise UsageError(f"--spark-source {number}={names[0]}: --source or --cluster leaves it out")
    return [
        replace(
            by_id[operator_id],
            positions=tuple(p for p in by_id[operator_id].positions if p.topic in taken),
        )
        for operator_id, taken in topics.items()
    ]


def _refuse_unassigned_sources(assignment: _Assignment, policies: Policies) -> Iterator[str]:
    """Refuse Flink sources that should move, but go to no Spark source."""
    for source in assignment.left_out:
        if policies.partitions is None or source.topics & set(policies.partitions):
            yield (
                f"operator {source.operator_id} ({', '.join(sorted(source.topics))}) goes to no "
                "Spark source, so that its records would be read by none; name it too "
                "(spark-source), or choose what moves (move.source, move.partitions)"
            )


def _refuse_unnamed_clusters(
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


def _refuse_unassigned_topics(assignment: _Assignment, policies: Policies) -> Iterator[str]:
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


def _report_assignment(assignment: _Assignment) -> None:
    """Log topics with several readers, Spark sources without a seed, and sources left out."""
    readers: dict[str, list[int]] = {}
    for number, sources in assignment.by_number.items():
        for topic in topics_of(sources):
            readers.setdefault(topic, []).append(number)
    for topic, topic_readers in sorted(readers.items()):
        if len(topic_readers) > 1:
            log.info(
                f"note: {topic} goes to Spark sources {' and '.join(map(str, topic_readers))}: "
                "right where they are joined; a union of them has its records twice"
            )
    last = max(assignment.by_number)
    if unseeded := sorted(set(range(last)) - assignment.by_number.keys()):
        numbers = ", ".join(map(str, unseeded[:_SHOWN])) + (" …" if unseeded[_SHOWN:] else "")
        warn(
            WarningCode.UNSEEDED_STREAM,
            f"streams of the query before {last} start without a seed: {numbers}; a Kafka stream "
            "among them starts at its own startingOffsets",
        )
    for source in assignment.left_out:
        topics = ", ".join(sorted(source.topics))
        log.info(f"note: operator {source.operator_id} ({topics}) goes to no Spark source")
