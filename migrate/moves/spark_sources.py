"""``--spark-source``: assign Flink sources to the Kafka sources of a Spark query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from migrate.inputs.flink.choose_source import TOPIC_PREFIX, choose, choose_sources
from migrate.inputs.flink.source import Source, topics_of
from migrate.inputs.plan_input import PlanInput
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.model.policies import Policies
from migrate.moves.load_inputs import read_input
from migrate.moves.options import Request
from migrate.moves.pipeline import Move, plan_parts
from migrate.planning import Plan
from migrate.planning.shared_topics import shared_topics
from migrate.targets.source_options import SparkSource

_SHOWN = 5
# The highest number of a Spark source: no query has more, so a higher number is a mistake.
_LAST = 9999


@dataclass(frozen=True, slots=True)
class _Streams:
    """Flink's sources, divided among the Kafka sources of a Spark query.

    Attributes:
        positions: the checkpoint or other side that was read.
        chosen: the sources of ``positions`` that the options choose.
        parts: by the number of the Spark source, the Flink sources that it continues, each with
            only the positions that this Spark source takes over.
    """

    positions: PlanInput
    chosen: Sequence[Source]
    parts: Mapping[int, Sequence[Source]]

    @property
    def named(self) -> list[Source]:
        """The Flink sources that the user assigned, with all their positions."""
        ids = {source.operator_id for sources in self.parts.values() for source in sources}
        return [source for source in self.chosen if source.operator_id in ids]

    @property
    def left_out(self) -> list[Source]:
        """The chosen Flink sources that the user assigned to no Spark source."""
        ids = {source.operator_id for source in self.named}
        return [source for source in self.chosen if source.operator_id not in ids]


def plan_streams(
    request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[list[SparkSource], tuple[str, ...]]:
    """Make a separate plan for each Spark source.

    Args:
        request: what the user asked for.
        names: by the number of the Spark source, the names of the Flink sources that it continues,
            in the form that ``choose_sources`` takes.

    Returns:
        The next offsets of each Spark source, and all warnings.

    Raises:
        Refused: the move would lose or repeat records and no option allows it; or a topic of an
            assigned Flink source goes to no Spark source.
        NoSuchSource: no source has one of the names.
        UsageError: options that do not go together.
    """
    streams = _read(request, names)
    move = _plan(request, streams, streams.parts.values())
    labels = [f"Spark source {number}" for number in streams.parts]
    warnings = move.report(labels)
    _report_assignment(streams)
    refusals = [
        *_clusters_not_named(streams.named, move.snapshot, request.policies),
        *_forgotten(streams, request.policies),
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
        for number, plan in zip(streams.parts, move.plans, strict=True)
    ]
    return sources, warnings


def plan_as_one(
    request: Request, names: Mapping[int, Sequence[str]]
) -> tuple[Plan, dict[int, frozenset[str]]]:
    """Make one plan for all Spark sources: each topic has one start position per partition.

    Args:
        request: what the user asked for.
        names: as for ``plan_streams``.

    Returns:
        The plan, and the topics that each Spark source reads, by their names at the target.

    Raises:
        as ``plan_streams``; and Refused if a Flink source goes to no Spark source, because nothing
        reads its topics after the job's stop. If sources read one topic from different positions,
        the plan itself contains the refusal.
    """
    streams = _read(request, names)
    move = _plan(request, streams, [streams.named])
    move.report()
    _report_assignment(streams)
    (plan,) = move.plans
    refusals = [*_unnamed(streams, request.policies), *_forgotten(streams, request.policies)]
    if refusals:
        raise Refused([*refusals, *map(str, plan.refusals)])
    if len(streams.parts) == 1:
        return plan, {number: frozenset(plan.topics) for number in streams.parts}
    renamed = request.policies.topic_map
    return plan, {
        number: frozenset(renamed.get(topic, topic) for topic in topics_of(sources))
        for number, sources in streams.parts.items()
    }


def _plan(request: Request, streams: _Streams, parts: Iterable[Sequence[Source]]) -> Move:
    return plan_parts(
        request, streams.positions, streams.chosen, parts, asked_about=streams.named, named=True
    )


def _read(request: Request, names: Mapping[int, Sequence[str]]) -> _Streams:
    """Read the positions, and divide the sources among the Spark sources."""
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
    parts = {number: _part(number, names[number], positions, chosen) for number in sorted(names)}
    return _Streams(positions, chosen, parts)


def _part(
    number: int, names: Sequence[str], positions: PlanInput, chosen: Sequence[Source]
) -> list[Source]:
    """Return the Flink sources of a Spark source, with the positions of the named topics only."""
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


def _unnamed(streams: _Streams, policies: Policies) -> Iterator[str]:
    """Refuse Flink sources that should move, but that go to no Spark source."""
    for source in streams.left_out:
        if policies.partitions is None or source.topics & set(policies.partitions):
            yield (
                f"operator {source.operator_id} ({', '.join(sorted(source.topics))}) goes to no "
                "Spark source, so that its records would be read by none; name it too "
                "(spark-source), or choose what moves (move.source, move.partitions)"
            )


def _clusters_not_named(
    sources: Sequence[Source], snapshot: ClusterSnapshot | None, policies: Policies
) -> Iterator[str]:
    """Refuse topics that several sources read, perhaps on two clusters, if a broker was asked.

    A broker knows one cluster only. If no broker was asked, each Spark source gets its own
    positions, and its cluster does not matter.
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


def _forgotten(streams: _Streams, policies: Policies) -> Iterator[str]:
    """Refuse topics of an assigned Flink source that go to no Spark source."""
    for source in streams.named:
        taken = {
            topic
            for sources in streams.parts.values()
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


def _report_assignment(streams: _Streams) -> None:
    """Log topics with several readers, Spark sources without a seed, and sources left out."""
    readers: dict[str, list[int]] = {}
    for number, sources in streams.parts.items():
        for topic in topics_of(sources):
            readers.setdefault(topic, []).append(number)
    for topic, topic_readers in sorted(readers.items()):
        if len(topic_readers) > 1:
            log.info(
                f"note: {topic} goes to Spark sources {' and '.join(map(str, topic_readers))}: "
                "right where they are joined; a union of them has its records twice"
            )
    last = max(streams.parts)
    if unseeded := sorted(set(range(last)) - streams.parts.keys()):
        numbers = ", ".join(map(str, unseeded[:_SHOWN])) + (" …" if unseeded[_SHOWN:] else "")
        log.warning(
            f"of the query's streams before {last}, these start without a "
            f"seed: {numbers}; right where none of them is Kafka's, which would start at its own "
            "startingOffsets, by default the log end; once the query has started, migrate verify "
            "shows it"
        )
    for source in streams.left_out:
        topics = ", ".join(sorted(source.topics))
        log.info(f"note: operator {source.operator_id} ({topics}) goes to no Spark source")
