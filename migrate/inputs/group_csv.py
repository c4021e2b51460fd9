"""The CSV files that ``kafka-consumer-groups`` reads and writes."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from migrate.inputs.offsets_json import (
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    NotOffsets,
    check_count,
    position_set,
    quoted,
    read_bounded,
    whole_number,
)
from migrate.model.errors import InputError
from migrate.model.positions import PositionSet, Start, TopicPartition

# In characters. A topic's name has at most 249, and a group's at most 32,767.
_LONGEST_LINE = 40_000
# The beginning of JSON, which may follow a UTF-8 byte order mark.
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")


def read_group_csv(label: str, path: Path) -> PositionSet:
    """Read a file that ``kafka-consumer-groups --export`` wrote.

    The file has no header. Its lines are ``topic,partition,offset``, or
    ``group,topic,partition,offset`` if it was exported for several groups.

    Source: org.apache.kafka.tools.consumer.group.{ConsumerGroupCommand, CsvUtils} @ Kafka 4.1.1.

    Raises:
        InputError: the file is missing or too large, has no offsets, several groups, or another
            format.
    """
    content = read_bounded(path)
    if _JSON.match(content):
        raise InputError(f"{path}: it is JSON, not CSV; name it json:{path}")
    starts: dict[TopicPartition, Start] = {}
    groups: set[str] = set()
    width = None
    reader = csv.reader(_lines(path, content), strict=True)
    try:
        for fields in reader:
            if not fields:
                continue
            if len(fields) not in (3, 4):
                raise NotOffsets("neither three fields nor four, with a comma between two")
            *group, topic, partition, offset = fields
            if width not in (None, len(fields)):
                raise NotOffsets(f"{len(fields)} fields, and {width} in the rows before it")
            width = len(fields)
            if not topic.isprintable():
                raise NotOffsets(f"{quoted(topic)} is not a topic: it holds a control character")
            groups.update(group)
            if not starts and partition.strip().lower() == "partition":
                raise InputError(f"{path} line {reader.line_num} is a header; remove it")
            place = topic, whole_number(partition, LARGEST_PARTITION, "a partition number")
            if place in starts:
                raise NotOffsets(f"{quoted(topic)} partition {partition} is there twice")
            starts[place] = whole_number(offset, LARGEST_OFFSET, "an offset")
            if len(groups) > 1:
                names = " and ".join(map(quoted, sorted(groups)))
                raise NotOffsets(f"it holds several groups, {names}")
            check_count(len(starts), path)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason})") from error
    except (NotOffsets, csv.Error) as error:
        raise InputError(
            f"{path} line {reader.line_num}: {error}; expected topic,partition,offset"
        ) from error
    return position_set(label, starts, path)


def _lines(path: Path, content: bytes) -> Iterator[str]:
    """Yield the lines of UTF-8 text with their line ends; refuse a line that is too long."""
    # The encoding utf-8-sig drops a byte order mark.
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
    for number in itertools.count(1):
        line = text.readline(_LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > _LONGEST_LINE:
            problem = f"longer than {_LONGEST_LINE} characters"
            raise InputError(f"{path} line {number}: {problem}")
        yield line


def group_csv(next_offsets: Mapping[TopicPartition, int]) -> str:
    """Return the CSV for ``kafka-consumer-groups --reset-offsets --from-file``."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        (topic, partition, offset) for (topic, partition), offset in sorted(next_offsets.items())
    )
    return text.getvalue()
