"""What the user allows: by default nothing that would lose or repeat records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from migrate.model.errors import UsageError
from migrate.model.option_declaration import accept, option
from migrate.model.topic_pattern import TopicPattern, topic_pattern


class OnExpired(str, Enum):
    """A position below the log start: its records are gone whatever is done."""

    FAIL = "fail"
    EARLIEST = "earliest"


class OnBeyondEnd(str, Enum):
    """A position beyond the log end."""

    FAIL = "fail"
    LATEST = "latest"


class NewPartitions(str, Enum):
    """A partition the checkpoint does not know."""

    AS_FLINK = "as-flink"  # from the log start where Flink would start it there, else refused
    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"


class Gone(str, Enum):
    """A topic or partition that the broker does not have."""

    FAIL = "fail"
    SKIP = "skip"


class Unresolved(str, Enum):
    """A position that the state does not tell."""

    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"  # what Flink's own group (--source-group) has committed
    TIMESTAMP = "timestamp"  # the first record at or after a time


class MergeSources(str, Enum):
    """Sources that read one topic from different positions."""

    FAIL = "fail"
    MIN = "min"


def topic_map_of(pairs: Iterable[str]) -> dict[str, str]:
    """``OLD=NEW`` texts.

    Raises:
        UsageError: one is not of that form, or there are two of one topic.
    """
    topics: dict[str, str] = {}
    for pair in pairs:
        old, separator, new = pair.partition("=")
        if not (separator and old and new) or old in topics:
            raise UsageError(f"--topic-map {pair!r}: not OLD=NEW, two topics, each OLD once")
        topics[old] = new
    return topics


# Another name would be several in Spark's `subscribe`, or several lines of its options.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def _topic_map(topics: Mapping[str, str] | None) -> dict[str, str]:
    for old, new in (topics or {}).items():
        if not (old and _TOPIC.fullmatch(new)):
            raise UsageError(f"--topic-map {old}={new}: not two topics")
    if len(set((topics or {}).values())) != len(topics or {}):
        raise UsageError("--topic-map: two topics under one name")
    return dict(topics or {})


_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
# Kafka's own limit lies far below; it keeps a slip of the finger from filling the memory.
_MOST_PARTITIONS = 1_000_000


def partitions_of(given: Iterable[str]) -> dict[str, set[int]]:
    """``TOPIC:0-3,5`` texts.

    Raises:
        UsageError: one is not of that form.
    """
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


def _partitions(
    wanted: Mapping[str, Iterable[int]] | None,
) -> dict[str, frozenset[int]] | None:
    if wanted is None:
        return None
    return {topic: frozenset(numbers) for topic, numbers in wanted.items()}


_ALLOWED = "What to do instead of refusing"
_MOVES = "What moves"


@dataclass(frozen=True, slots=True)
class Policies:
    """One choice for each way a move can go wrong.

    ``unresolved_since`` is the time of ``Unresolved.TIMESTAMP``, in milliseconds of the epoch.
    ``topic_map`` names topics as the target knows them, by their name in what is moved (a
    checkpoint or another side). ``partitions`` restricts the move to these, by the topic's name in
    what is moved; None moves all. ``topic_pattern`` is that by which the job finds its topics:
    those that match it and that the checkpoint does not know are new partitions. ``one_cluster``
    says that all sources of a topic read it on the same Kafka cluster.
    """

    topic_map: Mapping[str, str] = option(
        default_factory=dict,
        metavar="OLD=NEW",
        panel=_MOVES,
        help="The target reads topic OLD of what is moved as NEW. Repeatable.",
        repeatable=True,
        read=topic_map_of,
        check=_topic_map,
    )
    partitions: Mapping[str, frozenset[int]] | None = option(
        None,
        metavar="TOPIC:0-3,5",
        panel=_MOVES,
        help="Move these partitions alone. Repeatable.",
        repeatable=True,
        read=partitions_of,
        check=_partitions,
    )
    topic_pattern: TopicPattern | None = option(
        None,
        metavar="REGEX",
        panel=_MOVES,
        help="The job's topic pattern (Java's syntax): topics that the job had not found yet move "
        "too, as new partitions. No checkpoint holds it.",
        check=lambda text: topic_pattern(text) if text is not None else None,
    )
    on_expired: OnExpired = option(
        OnExpired.FAIL, panel=_ALLOWED, metavar="HOW", help="A position below the log start."
    )
    on_beyond_end: OnBeyondEnd = option(
        OnBeyondEnd.FAIL, panel=_ALLOWED, metavar="HOW", help="A position beyond the log end."
    )
    new_partitions: NewPartitions = option(
        NewPartitions.AS_FLINK,
        panel=_ALLOWED,
        metavar="HOW",
        help="A partition the checkpoint does not know. as-flink: the log start if Flink would "
        "start it there, else refused.",
    )
    gone: Gone = option(Gone.FAIL, panel=_ALLOWED, help="A topic or partition the broker lacks.")
    unresolved: Unresolved = option(
        Unresolved.FAIL,
        panel=_ALLOWED,
        metavar="HOW",
        help="A position the state does not tell: fail, earliest, latest, committed (of "
        "--source-group), timestamp:T (ISO 8601, or epoch milliseconds).",
        check=lambda text: text,  # two fields are made of it
    )
    unresolved_since: int | None = None
    merge_sources: MergeSources = option(
        MergeSources.FAIL,
        panel=_ALLOWED,
        metavar="HOW",
        help="Sources that read one topic from different positions.",
    )
    one_cluster: bool = option(
        False,
        panel=_ALLOWED,
        help="Sources of one topic read the same Kafka cluster.",
    )
    allow_in_flight: bool = option(
        False,
        panel=_ALLOWED,
        help="Lose records in flight, or in a sink's transactions.",
    )
    allow_ran_on: bool = option(
        False,
        panel=_ALLOWED,
        help="Move although the job ran on: what Flink emitted since is repeated.",
    )


def policies_of(arguments: Mapping[str, Any]) -> Policies:
    """The policies that a call's arguments name.

    Raises:
        UsageError: one is not of its form.
    """
    values = accept(Policies, arguments)
    if "unresolved" in values:
        values["unresolved"], values["unresolved_since"] = _unresolved(values["unresolved"])
    policies = Policies(**values)
    if policies.topic_pattern is not None and policies.topic_map:
        raise UsageError(
            "--topic-pattern is of the job's own names: not with --topic-map, whose are others"
        )
    return policies


def _unresolved(text: str) -> tuple[Unresolved, int | None]:
    kind, separator, time = text.partition(":")
    if separator and kind == Unresolved.TIMESTAMP.value:
        return Unresolved.TIMESTAMP, milliseconds_of(time, "--unresolved timestamp:")
    try:
        unresolved = Unresolved(text)
    except ValueError:
        unresolved = Unresolved.TIMESTAMP
    if unresolved is Unresolved.TIMESTAMP:
        raise UsageError(
            f"--unresolved {text!r}: one of fail, earliest, latest, committed, timestamp:T"
        )
    return unresolved, None


def milliseconds_of(text: str, named: str = "") -> int:
    """Milliseconds of the epoch, given as such or as ISO 8601 (UTC where it names no zone).

    Args:
        named: what it was given to, for errors.

    Raises:
        UsageError: it is no time, or none that a record can have.
    """
    try:
        if text.isdecimal():
            since = int(text)
        else:
            time = datetime.fromisoformat(text.replace("Z", "+00:00"))
            if time.tzinfo is None:
                time = time.replace(tzinfo=timezone.utc)
            since = int(time.timestamp() * 1000)
    except ValueError as error:  # of int(), too: it takes no more than 4300 digits
        raise UsageError(f"{named}{text}: not a time of ISO 8601") from error
    # Kafka takes negative ones for markers: -1 for its log end, say (ListOffsetsRequest @ 4.1.1).
    if not 0 <= since < 2**63:
        raise UsageError(f"{named}{text}: no record can have this time")
    return since
