"""Topics that match the job's topic pattern, but are not in the checkpoint.

With ``--topic-pattern``, the partitions of these topics move as new partitions. Without this
option, ``migrate`` warns about new topics with similar names, because the job may have been about
to discover them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from migrate.inputs.flink.source import Source, SourceKind, topics_of
from migrate.inputs.plan_input import PlanInput
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import Policies
from migrate.model.topic_pattern import TopicPattern, suggested_pattern
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import MORE_NEW_TOPICS, NEW_TOPIC, PATTERN_UNMATCHED, YOUNG_TOPIC
from migrate.model.wording import iso_time

# A topic is new unless its first record is at least this many milliseconds older than the
# checkpoint. If either time is unknown, the topic is also new. A job discovers topics every five
# minutes, or at its configured interval (KafkaSourceOptions @ connectors 3.4.0-1.20, 5.0.0-2.2), so
# the checkpoint should have all older topics that match the job's pattern.
_YOUNG_MS = 24 * 60 * 60 * 1000
_MAX_NAMED = 5


def may_have_a_pattern(chosen: Iterable[Source]) -> bool:
    """Return whether any source might discover topics by a pattern.

    A DynamicKafkaSource cannot do this, because its pattern matches streams, not topics.
    """
    return any(source.kind is not SourceKind.DYNAMIC_KAFKA_SOURCE for source in chosen)


def pattern_to_ask(
    plan_input: PlanInput, chosen: Sequence[Source], policies: Policies
) -> TopicPattern | None:
    """Return the pattern for discovering topics that are not in the checkpoint, or None."""
    if policies.topic_pattern is not None:
        return policies.topic_pattern
    if policies.topic_map or policies.partitions is not None:
        return None  # the user has chosen the topics or partitions that move
    if plan_input.origin.kind != "checkpoint":
        return None  # a Spark query discovers new topics itself; other inputs have no pattern
    return suggested_pattern(
        (source.topics for source in chosen if may_have_a_pattern([source])),
        frozenset(topics_of(plan_input.sources)),
    )


def topic_pattern_warnings(
    plan_input: PlanInput,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    planned: Set[str],
    policies: Policies,
) -> Iterator[WarningText]:
    """Warn about topics that match the pattern but are missing from the checkpoint.

    Also warn if the user's pattern matches none of the topics that the chosen sources read.
    ``planned`` is the set of topics in the plan.
    """
    pattern = pattern_to_ask(plan_input, chosen, policies)
    if snapshot is None or pattern is None:
        return
    written_at = plan_input.origin.written_at
    time = "an unknown time" if written_at is None else iso_time(written_at)
    if pattern.suggested:
        young = [
            topic
            for topic in pattern.matching(snapshot.matched_topics)
            if written_at is None
            or (first := snapshot.matched_topics[topic]) is None
            or first > written_at - _YOUNG_MS
        ]
        if young:
            evidence = _first_record(snapshot, young[0])
            yield WarningText(
                YOUNG_TOPIC(
                    count=len(young),
                    time=time,
                    topic=young[0],
                    evidence=evidence,
                    pattern=pattern.text,
                )
            )
        return
    if not pattern.matching(topics_of(chosen)):
        yield WarningText(PATTERN_UNMATCHED(pattern=pattern.text))
    new = sorted(planned & snapshot.matched_topics.keys())
    for topic in new[:_MAX_NAMED]:
        evidence = _first_record(snapshot, topic)
        yield WarningText(NEW_TOPIC(topic=topic, time=time, evidence=evidence))
    if more := len(new[_MAX_NAMED:]):
        yield WarningText(MORE_NEW_TOPICS(count=more))


def _first_record(snapshot: ClusterSnapshot, topic: str) -> str:
    first = snapshot.matched_topics[topic]
    if first is not None:
        return f"its first record is from {iso_time(first)}"
    empty = all(log.start == log.end for log in snapshot.topics.get(topic, {}).values())
    return "it has no records" if empty else "its records have no timestamps"
