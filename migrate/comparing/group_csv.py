"""The CSV of ``kafka-consumer-groups``, read and written."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from migrate.positions import PositionSet, Start, TopicPartition, UnreadableInput
from migrate.spark.offsets_json import (
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    NotOffsets,
    some,
    text_of,
    whole_number,
)


def read_group_csv(label: str, path: Path) -> PositionSet:
    """A file that ``kafka-consumer-groups --export`` wrote: ``topic,partition,offset`` a line,
    without a header; with several groups it has the group before the topic.

    Source: org.apache.kafka.tools.consumer.group.{ConsumerGroupCommand, CsvUtils} @ Kafka 4.1.1.

    Raises:
        UnreadableInput: there is no such file, it holds something else, or several groups.
    """
    starts: dict[TopicPartition, Start] = {}
    groups: set[str] = set()
    reader = csv.reader(io.StringIO(text_of(path), newline=""), strict=True)
    try:
        for fields in reader:
            if not fields:
                continue
            *group, topic, partition, offset = fields if len(fields) in (3, 4) else _not_a_row()
            groups.update(group)
            place = topic, whole_number(partition, LARGEST_PARTITION, "a partition number")
            if place in starts:
                raise NotOffsets(f"{topic!r} partition {partition} is there twice")
            starts[place] = whole_number(offset, LARGEST_OFFSET, "an offset")
            if len(groups) > 1:
                raise NotOffsets(
                    f"it holds several groups, {' and '.join(map(repr, sorted(groups)))}"
                )
    except (NotOffsets, csv.Error) as error:
        raise UnreadableInput(
            f"{path} line {reader.line_num}: {error}; expected topic,partition,offset"
        ) from error
    return PositionSet(label, some(starts, path))


def group_csv(next_offsets: Mapping[TopicPartition, int]) -> str:
    """The CSV that ``kafka-consumer-groups --reset-offsets --from-file`` takes."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        (topic, partition, offset) for (topic, partition), offset in sorted(next_offsets.items())
    )
    return text.getvalue()


def _not_a_row() -> NoReturn:
    raise NotOffsets("neither three fields nor four")
