"""SourceReaderState: the splits that the readers of a source hold, one list per subtask.

An element is ``i32 splitSerializerVersion, i32 len``, len split bytes. Every FLIP-27 source keeps
this state under this name, whatever its splits are.

Source: org.apache.flink.streaming.api.operators.SourceOperator @ Flink 2.2.0,
org.apache.flink.core.io.SimpleVersionedSerialization @ 2.2.0.
"""

from __future__ import annotations

from decoder.cursor import Cursor
from decoder.errors import ErrorKind
from decoder.kafka.dynamic import DYNAMIC_SPLIT_VERSION, DynamicSplit, read_dynamic_split
from decoder.kafka.split import SPLIT_VERSION, Split, read_split

SOURCE_READER_STATE = "SourceReaderState"


def read_reader_element(element: bytes, what: str) -> Split | DynamicSplit:
    """One element as a KafkaPartitionSplit or a DynamicKafkaSourceSplit: no version is of both.

    Raises:
        DecodeError: neither, read strictly.
    """
    cursor = Cursor(element, what)
    version = cursor.i32("split serializer version")
    split = cursor.frame(cursor.i32("split length"), "split")
    cursor.finish("element of reader state")
    if version == SPLIT_VERSION:
        return read_split(split, version)
    if version == DYNAMIC_SPLIT_VERSION:
        return read_dynamic_split(split)
    cursor.fail(
        f"version {version} of a split is not read here (known: {SPLIT_VERSION} of KafkaSource, "
        f"{DYNAMIC_SPLIT_VERSION} of DynamicKafkaSource)",
        "split",
        ErrorKind.UNSUPPORTED,
    )
