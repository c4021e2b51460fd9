"""Spark's offsets as JSON: ``startingOffsets``, and what its logs hold of a Kafka source.

``{"topic":{"partition":nextOffset}}``, where -2 is earliest and -1 latest. What could be read two
ways is refused, not guessed: a key given twice, a number that is none.

Source: org.apache.spark.sql.kafka010.{JsonUtils, KafkaOffsetRangeLimit} @ Spark 4.0.0.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from decoder.storage import read_file
from migrate.model.errors import InputError
from migrate.model.positions import Marker, PositionSet, Start, TopicPartition

# KafkaOffsetRangeLimit.{EARLIEST, LATEST}
_SPARK_MARKERS = {-2: Marker.EARLIEST, -1: Marker.LATEST}

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
LARGEST_PARTITION = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1
# The most offsets that one file may hold: each takes up to 4 KB once it is compared and reported.
MOST_OFFSETS = 100_000
# A file of that many offsets has some 3 MB; parsed, JSON may take thirty times its bytes.
_LARGEST_FILE = 16 * 2**20
# How much of a wrong value a message shows.
_MOST_SHOWN = 60


class NotOffsets(ValueError):
    """Text that does not hold offsets in the form it should."""


def read_starting_offsets(label: str, path: Path) -> PositionSet:
    """Read a file with Spark's ``startingOffsets``.

    Raises:
        InputError: the file is missing, too large, or of another format.
    """
    try:
        offsets = topic_offsets(parse_json(_text_of(path)))
        check_count(len(offsets), path)
        starts = {place: _start_of(number) for place, number in offsets.items()}
    except NotOffsets as error:
        raise InputError(f'{path}: {error}; expected {{"topic":{{"partition":offset}}}}') from error
    return PositionSet(label, some(starts, path))


def _text_of(path: Path) -> str:
    try:
        return bytes_of(path).decode("utf-8-sig")  # without a byte order mark
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason})") from error


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
                value = reprlib.repr(number)
                raise NotOffsets(f"{quoted(topic)} partition {partition}: {value} is not an offset")
            offsets[place] = number
    return offsets


def _named(topic: str) -> str:
    """Return the topic; JSON can spell half a surrogate pair, which is no text and no topic."""
    try:
        topic.encode()
    except UnicodeEncodeError as error:
        raise NotOffsets(f"topic {quoted(topic)} is not text") from error
    return topic


def _start_of(number: int) -> Start:
    if number >= 0:
        return number
    if number in _SPARK_MARKERS:
        return _SPARK_MARKERS[number]
    raise NotOffsets(
        f"{reprlib.repr(number)} is neither an offset nor -1 (latest) nor -2 (earliest)"
    )


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise NotOffsets(f"{quoted(key)} is there twice")
        found[key] = value
    return found


def _no_constant(constant: str) -> NoReturn:
    raise NotOffsets(f"{constant} is not an offset")


def whole_number(text: str, largest: int, what: str) -> int:
    """int() would take '+1', '1_0' and the digits of every script."""
    if not _DECIMAL.fullmatch(text) or int(text) > largest:
        raise NotOffsets(f"{quoted(text)} is not {what}")
    return int(text)


def quoted(text: str) -> str:
    """Return a text as a message shows it: its beginning, in quotes."""
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}…"


def check_count(offsets: int, path: Path) -> None:
    """Refuse a file of more offsets than can be compared and moved in bounded memory."""
    if offsets > MOST_OFFSETS:
        raise InputError(f"{path}: more than {MOST_OFFSETS} offsets; split it by topic")


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file of offsets, which is JSON or CSV."""
    try:
        return read_file(path, _LARGEST_FILE)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def some(starts: dict[TopicPartition, Start], path: Path) -> dict[TopicPartition, Start]:
    if not starts:
        raise InputError(f"{path}: it holds no offsets")
    return starts


NextOffsets = Mapping[TopicPartition, int]


def starting_offsets(next_offsets: NextOffsets) -> str:
    """The option's JSON: compact, topics sorted by name and partitions by number."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), next_offset in sorted(next_offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = next_offset
    return json.dumps(topics, separators=(",", ":"))
