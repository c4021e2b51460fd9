"""Find the offsets in the target's cluster that correspond to positions in the job's cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.inputs.ask_broker import ask_broker, ask_logs, valid_topics
from migrate.model.catalog import (
    COPY_DUPLICATED_SINCE_PLAN,
    COPY_ELSEWHERE_SINCE_PLAN,
    COPY_LOST_SINCE_PLAN,
    PLANNED_RECORDS_DELETED,
)
from migrate.model.cluster_snapshot import ClusterSnapshot, Question
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.policies import Compare
from migrate.model.positions import (
    PositionSet,
    Start,
    TopicPartition,
    Unknown,
    log_of,
    resolve,
)
from migrate.model.wording import counted
from migrate.moves.find_copies import translate_positions
from migrate.moves.options import Kafka, Request
from migrate.planning import Plan
from migrate.planning.plan import MatchOutcome
from migrate.planning.translation import (
    NOT_COMPARABLE,
    own_copy_refusal,
    topic_refusals,
    translated_plan,
)

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig


def translate_plan(plan: Plan, request: Request) -> Plan:
    """Return a plan for the target's cluster; a plan with refusals is returned unchanged.

    Raises:
        BrokerError: a cluster did not answer, or denied the request.
        ConfigError: the Kafka properties cannot be used.
    """
    if plan.refusals:
        return plan
    names = request.policies.topic_map
    old, new = request.kafka.config(), request.to_kafka.config()
    topics = frozenset(names.get(topic, topic) for topic in plan.topics)
    question = Question(topics, target_group=request.target.group)
    target = ask_broker(new, question)
    if refusals := tuple(topic_refusals(plan, target, names)):
        return replace(plan, refusals=refusals)
    is_whole = request.compare is Compare.ALL
    if is_whole:
        log.info(f"{option('compare', Compare.ALL)}: {_cost(plan, target, names)}")
    translated = translate_positions(
        plan.next_offsets, old, new, names, wait=request.wait, is_whole=is_whole
    )
    target = ask_broker(new, question)  # query again, because the logs have grown
    return translated_plan(plan, translated, target, request.policies, is_whole=is_whole)


def _cost(plan: Plan, target: ClusterSnapshot, names: Mapping[str, str]) -> str:
    """Return a phrase with the maximum number of records that a full comparison reads."""
    old = sum((row.log_end or 0) - (row.log_start or 0) for row in plan.partitions)
    new = sum(
        log.end - log.start
        for topic in plan.topics
        for log in target.topics.get(names.get(topic, topic), {}).values()
    )
    return f"reading up to {old:,} records of the job's cluster and {new:,} of the target's"


def check_target_kafka(plan: Plan, target_kafka: Kafka) -> None:
    """Check that the user passed the target's cluster if, and only if, the plan needs it.

    Raises:
        UsageError: the plan's target reads from another cluster, and that cluster is missing; or
            the target reads from the job's cluster, and another cluster was passed.
    """
    if plan.is_translated and not target_kafka.is_given:
        raise UsageError(
            "the target of this plan reads a different cluster; add "
            f"{option('to_kafka_config', 'FILE')} or {option('to_bootstrap_servers', 'HOST:PORT')}"
        )
    if target_kafka.is_given and not plan.is_translated:
        raise UsageError(
            f"the target of this plan reads the job's cluster; omit {option('to_kafka_config')} "
            f"and {option('to_bootstrap_servers')}, or create a new plan with them"
        )


def translate_side(
    left: PositionSet,
    right: PositionSet,
    *,
    old: KafkaConfig,
    new: KafkaConfig,
    names: Mapping[str, str],
) -> PositionSet:
    """Translate the positions of a diff's left side to offsets in the cluster of the right side.

    A position without a match becomes ``Unknown.UNRESOLVED``. If there is no record between the
    translated offset and the right side's offset, a reader would start at the same record from
    either offset. In that case, the right side's offset is returned, so that the sides do not
    differ.

    Raises:
        Refused: both clusters are the same, so a topic would be compared with itself.
        BrokerError: a cluster did not answer, or denied the request.
    """
    here = ask_broker(old, Question(valid_topics(left.topics)))
    copies = valid_topics(names.get(topic, topic) for topic in left.topics)
    there = ask_broker(new, Question(copies))
    if refusal := own_copy_refusal(left.topics, names, here.cluster_id, there.cluster_id):
        raise Refused(refusal)
    logs, new_logs = here.topics, there.topics
    positions = {}
    for (topic, partition), start in left.starts.items():
        range_ = log_of(logs, topic, partition)
        offset = resolve(start, range_)
        same_numbers = len(new_logs.get(names.get(topic, topic), {})) == len(logs.get(topic, {}))
        if range_ is not None and offset is not None and range_.covers(offset) and same_numbers:
            positions[topic, partition] = offset
    translated = translate_positions(positions, old, new, names)
    starts: dict[TopicPartition, Start] = {}
    for topic, partition in left.starts:
        copy = names.get(topic, topic), partition
        match = translated.get((topic, partition))
        if match is None or match.next_offset is None or not match.outcome.is_match:
            starts[copy] = Unknown.UNRESOLVED
            continue
        other = right.at(*copy)
        same = isinstance(other, int) and match.agrees_with(other)
        starts[copy] = other if same else match.next_offset
    return PositionSet(left.label, starts, left.note)


@dataclass(frozen=True, slots=True)
class TranslationChanges:
    """A saved plan's positions that no longer match the other cluster.

    Attributes:
        other_places: positions that are now at a different offset.
        unmatched: positions that have no certain match.
        duplicates: positions without a certain match, in plans that accept this because the cluster
            contains some records twice.
        sampled: lines about positions that match, although not all records were compared.
    """

    other_places: Sequence[Message]
    unmatched: Sequence[Message]
    duplicates: Sequence[Message]
    sampled: Sequence[str]


def find_translation_changes(
    plan: Plan, old: KafkaConfig, new: KafkaConfig, *, is_whole: bool = False
) -> TranslationChanges:
    """Retranslate the positions of a saved plan, and compare them with the plan.

    ``old`` and ``new`` are the librdkafka properties for the job's cluster and the target's
    cluster. For ``is_whole``, see ``translate_positions``. If a comparison of all records proved
    any of the plan's positions, all records are compared again.
    """
    other_places, unmatched = list[Message](), list[Message]()
    duplicates, sampled = list[Message](), list[str]()
    is_whole |= any(
        planned.translation is not None and planned.translation.outcome is MatchOutcome.PROVED
        for planned in plan.partitions
    )
    positions = plan.in_job_cluster().next_offsets
    logs = ask_logs(old, {topic for topic, _ in positions})
    kept = {
        partition: position
        for partition, position in positions.items()
        if (log_range := log_of(logs, *partition)) is not None and log_range.covers(position)
    }
    translated = translate_positions(kept, old, new, plan.topic_map, is_whole=is_whole)
    compare_all = f"verify a plan that was created with {option('compare', Compare.ALL)}"
    remedy = NOT_COMPARABLE if is_whole else compare_all
    for planned in plan.partitions:
        own, next_offset = planned.translation, planned.next_offset
        if own is None or next_offset is None:
            continue
        match = translated.get((own.topic, planned.partition))
        if match is None:
            unmatched.append(PLANNED_RECORDS_DELETED(partition=planned.name))
        elif match.next_offset is None:
            reason = match.reason or match.outcome.value
            unmatched.append(COPY_LOST_SINCE_PLAN(partition=planned.name, reason=reason))
        elif not match.agrees_with(next_offset):
            other_places.append(
                COPY_ELSEWHERE_SINCE_PLAN(
                    partition=planned.name,
                    position=own.next_offset,
                    found=match.next_offset,
                    next_offset=next_offset,
                )
            )
        elif match.outcome.is_lossless:
            message = COPY_DUPLICATED_SINCE_PLAN(partition=planned.name, outcome=match.outcome)
            (duplicates if own.outcome.is_lossless else unmatched).append(message)
        elif match.is_sampled:
            sampled.append(
                f"{planned.name}: migrate did not compare up to {counted(match.unread, 'record')} "
                f"of the target's log; {remedy}"
            )
    return TranslationChanges(other_places, unmatched, duplicates, sampled)
