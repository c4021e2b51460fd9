"""What moves, and what is allowed: options of the commands that plan."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from migrate.cli.kafka_options import KafkaOptions
from migrate.cli.options import Cluster
from migrate.errors import UsageError
from migrate.policies import Gone, MergeSources, NewPartitions, OnBeyondEnd, OnExpired

if TYPE_CHECKING:
    from migrate.api.arguments import MoveArguments

_policy = partial(
    typer.Option, rich_help_panel="What would lose or repeat records is refused unless allowed here"
)


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """What of a checkpoint moves, and under which names."""

    cluster: Cluster = None
    source_group: Annotated[
        str | None,
        typer.Option(
            metavar="G",
            help="Flink's own consumer group: resolves partitions still at 'committed', and shows "
            "whether the job ran on.",
            show_default=False,
        ),
    ] = None
    topic_map: Annotated[
        list[str] | None,
        typer.Option(
            "--topic-map",
            metavar="OLD=NEW",
            help="The target reads topic OLD of the checkpoint as NEW.",
            show_default=False,
        ),
    ] = None
    partitions: Annotated[
        list[str] | None,
        typer.Option(
            "--partitions", metavar="TOPIC:0-3,5", help="Move these alone.", show_default=False
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """What is allowed: the defaults refuse what would lose or repeat records."""

    on_expired: Annotated[OnExpired, _policy(help="A position below the log start.")] = (
        OnExpired.FAIL
    )
    on_beyond_end: Annotated[OnBeyondEnd, _policy(help="A position beyond the log end.")] = (
        OnBeyondEnd.FAIL
    )
    new_partitions: Annotated[
        NewPartitions,
        _policy(
            help="A partition the checkpoint does not know; as-flink: the log start where Flink "
            "would start it there, else refused."
        ),
    ] = NewPartitions.AS_FLINK
    gone: Annotated[Gone, _policy(help="A topic or partition the broker lacks.")] = Gone.FAIL
    unresolved: Annotated[
        str,
        _policy(
            metavar="fail|earliest|latest|committed|timestamp:T",
            help="A position the state does not tell; committed: --source-group's; T: ISO 8601, or "
            "milliseconds of the epoch.",
        ),
    ] = "fail"
    merge_sources: Annotated[
        MergeSources, _policy(help="Sources that read one topic from different positions.")
    ] = MergeSources.FAIL
    allow_in_flight: Annotated[
        bool,
        _policy("--allow-in-flight", help="Lose the records in flight in an unaligned checkpoint."),
    ] = False
    allow_ran_on: Annotated[
        bool,
        _policy(
            "--allow-ran-on",
            help="Move although the job ran on; what Flink emitted since is repeated.",
        ),
    ] = False


def move_arguments(
    source: str | None,
    selection: SelectionOptions,
    policies: PolicyOptions,
    allow_external_files: bool,
    kafka: KafkaOptions,
) -> MoveArguments:
    """What the calls take, of the options for a move.

    Raises:
        UsageError: one of them is not of its form.
    """
    return {
        "source": source,
        "cluster": selection.cluster,
        "source_group": selection.source_group,
        "topic_map": topic_map(selection.topic_map),
        "partitions": partitions(selection.partitions),
        "allow_external_files": allow_external_files,
        "on_expired": policies.on_expired,
        "on_beyond_end": policies.on_beyond_end,
        "new_partitions": policies.new_partitions,
        "gone": policies.gone,
        "unresolved": policies.unresolved,
        "merge_sources": policies.merge_sources,
        "allow_in_flight": policies.allow_in_flight,
        "allow_ran_on": policies.allow_ran_on,
        **kafka.arguments(),
    }


def topic_map(pairs: Iterable[str] | None) -> dict[str, str]:
    """``OLD=NEW`` arguments.

    Raises:
        UsageError: one is not of that form, or there are two of one topic.
    """
    topics: dict[str, str] = {}
    for pair in pairs or ():
        old, separator, new = pair.partition("=")
        if not (separator and old and new) or old in topics:
            raise UsageError(f"--topic-map {pair!r}: not OLD=NEW, two topics, each OLD once")
        topics[old] = new
    return topics


_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
# Kafka's own limit lies far below; it keeps a slip of the finger from filling the memory.
_MOST_PARTITIONS = 1_000_000


def partitions(given: Iterable[str] | None) -> dict[str, set[int]] | None:
    """``TOPIC:0-3,5`` arguments.

    Raises:
        UsageError: one is not of that form.
    """
    if given is None:
        return None
    wanted: dict[str, set[int]] = {}
    for text in given:
        topic, _, ranges = text.rpartition(":")
        matches = [_RANGE.fullmatch(part) for part in ranges.split(",")]
        numbers = wanted.setdefault(topic, set())
        for match in matches:
            if match is None or not topic:
                raise UsageError(f"--partitions {text!r}: not TOPIC:0-3,5")
            first, last = int(match[1]), int(match[2] or match[1])
            if not first <= last < first + _MOST_PARTITIONS:
                raise UsageError(f"--partitions {text!r}: not a range of partitions")
            numbers.update(range(first, last + 1))
    return wanted
