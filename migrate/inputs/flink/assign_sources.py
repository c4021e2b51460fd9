"""The assignment of a checkpoint's sources to the Kafka sources of a Spark query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from migrate.inputs.flink.choose_source import TOPIC_PREFIX, Choice, choose
from migrate.inputs.flink.source import Source, topics_of
from migrate.inputs.plan_input import PlanInput
from migrate.model.errors import UsageError
from migrate.model.option_names import option


class Assignment(NamedTuple):
    """The assignment of Flink sources to the Kafka sources of a Spark query.

    Attributes:
        by_number: the Flink sources by the number of the Spark source. They contain only the
            positions in the topics that this Spark source reads.
        assigned: the Flink sources in ``by_number``, with all their positions.
        left_out: the chosen Flink sources that were not assigned (not in ``by_number``).
    """

    by_number: Mapping[int, Sequence[Source]]
    assigned: Sequence[Source]
    left_out: Sequence[Source]

    @property
    def topics(self) -> dict[int, set[str]]:
        """The topics of each Spark source."""
        return {number: topics_of(sources) for number, sources in self.by_number.items()}


def assign_sources(
    plan_input: PlanInput, chosen: Sequence[Source], names: Mapping[int, Sequence[str]]
) -> Assignment:
    """Assign the chosen Flink sources to Spark sources.

    Args:
        plan_input: the input of ``chosen``.
        chosen: the chosen sources of the input.
        names: for each Spark source's number, the names of its Flink sources, as in ``--source``.

    Raises:
        UsageError: a name does not match any source, or a Spark source gets no topic.
    """
    by_number = {
        number: _flink_sources(number, names[number], plan_input, chosen)
        for number in sorted(names)
    }
    ids = {source.operator_id for sources in by_number.values() for source in sources}
    return Assignment(
        by_number,
        [source for source in chosen if source.operator_id in ids],
        [source for source in chosen if source.operator_id not in ids],
    )


def _flink_sources(
    number: int, names: Sequence[str], plan_input: PlanInput, chosen: Sequence[Source]
) -> list[Source]:
    """Return the Flink sources of one Spark source.

    If ``names`` selects a Flink source only by ``topic:NAME``, the source keeps only its positions
    in these topics.
    """
    by_id = {source.operator_id: source for source in chosen}
    topics: dict[str, set[str]] = {}
    for name in names:
        topic = {name.removeprefix(TOPIC_PREFIX)} if name.startswith(TOPIC_PREFIX) else None
        for source in choose(plan_input, Choice(source=name)):
            if own := by_id.get(source.operator_id):
                topics.setdefault(own.operator_id, set()).update(own.topics & (topic or own.topics))
    if not any(topics.values()):
        raise UsageError(
            f"{option('spark_source')} {number}: {option('source')} or {option('cluster')} "
            "excludes the source's topics"
        )
    return [
        replace(
            by_id[operator_id],
            position_fields=tuple(p for p in by_id[operator_id].positions if p.topic in taken),
        )
        for operator_id, taken in topics.items()
    ]
