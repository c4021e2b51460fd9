"""The right side of ``migrate diff``, in the formats of other programs."""

from __future__ import annotations

from itertools import groupby
from typing import Literal

from migrate.inputs.group_csv import group_csv
from migrate.model.catalog import EARLIEST_NOT_RESOLVED, NO_OFFSET_TO_WRITE, POSITION_NOT_RESOLVED
from migrate.model.errors import Refused
from migrate.model.positions import Marker, TopicPartition, Unknown, format_start
from migrate.model.warning import warn
from migrate.model.warning_catalog import MISSING_OFFSETS
from migrate.planning.diff import Diff

_MAX_NAMED = 20

RightFormat = Literal["groups-csv", "flink-sql"]


def export_right_side(diff: Diff, format: RightFormat) -> str:
    """Export the right side to another program's format, and warn about its missing partitions.

    ``groups-csv`` is for ``kafka-consumer-groups --reset-offsets --from-file``. ``flink-sql``
    contains the options of one table per topic, because a table accepts the offsets of only one
    topic.

    Source: KafkaConnectorOptionsUtil.parseSpecificOffsets @ connector 5.0.0-2.2.

    Raises:
        Refused: the offset of a position on the right side is unknown, or the side has no
            positions.
    """
    next_offsets = _next_offsets_of_right(diff)
    if format == "groups-csv":
        return group_csv(next_offsets)
    by_topic = groupby(sorted(next_offsets.items()), key=lambda item: item[0][0])
    return "\n".join(
        _table_options(topic, ";".join(f"partition:{key[1]},offset:{o}" for key, o in items))
        for topic, items in by_topic
    )


def _table_options(topic: str, specific_offsets: str) -> str:
    options = {
        "topic": topic,
        "scan.startup.mode": "specific-offsets",
        "scan.startup.specific-offsets": specific_offsets,
    }
    quoted = (
        f"'{name}' = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in options.items()
    )
    return ",\n".join(quoted) + "\n"


def _next_offsets_of_right(diff: Diff) -> dict[TopicPartition, int]:
    next_offsets: dict[TopicPartition, int] = {}
    missing: list[str] = []
    label = diff.right.label
    for row in diff.rows:
        name = f"{row.name}"
        if row.right is Unknown.ABSENT:
            missing.append(name)
        elif row.right_offset is None:
            if row.right is Marker.EARLIEST:
                raise Refused(EARLIEST_NOT_RESOLVED(side=label, partition=name))
            state = format_start(row.right)
            raise Refused(POSITION_NOT_RESOLVED(side=label, partition=name, state=state))
        else:
            next_offsets[row.topic, row.partition] = row.right_offset
    if not next_offsets:
        raise Refused(NO_OFFSET_TO_WRITE(side=label))
    if missing:
        warn(MISSING_OFFSETS(side=label, partitions=missing))
    return next_offsets
