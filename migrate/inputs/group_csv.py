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
    MOST_OFFSETS,
    NotOffsets,
    check_count,
    position_set,
    quoted,
    read_bounded,
    whole_number,
)
from migrate.model.catalog import (
    CSV_HEADER,
    CSV_LINE_TOO_LONG,
    DESCRIBE_OUTPUT,
    JSON_PASSED_AS_CSV,
    NOT_OFFSETS,
    NOT_UTF_8,
    SEVERAL_GROUPS_IN_FILE,
)
from migrate.model.errors import InputError, NoSuchName, Refused
from migrate.model.positions import PositionSet, Start, TopicPartition
from migrate.model.wording import counted, join_some

# The maximum length of a line. A topic name has at most 249 characters, and a group name has at
# most 32,767.
_LONGEST_LINE = 40_000
_MOST_NAMED = 10
_FORMAT = "topic,partition,offset"
# The header of the table that ``--describe`` prints.
_DESCRIBED = re.compile(rb"\s*GROUP\s+TOPIC\s+PARTITION\s")
# The start of JSON, possibly after a UTF-8 byte order mark.
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")


def read_group_csv(label: str, name: Path) -> PositionSet:
    """Read a file from ``kafka-consumer-groups --export``.

    The file has no header. Its lines are ``topic,partition,offset``, or
    ``group,topic,partition,offset`` if it was exported for several groups. ``name`` is ``FILE``, or
    ``FILE#GROUP`` for one of these groups.

    Source: org.apache.kafka.tools.consumer.group.{ConsumerGroupCommand, CsvUtils} @ Kafka 4.1.1.

    Raises:
        InputError: the file is missing or too large, it has no offsets, or it has a different
            format.
        NoSuchName: the file does not contain the group.
        Refused: the file contains several groups, and ``name`` does not specify one.
    """
    path, chosen = _file_and_group(name)
    content = read_bounded(path)
    if _JSON.match(content):
        raise InputError(JSON_PASSED_AS_CSV(path=path))
    if _DESCRIBED.match(content):
        raise InputError(DESCRIBE_OUTPUT(path=path))
    # The positions by group; if the lines do not contain a group, the group is "".
    groups: dict[str, dict[TopicPartition, Start]] = {}
    width = None
    reader = csv.reader(_lines(path, content), strict=True)
    try:
        for fields in reader:
            if not fields:
                continue
            if len(fields) not in (3, 4):
                raise NotOffsets(f"it has {counted(len(fields), 'field')} instead of 3 or 4")
            *groups_of_line, topic, partition, offset = fields
            group = groups_of_line[0] if groups_of_line else ""
            if width not in (None, len(fields)):
                raise NotOffsets(f"it has {len(fields)} fields, but earlier lines have {width}")
            width = len(fields)
            if not topic.isprintable():
                raise NotOffsets(
                    f"{quoted(topic)} is not a topic name, because it contains a control character"
                )
            if not groups and partition.strip().lower() == "partition":
                raise InputError(CSV_HEADER(path=path, line=reader.line_num))
            topic_partition = (
                topic,
                whole_number(partition, LARGEST_PARTITION, "a partition number"),
            )
            starts = groups.setdefault(group, {})
            if topic_partition in starts:
                raise NotOffsets(f"{quoted(topic)} partition {partition} is listed twice")
            starts[topic_partition] = whole_number(offset, LARGEST_OFFSET, "an offset")
            check_count(len(starts), path)
            if len(groups) > MOST_OFFSETS:
                raise NotOffsets(f"the file contains more than {MOST_OFFSETS} groups")
    except UnicodeDecodeError as error:
        raise InputError(NOT_UTF_8(path=path, reason=error.reason)) from error
    except (NotOffsets, csv.Error) as error:
        place = f"line {reader.line_num} of {path}"
        raise InputError(NOT_OFFSETS(place=place, problem=str(error), format=_FORMAT)) from error
    return position_set(label, _positions_of_group(groups, path, chosen), path)


def _file_and_group(name: Path) -> tuple[Path, str | None]:
    """Split ``FILE#GROUP`` into the file and the group; the group is None for ``FILE``.

    Both parts may contain ``#``. The file is therefore the whole string if such a file exists.
    Otherwise, it is the shortest part before a ``#`` that is the path of a file.
    """
    text = str(name)
    if not name.exists():
        for at, character in enumerate(text):
            if character == "#" and Path(text[:at]).is_file():
                return Path(text[:at]), text[at + 1 :]
    return name, None


def _positions_of_group(
    groups: Mapping[str, dict[TopicPartition, Start]], path: Path, chosen: str | None
) -> dict[TopicPartition, Start]:
    """Return the positions of the chosen group, or of the only group.

    Raises:
        NoSuchName: the file does not contain the group.
        Refused: no group was chosen, and the file contains several groups.
    """
    names = sorted(groups)
    if chosen is not None:
        if chosen not in groups or chosen == "":
            known = [name for name in names if name]
            others = f"it contains: {join_some(map(quoted, known), _MOST_NAMED)}"
            raise NoSuchName(
                f"{path} contains no group {quoted(chosen)}",
                chosen,
                known,
                others if known else "its lines contain no group, so omit # and the name",
            )
        return groups[chosen]
    if len(groups) > 1:
        choices = [f"csv:{path}#{name}" for name in names]
        raise Refused(SEVERAL_GROUPS_IN_FILE(path=path, count=len(groups), choices=choices))
    return next(iter(groups.values()), {})


def _lines(path: Path, content: bytes) -> Iterator[str]:
    """Yield the lines of UTF-8 text with their line endings; refuse overlong lines."""
    # The utf-8-sig encoding drops a byte order mark.
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
    for number in itertools.count(1):
        line = text.readline(_LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > _LONGEST_LINE:
            raise InputError(CSV_LINE_TOO_LONG(path=path, line=number, limit=_LONGEST_LINE))
        yield line


def group_csv(next_offsets: Mapping[TopicPartition, int]) -> str:
    """Return the CSV for ``kafka-consumer-groups --reset-offsets --from-file``."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        (topic, partition, offset) for (topic, partition), offset in sorted(next_offsets.items())
    )
    return text.getvalue()
