"""``--spark-source``: assign Flink sources to the Kafka sources of a Spark query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from migrate.inputs.flink.assign_sources import Assignment, assign_sources
from migrate.inputs.flink.source import Source
from migrate.model.catalog import SPARK_SOURCES_TWO_CLUSTERS, TOPIC_NOT_ASSIGNED
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.policies import Policies
from migrate.model.warning import warn
from migrate.model.warning_catalog import UNSEEDED_STREAM
from migrate.moves.load_inputs import ChosenInput
from migrate.moves.options import Request
from migrate.moves.pipeline import Move, make_move
from migrate.planning import Plan
from migrate.planning.shared_topics import shared_topics
from migrate.targets.source_options import SourceStart

_MAX_NAMED = 5
# The highest number that ``--spark-source`` accepts.
_MAX_NUMBER = 9999


def plan_streams(
    chosen_input: ChosenInput, request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[list[SourceStart], Sequence[Plan], tuple[str, ...]]:
    """Make a separate plan for each Spark source.

    ``names`` maps each Spark source to the names of its Flink sources, in the ``--source`` format.

    Returns:
        The start offsets and the plan of each Spark source, and all warnings.

    Raises:
        Refused: the move would lose or duplicate records and no option allows it; or an assigned
            Flink source has a topic that is not assigned to any Spark source.
        UsageError: a name does not match any source, or options cannot be combined.
    """
    assignment = _assign(chosen_input, request, names)
    moving = chosen_input._replace(chosen=assignment.assigned)
    parts = assignment.by_number.values()
    move = make_move(request, moving, parts, ignore_other_sources=True)
    labels = [f"Spark source {number}" for number in assignment.by_number]
    warnings = move.report(labels)
    _report_assignment(assignment)
    refusals = [
        *_unnamed_cluster_refusals(assignment.assigned, move),
        *_unassigned_topic_refusals(assignment.assigned, assignment, request.policies),
        *(
            reason.about(label)
            for label, plan in zip(labels, move.plans, strict=True)
            for reason in plan.refusals
        ),
    ]
    if refusals:
        raise Refused(refusals)
    sources = [
        SourceStart(number, plan.next_offsets, plan.only_some_partitions)
        for number, plan in zip(assignment.by_number, move.plans, strict=True)
    ]
    return sources, move.plans, warnings


def plan_as_one(
    chosen_input: ChosenInput, request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[Plan, dict[int, frozenset[str]]]:
    """Make a single plan for all Spark sources, with one start for each partition.

    For the arguments, see ``plan_streams``. If Flink sources have different positions in one topic,
    and no option allows this, the plan contains a refusal.

    Returns:
        The plan, and the topics of each Spark source by their names in the target's cluster.

    Raises:
        Refused: a Flink source or one of its topics is not assigned to any Spark source.
        UsageError: as in ``plan_streams``.
    """
    assignment = _assign(chosen_input, request, names)
    moving = chosen_input._replace(chosen=assignment.assigned)
    move = make_move(request, moving, ignore_other_sources=True)
    move.report()
    _report_assignment(assignment)
    (plan,) = move.plans
    all_sources = [*assignment.left_out, *assignment.assigned]
    if refusals := list(_unassigned_topic_refusals(all_sources, assignment, request.policies)):
        raise Refused([*refusals, *plan.refusals])
    if len(names) == 1:
        return plan, {number: frozenset(plan.topics) for number in names}
    renamed = request.policies.topic_map
    return plan, {
        number: frozenset(renamed.get(topic, topic) for topic in topics)
        for number, topics in assignment.topics.items()
    }


def _assign(
    chosen_input: ChosenInput, request: Request, names: Mapping[int, Sequence[str]]
) -> Assignment:
    """Assign the Flink sources to the Spark sources."""
    for number, source_names in names.items():
        if not 0 <= number <= _MAX_NUMBER or not source_names or isinstance(source_names, str):
            raise UsageError(
                f"{option('spark_source')} {number}: {source_names!r}: expected a stream "
                "number and a list of Flink sources"
            )
    if request.policies.topic_pattern is not None and len(names) > 1:
        raise UsageError(
            f"{option('topic_pattern')} cannot be used with several streams, because the stream "
            "of a new topic cannot be determined; plan each stream separately with "
            f"{option('source')}"
        )
    return assign_sources(*chosen_input, names)


def _report_assignment(assignment: Assignment) -> None:
    """Report topics with several readers, streams without positions, and unassigned sources."""
    readers: dict[str, list[int]] = {}
    for number, topics in assignment.topics.items():
        for topic in topics:
            readers.setdefault(topic, []).append(number)
    for topic, topic_readers in sorted(readers.items()):
        if len(topic_readers) > 1:
            log.info(
                f"note: Spark sources {' and '.join(map(str, topic_readers))} read {topic}; a join "
                "of these sources is correct, but a union would duplicate the records"
            )
    last = max(assignment.by_number)
    if unseeded := sorted(set(range(last)) - assignment.by_number.keys()):
        warn(UNSEEDED_STREAM(count=len(unseeded), last=last, streams=unseeded))
    for source in assignment.left_out:
        names = ", ".join(sorted(source.topics))
        log.info(f"note: operator {source.operator_id} ({names}) is not assigned to a Spark source")


def _unnamed_cluster_refusals(sources: Sequence[Source], move: Move) -> Iterator[Message]:
    """Yield a refusal for each topic that several Flink sources may read from different clusters.

    The broker's answers would be wrong for a topic of another cluster. If no broker was queried,
    nothing is refused, because each Spark source gets its own positions.
    """
    if move.snapshot is None or move.request.policies.one_cluster:
        return
    for topic in shared_topics(sources):
        if topic.may_be_two_topics:
            yield SPARK_SOURCES_TWO_CLUSTERS(
                sources=len(topic.sources), topic=topic.name, readers=topic.readers_text
            )


def _unassigned_topic_refusals(
    sources: Sequence[Source], assignment: Assignment, policies: Policies
) -> Iterator[Message]:
    """Yield a refusal for each topic that should move but is not assigned to a Spark source."""
    taken = {
        (part.operator_id, topic)
        for part in chain.from_iterable(assignment.by_number.values())
        for topic in part.topics
    }
    for source in sources:
        for topic in sorted(source.topics):
            moves = policies.partitions is None or topic in policies.partitions
            if moves and (source.operator_id, topic) not in taken:
                yield TOPIC_NOT_ASSIGNED(topic=topic, operator=source.operator_id)
