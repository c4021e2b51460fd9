"""Hudi Streamer's checkpoint of a Kafka source: ``topic,0:100,1:200``.

The text contains one topic and the next offset of each of its partitions. Hudi Streamer stores the
text in the commits of its table (``streamer.checkpoint.key.v2``, or
``deltastreamer.checkpoint.key`` before Hudi 1.0), and accepts it as ``--checkpoint``. If a
partition is missing from the text, Hudi Streamer reads the partition from offset 0.

Source: KafkaOffsetGen.CheckpointUtils.{strToOffsets, offsetsToStr} @ Hudi 1.1.1.
"""

from __future__ import annotations

from decoder.kafka.split import is_legal_topic
from migrate.inputs.offsets_json import (
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    MOST_OFFSETS,
    NextOffsets,
    NotOffsets,
    quoted,
    whole_number,
)
from migrate.model.catalog import NOT_OFFSETS, SEVERAL_TOPICS_FOR_HUDI
from migrate.model.errors import InputError, Refused
from migrate.model.positions import PositionSet, Start, TopicPartition
from migrate.model.wording import counted

_FORMAT = "hudi:orders,0:100,1:200 of a Hudi Streamer checkpoint"


def read_hudi_text(label: str, text: str) -> PositionSet:
    """Return the positions in a Hudi Streamer checkpoint.

    Raises:
        InputError: the text has a different format.
    """
    topic, *pairs = text.strip().split(",")
    starts: dict[TopicPartition, Start] = {}
    try:
        if not is_legal_topic(topic):
            raise NotOffsets(f"{quoted(topic)} is not a topic name")
        if not pairs or len(pairs) > MOST_OFFSETS:
            raise NotOffsets(f"it contains {counted(len(pairs), 'partition')}")
        for pair in pairs:
            partition, colon, offset = pair.partition(":")
            if not colon:
                raise NotOffsets(f"{quoted(pair)} is not PARTITION:OFFSET")
            place = topic, whole_number(partition, LARGEST_PARTITION, "a partition number")
            if place in starts:
                raise NotOffsets(f"partition {partition} is listed twice")
            starts[place] = whole_number(offset, LARGEST_OFFSET, "an offset")
    except NotOffsets as error:
        shown = f"hudi:{quoted(text)}"
        raise InputError(NOT_OFFSETS(place=shown, problem=str(error), format=_FORMAT)) from error
    return PositionSet(label, starts)


def hudi_text(next_offsets: NextOffsets) -> str:
    """Return the text for the ``--checkpoint`` option of Hudi Streamer, sorted by partition.

    Raises:
        Refused: the offsets belong to several topics, but a Hudi Streamer source reads only one.
    """
    topics = sorted({topic for topic, _ in next_offsets})
    if len(topics) != 1:
        raise Refused(SEVERAL_TOPICS_FOR_HUDI(count=len(topics), topics=topics))
    pairs = (f"{partition}:{offset}" for (_, partition), offset in sorted(next_offsets.items()))
    return ",".join([*topics, *pairs])
