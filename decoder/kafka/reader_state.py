"""SourceReaderState: the splits of a source's readers, one list per subtask.

An element is ``i32 splitSerializerVersion, i32 len``, len bytes of the split. All FLIP-27 sources,
not only Kafka sources, use this name for their reader state.

Source: org.apache.flink.streaming.api.operators.SourceOperator @ Flink 2.2.0,
org.apache.flink.core.io.SimpleVersionedSerialization @ 2.2.0.
"""

from __future__ import annotations

from decoder.cursor import Cursor
from decoder.errors import DecodeError
from decoder.kafka.dynamic import DYNAMIC_SPLIT_VERSIONS, DynamicSplit, read_dynamic_split
from decoder.kafka.hybrid import HybridSplit, read_hybrid_split
from decoder.kafka.split import SPLIT_VERSION, Split, read_split

SOURCE_READER_STATE = "SourceReaderState"

_SPLIT_VERSIONS = (SPLIT_VERSION, *DYNAMIC_SPLIT_VERSIONS)


def read_reader_element(element: bytes, label: str) -> Split | DynamicSplit | HybridSplit:
    """Read the split in one element.

    Raises:
        DecodeError: the bytes are not exactly a split of a recognized kind.
    """
    cursor = Cursor(element, label)
    version = cursor.i32("split serializer version")
    split = cursor.blob("split")
    cursor.finish("element of reader state")
    return read_any_split(split, version, label)


def read_any_split(split: bytes, version: int, label: str) -> Split | DynamicSplit | HybridSplit:
    """Read a split with the serializer version ``version``.

    Only DynamicKafkaSource uses versions 1 and 2. KafkaSource and HybridSource both use version 0,
    but no split decodes as both kinds. The first two bytes of a HybridSource split are zero (a
    small source index). The first two bytes of a KafkaSource split are the length of the topic
    name.

    Raises:
        DecodeError: the bytes are not exactly a split of a recognized kind.
    """
    if version in DYNAMIC_SPLIT_VERSIONS:
        return read_dynamic_split(Cursor(split, label), version)
    cursor = Cursor(split, label)
    cursor.check_version(version, "split", _SPLIT_VERSIONS, back=0)
    try:
        return read_split(cursor, version)
    except DecodeError as not_kafka:
        try:
            return read_hybrid_split(Cursor(split, label))
        except DecodeError:
            raise not_kafka from None
