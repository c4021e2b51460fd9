"""The user's choices about a move; by default, lost or duplicated records are not allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Any, TypeVar

from decoder.kafka.split import is_legal_topic
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.model.option_names import option
from migrate.model.topic_pattern import TopicPattern, topic_pattern
from migrate.model.wording import iso_time

_Choice = TypeVar("_Choice", bound=Enum)


class OnExpired(str, Enum):
    """The policy for a position below the log start offset, where Kafka has deleted the records."""

    FAIL = "fail"
    EARLIEST = "earliest"


class OnBeyondEnd(str, Enum):
    """The policy for a position above the log end offset."""

    FAIL = "fail"
    LATEST = "latest"


class NewPartitions(str, Enum):
    """The policy for a partition that is not in the checkpoint."""

    AS_FLINK = "as-flink"  # start at the log start if Flink would do so, else refuse
    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"


class Gone(str, Enum):
    """The policy for a topic or partition that is missing on the broker."""

    FAIL = "fail"
    SKIP = "skip"


class Unresolved(str, Enum):
    """The policy for a partition in the checkpoint whose next offset is unknown."""

    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"  # the committed offset of the Flink job's group (--source-group)


class MergeSources(str, Enum):
    """The policy for sources that read the same topic from different positions."""

    FAIL = "fail"
    MIN = "min"


class OnAmbiguous(str, Enum):
    """The policy for a position whose records match several offsets in the target's cluster."""

    FAIL = "fail"
    FIRST = "first"  # the lowest offset; no record is lost, but some records may be duplicated


class Compare(str, Enum):
    """The extent of the comparison between a topic and its copy in another cluster."""

    SAMPLES = "samples"  # up to 100,000 records on each side of the position; samples of the rest
    ALL = "all"


def parse_topic_map(pairs: Iterable[str]) -> dict[str, str]:
    """Parse ``OLD=NEW`` strings.

    Raises:
        UsageError: a string has a different format, or an OLD occurs twice.
    """
    topics: dict[str, str] = {}
    for pair in pairs:
        old, separator, new = pair.partition("=")
        if pair != "".join(pair.split()):
            raise UsageError(f"{option('topic_map')} {pair!r}: omit the spaces")
        if not (separator and old and new) or old in topics:
            raise UsageError(
                f"{option('topic_map')} {pair!r} does not have the form OLD=NEW, or repeats an "
                "earlier OLD"
            )
        topics[old] = new
    return topics


def _check_topic_map(topics: Mapping[str, str]) -> None:
    for old, new in topics.items():
        if not (old and is_legal_topic(new)):
            raise UsageError(
                f"{option('topic_map', {old: new})}: {new!r} is not a valid topic name; pass the "
                "option once for each topic"
            )
    if len(set(topics.values())) != len(topics):
        raise UsageError(
            f"{option('topic_map')}: two topics have the same new name; pass a different new name "
            "for each topic"
        )


_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
# The largest range of partitions, so that a mistyped range does not exhaust the memory.
_MOST_PARTITIONS = 1_000_000


def parse_partitions(texts: Iterable[str]) -> dict[str, set[int]]:
    """Parse ``TOPIC:0-3,5`` strings.

    Raises:
        UsageError: a string has a different format.
    """
    partitions: dict[str, set[int]] = {}
    for text in texts:
        if text != "".join(text.split()):
            raise UsageError(f"{option('partitions')} {text!r}: omit the spaces")
        topic, _, ranges = text.rpartition(":")
        if "," in topic:
            raise UsageError(
                f"{option('partitions')} {text!r}: {topic!r} is not a valid topic name; pass the "
                "option once for each topic"
            )
        matches = [_RANGE.fullmatch(part) for part in ranges.split(",")]
        numbers = partitions.setdefault(topic, set())
        for match in matches:
            if match is None or not topic:
                name, _, number = text.rpartition("-")
                meant = (
                    f" (did you mean {name}:{number}?)"
                    if number.isdecimal() and is_legal_topic(name)
                    else ""
                )
                raise UsageError(
                    f"{option('partitions')} {text!r} does not have the form TOPIC:0-3,5{meant}"
                )
            first, last = int(match[1]), int(match[2] or match[1])
            if not first <= last < first + _MOST_PARTITIONS:
                raise UsageError(
                    f"{option('partitions')} {text!r}: {match[0]} is not a range such as 0-3"
                )
            numbers.update(range(first, last + 1))
    return partitions


@dataclass(frozen=True, slots=True)
class Policies:
    """The effects of a move that the user permits.

    Attributes:
        topic_map: the topic names at the target, by their names in the input.
        partitions: the partitions to move, by the topic name in the input; None for all partitions.
        topic_pattern: the pattern by which the job finds its topics. If a matching topic is not in
            the checkpoint, all of its partitions are new.
        unresolved: a policy, or a time in epoch milliseconds to start at the first record at or
            after this time.
        one_cluster: True to assume that all sources that read a topic read it from the same Kafka
            cluster.
    """

    topic_map: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, frozenset[int]] | None = None
    topic_pattern: TopicPattern | None = None
    on_expired: OnExpired = OnExpired.FAIL
    on_beyond_end: OnBeyondEnd = OnBeyondEnd.FAIL
    new_partitions: NewPartitions = NewPartitions.AS_FLINK
    gone: Gone = Gone.FAIL
    unresolved: Unresolved | int = Unresolved.FAIL
    merge_sources: MergeSources = MergeSources.FAIL
    on_ambiguous: OnAmbiguous = OnAmbiguous.FAIL
    one_cluster: bool = False
    allow_in_flight: bool = False
    allow_ran_on: bool = False

    @property
    def unresolved_since(self) -> int | None:
        """The time in ``unresolved``, in epoch milliseconds, or None if it contains a policy."""
        return self.unresolved if isinstance(self.unresolved, int) else None

    @property
    def may_change_positions(self) -> bool:
        """True if any policy is set that can change the checkpoint's positions."""
        kept = replace(self, one_cluster=False, allow_in_flight=False, allow_ran_on=False)
        return kept != Policies()


def policies_of(arguments: Mapping[str, Any]) -> Policies:
    """Return the policies among the arguments of a command.

    Raises:
        UsageError: an argument has the wrong format.
    """
    values: dict[str, Any] = {
        policy.name: parse_choice(type(policy.default), policy.name, value)
        if isinstance(policy.default, Enum)
        else value
        for policy in fields(Policies)
        if (value := arguments.get(policy.name)) is not None and policy.name != "unresolved"
    }
    if "topic_map" in values:
        _check_topic_map(values["topic_map"])
        values["topic_map"] = dict(values["topic_map"])
    if "partitions" in values:
        if not values["partitions"]:
            raise UsageError(f"{option('partitions')} is empty; pass at least one partition")
        values["partitions"] = {
            topic: frozenset(numbers) for topic, numbers in values["partitions"].items()
        }
    if "topic_pattern" in values:
        values["topic_pattern"] = topic_pattern(values["topic_pattern"])
    if (unresolved := arguments.get("unresolved")) is not None:
        values["unresolved"] = _parse_unresolved(unresolved)
    return Policies(**values)


def parse_choice(choices: type[_Choice], name: str, value: str) -> _Choice:
    """Parse the value of the option ``name``, which has a few choices.

    Raises:
        UsageError: the value is not one of the choices.
    """
    try:
        return choices(value)
    except ValueError as error:
        known = ", ".join(choice.value for choice in choices)
        raise UsageError(f"{option(name)} {value!r} is not one of {known}") from error


def _parse_unresolved(text: str) -> Unresolved | int:
    kind, separator, time = text.partition(":")
    if separator and kind == "timestamp":
        return parse_time(time, f"{option('unresolved')} timestamp:")
    try:
        return Unresolved(text)
    except ValueError as error:
        known = ", ".join(choice.value for choice in Unresolved)
        meant = f" (did you mean timestamp:{text}?)" if text[:1].isdecimal() else ""
        raise UsageError(
            f"{option('unresolved')} {text!r} is not one of {known}, timestamp:T{meant}"
        ) from error


# 2011-01-01, before Kafka's first release, in epoch milliseconds.
_FIRST_KAFKA_MS = 1_293_840_000_000


def parse_time(text: str, before: str = "") -> int:
    """Parse a time into epoch milliseconds.

    Args:
        text: epoch milliseconds, or ISO 8601; a time without a time zone is interpreted as UTC.
        before: the option's name, or other text to show before the time in errors.

    Raises:
        UsageError: the string is not a time; no record can have this time; or the string is a
            number that stands for a time before Kafka existed, so it is probably in seconds.
    """
    try:
        if text.isdecimal():
            since = int(text)
            if since < _FIRST_KAFKA_MS:
                raise UsageError(
                    f"{before}{text} is {iso_time(since)} in milliseconds, which is before Kafka "
                    "existed, so the number may be in seconds; write the time as "
                    "2026-11-20T18:00:00Z"
                )
        else:
            time = datetime.fromisoformat(text.replace("Z", "+00:00"))
            if time.tzinfo is None:
                time = time.replace(tzinfo=timezone.utc)
                log.info(f"{before}{text} is interpreted as {time.isoformat()}")
            since = int(time.timestamp() * 1000)
    except ValueError as error:  # also from int(), for more than 4300 digits
        raise UsageError(
            f"{before}{text} is not a time; write the time as 2026-11-20T18:00:00Z"
        ) from error
    # In a request to Kafka, negative times are markers, such as -1 for the log end
    # (ListOffsetsRequest @ kafka-clients 4.1.1).
    if not 0 <= since < 2**63:
        raise UsageError(
            f"{before}{text}: no record can have this time; pass a time after 1970, such as "
            "2026-11-20T18:00:00Z"
        )
    return since
