"""Spark's offsets as JSON: ``startingOffsets``, and what its logs hold of a Kafka source.

``{"topic":{"partition":nextOffset}}``, where -2 is earliest and -1 latest. What could be read two
ways is refused, not guessed: a key given twice, a number that is none.

Source: org.apache.spark.sql.kafka010.{JsonUtils, KafkaOffsetRangeLimit} @ Spark 4.0.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from decoder.storage import read_file
from migrate.positions import Marker, PositionSet, Start, TopicPartition, UnreadableInput

# KafkaOffsetRangeLimit.{EARLIEST, LATEST}
_SPARK_MARKERS = {-2: Marker.EARLIEST, -1: Marker.LATEST}

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
LARGEST_PARTITION = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1


class NotOffsets(ValueError):
    """Text that does not hold offsets in the form it should."""


def read_starting_offsets(label: str, path: Path) -> PositionSet:
    """A file with Spark's ``startingOffsets``.

    Raises:
        UnreadableInput: there is no such file, or it holds something else.
    """
    try:
        offsets = topic_offsets(parse_json(text_of(path)))
        starts = {place: _start_of(number) for place, number in offsets.items()}
    except NotOffsets as error:
        raise UnreadableInput(
            f'{path}: {error}; expected {{"topic":{{"partition":offset}}}}'
        ) from error
    return PositionSet(label, some(starts, path))


# -- the offsets JSON, which Spark's logs hold too -----------------------------------------------


def parse_json(text: str) -> Any:
    """JSON without what Python would let pass: keys given twice, NaN.

    Raises:
        NotOffsets: it is not JSON, or one of those.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except NotOffsets:
        raise
    except ValueError as error:
        raise NotOffsets(f"not JSON ({error})") from error
    except RecursionError as error:
        raise NotOffsets("nested too deeply") from error


def topic_offsets(value: Any) -> dict[TopicPartition, int]:
    """``{"topic":{"partition":number}}`` by topic-partition; the numbers may be markers.

    Raises:
        NotOffsets: it is something else.
    """
    if not isinstance(value, dict):
        raise NotOffsets("not an object of topics")
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict):
            raise NotOffsets(f"topic {_named(topic)}: not an object of partitions")
        for partition, number in partitions.items():
            place = _named(topic), whole_number(partition, LARGEST_PARTITION, "a partition number")
            if type(number) is not int or number > LARGEST_OFFSET:
                raise NotOffsets(f"{topic!r} partition {partition}: {number!r} is not an offset")
            offsets[place] = number
    return offsets


def _named(topic: str) -> str:
    """JSON can spell half a surrogate pair, which is no text and no topic."""
    try:
        topic.encode()
    except UnicodeEncodeError as error:
        raise NotOffsets(f"topic {topic!r} is not text") from error
    return topic


def _start_of(number: int) -> Start:
    if number >= 0:
        return number
    if number in _SPARK_MARKERS:
        return _SPARK_MARKERS[number]
    raise NotOffsets(f"{number} is neither an offset nor -1 (latest) nor -2 (earliest)")


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise NotOffsets(f"{key!r} is there twice")
        found[key] = value
    return found


def _no_constant(constant: str) -> NoReturn:
    raise NotOffsets(f"{constant} is not an offset")


def whole_number(text: str, largest: int, what: str) -> int:
    """int() would take '+1', '1_0' and the digits of every script."""
    if not _DECIMAL.fullmatch(text) or int(text) > largest:
        raise NotOffsets(f"{text!r} is not {what}")
    return int(text)


def text_of(path: Path) -> str:
    try:
        # Line ends within quoted fields stay as they are; -sig drops what Windows puts in front.
        return read_file(path).decode("utf-8-sig")
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"{path}: not UTF-8 text ({error.reason})") from error


def some(starts: dict[TopicPartition, Start], path: Path) -> dict[TopicPartition, Start]:
    if not starts:
        raise UnreadableInput(f"{path}: it holds no offsets")
    return starts


NextOffsets = Mapping[TopicPartition, int]


def starting_offsets(next_offsets: NextOffsets) -> str:
    """The option's JSON: compact, topics sorted by name and partitions by number."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), next_offset in sorted(next_offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = next_offset
    return json.dumps(topics, separators=(",", ":"))
