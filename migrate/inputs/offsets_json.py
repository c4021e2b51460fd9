"""Spark's JSON format for Kafka offsets, used in the ``startingOffsets`` option and query logs.

The format is ``{"topic":{"partition":nextOffset}}``. An offset of -2 means earliest, and -1 means
latest.

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
from migrate.model.catalog import (
    CANNOT_READ_FILE,
    CSV_PASSED_AS_JSON,
    FILE_MISSING,
    FILE_OF_MIGRATE,
    NO_OFFSETS_IN_FILE,
    NOT_OFFSETS,
    NOT_UTF_8,
    PATH_IS_DIRECTORY,
    PROGRESS_REPORT,
    TOO_MANY_OFFSETS,
)
from migrate.model.errors import InputError
from migrate.model.positions import Marker, PositionSet, Start, TopicPartition
from migrate.storage.recognize_file import directory_advice

# KafkaOffsetRangeLimit.{EARLIEST, LATEST}
_SPARK_MARKERS = {-2: Marker.EARLIEST, -1: Marker.LATEST}

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
LARGEST_PARTITION = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1
# The maximum number of offsets in a file; a comparison and its report take up to 4 KB of memory for
# each offset.
MOST_OFFSETS = 100_000
# The maximum size of a file in bytes. A file with 100,000 offsets has about 3 MB. Parsed JSON may
# take thirty times as much memory.
_LARGEST_FILE = 16 * 2**20
# The maximum number of characters of an invalid value that a message shows.
_MOST_SHOWN = 60
_FORMAT = '{"topic":{"partition":offset}}'
# A line of CSV from kafka-consumer-groups: topic, partition, offset.
_CSV = re.compile(r"[\w.-]+,\d+,-?\d+\s")


class NotOffsets(ValueError):
    """A string that does not contain offsets in the expected format."""


def read_starting_offsets(label: str, path: Path) -> PositionSet:
    """Read a file that contains Spark's ``startingOffsets``.

    Raises:
        InputError: the file is missing or too large, it has no offsets, or it has a different
            format.
    """
    try:
        text = read_bounded(path).decode("utf-8-sig")
        if _CSV.match(text):
            raise InputError(CSV_PASSED_AS_JSON(path=path))
        value = parse_json(text)
        if isinstance(value, dict) and isinstance(value.get("kind"), str):
            raise InputError(FILE_OF_MIGRATE(path=path))
        if isinstance(value, dict) and isinstance(value.get("sources"), list):
            raise InputError(PROGRESS_REPORT(path=path))
        offsets = topic_offsets(value)
        check_count(len(offsets), path)
        starts = {place: _parse_start(number) for place, number in offsets.items()}
    except NotOffsets as error:
        raise InputError(
            NOT_OFFSETS(place=f"the file {path}", problem=str(error), format=_FORMAT)
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(NOT_UTF_8(path=path, reason=error.reason)) from error
    return position_set(label, starts, path)


def position_set(label: str, starts: dict[TopicPartition, Start], path: Path) -> PositionSet:
    """Return the positions in a file; refuse an empty file."""
    if not starts:
        raise InputError(NO_OFFSETS_IN_FILE(path=path))
    return PositionSet(label, starts)


def parse_json(text: str) -> Any:
    """Parse JSON; refuse duplicate keys, NaN, and infinity, although Python accepts them.

    Raises:
        NotOffsets: the text is not valid JSON, or it contains something that is refused.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant
        )
    except NotOffsets:
        raise
    except json.JSONDecodeError as error:
        problem = _trailing_comma(text, error.pos) or error
        raise NotOffsets(f"it is not valid JSON ({problem})") from error
    except ValueError as error:  # a number with too many digits
        raise NotOffsets(f"it is not valid JSON ({error})") from error
    except RecursionError as error:
        raise NotOffsets("the JSON is nested too deeply") from error


def _trailing_comma(text: str, position: int) -> str:
    """Return the place of a trailing comma if it is the error at this position, else ""."""
    # Up to Python 3.12, the error is at the bracket after the comma.
    comma = position if text[position : position + 1] == "," else len(text[:position].rstrip()) - 1
    if text[comma : comma + 1] != "," or text[comma + 1 :].lstrip()[:1] not in ("}", "]"):
        return ""
    line, column = text.count("\n", 0, comma) + 1, comma - text.rfind("\n", 0, comma)
    return f"trailing comma at line {line} column {column}"


def topic_offsets(value: Any) -> dict[TopicPartition, int]:
    """Return the numbers in ``{"topic":{"partition":number}}``; negative numbers may be markers.

    Raises:
        NotOffsets: the value has a different format.
    """
    if not isinstance(value, dict):
        raise NotOffsets("the JSON is not an object of topics")
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict):
            raise NotOffsets(
                f"the value of topic {_valid_topic(topic)} is not an object of partitions"
            )
        for partition, number in partitions.items():
            partition_number = whole_number(partition, LARGEST_PARTITION, "a partition number")
            if type(number) is not int or number > LARGEST_OFFSET:
                value = reprlib.repr(number)
                raise NotOffsets(f"{quoted(topic)} partition {partition}: {value} is not an offset")
            offsets[_valid_topic(topic), partition_number] = number
    return offsets


def _valid_topic(topic: str) -> str:
    """Return the topic; refuse an unpaired surrogate, which JSON can contain but UTF-8 cannot."""
    try:
        topic.encode()
    except UnicodeEncodeError as error:
        raise NotOffsets(f"topic {quoted(topic)} is not a string") from error
    return topic


def _parse_start(number: int) -> Start:
    if number >= 0:
        return number
    if number in _SPARK_MARKERS:
        return _SPARK_MARKERS[number]
    raise NotOffsets(
        f"{reprlib.repr(number)} is neither an offset nor -1 (latest) nor -2 (earliest)"
    )


def _refuse_duplicates(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise NotOffsets(f"{quoted(key)} is listed twice")
        values[key] = value
    return values


def _refuse_constant(constant: str) -> NoReturn:
    raise NotOffsets(f"{constant} is not an offset")


def whole_number(text: str, largest: int, what: str) -> int:
    """Parse a number up to ``largest``; refuse '+1', '01', '1_0', and non-ASCII digits."""
    if not _DECIMAL.fullmatch(text) or int(text) > largest:
        raise NotOffsets(f"{quoted(text)} is not {what}")
    return int(text)


def quoted(text: str) -> str:
    """Return a string in quotes, truncated if long."""
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}…"


def check_count(offsets: int, path: Path) -> None:
    """Refuse a file with more than MOST_OFFSETS offsets."""
    if offsets > MOST_OFFSETS:
        raise InputError(TOO_MANY_OFFSETS(path=path, limit=MOST_OFFSETS))


def read_bounded(path: Path) -> bytes:
    """Read a JSON or CSV file of offsets; refuse a file that is too large."""
    try:
        return read_file(path, _LARGEST_FILE)
    except FileNotFoundError as error:
        message = FILE_MISSING(path=path, alike=(), way_out="check the path")
        raise InputError(message) from error
    except IsADirectoryError as error:
        way_out = directory_advice(path) or "pass a file"
        raise InputError(PATH_IS_DIRECTORY(path=path, way_out=way_out)) from error
    except OSError as error:
        raise InputError(CANNOT_READ_FILE(path=path, reason=error.strerror)) from error


NextOffsets = Mapping[TopicPartition, int]


def starting_offsets(next_offsets: NextOffsets) -> str:
    """Return the JSON of ``startingOffsets``: compact, sorted by topic and partition number."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), next_offset in sorted(next_offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = next_offset
    return json.dumps(topics, separators=(",", ":"))
