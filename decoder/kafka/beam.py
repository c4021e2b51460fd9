"""The positions of Apache Beam's KafkaIO in the state of the Beam Flink runner.

KafkaIO reads through an UnboundedSource (KafkaUnboundedSource), called the source here.

In Beam 2.50, UnboundedSourceWrapper, a Flink SourceFunction, reads the source. Each element
of its list state contains the Java-serialized source, followed by the source's CheckpointMark,
encoded with the source's coder. No length precedes the source or the mark.

In Beam 2.62, a Flink ``Source`` reads the source. A split is a FlinkSourceSplit, a serialized Java
object. Its field ``beamSplitSource`` is the source that reads the split; ``splitState`` is the
source's CheckpointMark, or null if Beam has not created a reader for the split yet. Splits that
have not been sent to their subtask yet are in the enumerator's state, a HashMap from subtask
(Integer) to splits (ArrayList).

The mark of a KafkaUnboundedSource is a KafkaCheckpointMark in Avro's binary encoding. A
KafkaCheckpointMark is an array of PartitionMark. The array is stored in blocks of ``long n`` and n
items, and ends with n = 0. If n is negative, the block is ``long n``, ``long`` size in bytes, and
-n items. An item is ``string topic, int partition, long nextOffset, long watermarkMillis``. An int
or long is a zig-zag varint; a string is a ``long`` length and UTF-8 bytes. ``nextOffset`` is the
offset of the next record to read, or -1 if the reader has not yet queried Kafka for its starting
offset. ``watermarkMillis`` is the reader's last watermark.

Avro 1.8 (Beam 2.50) writes the fields in declaration order, and Avro 1.11 (Beam 2.62) writes them
sorted by name. A mark does not store its field order, so both orders are tried. In the correct
order, the mark lists the same partitions as the source, in the same order. Beam refuses to restore
any other mark.

Source: UnboundedSourceWrapper @ Beam 2.50.0; FlinkSourceSplit, FlinkSourceSplitEnumerator @ 2.62.0;
KafkaCheckpointMark, KafkaUnboundedReader @ both; Apache Avro specification, binary encoding.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.kafka.split import NOT_SET, check_topic, is_legal_topic
from decoder.metadata.java_stream import JavaArray, JavaObject, JavaValue, read_object_stream

_PACKAGE = "org.apache.beam.runners.flink.translation.wrappers.streaming.io.source."
_SPLIT = f"{_PACKAGE}FlinkSourceSplit"
_KAFKA = "org.apache.beam.sdk.io.kafka.KafkaUnboundedSource"
BEAM_SPLIT, BEAM_KAFKA = _SPLIT.encode(), _KAFKA.encode()
# DefaultOperatorStateBackend.DEFAULT_OPERATOR_STATE_NAME; user functions can also use this name.
WRAPPER_STATE = "_default_"
# List state of every DoFnOperator @ Beam 2.50.0 and 2.62.0. A job with this state is a Beam
# pipeline.
BEAM_BUNDLE = "bundle-buffer-tag"
# The versions of the Beam serializer (SerdeUtils.getNaiveObjectSerializer).
_VERSIONS = (0,)

_LIST, _MAP = "java.util.ArrayList", "java.util.HashMap"
_UNINITIALIZED_OFFSET = -1  # KafkaUnboundedReader.UNINITIALIZED_OFFSET
_TOPIC_FIELD = "topic"
_DECLARED_ORDER = (_TOPIC_FIELD, "partition", "nextOffset", "watermarkMillis")
_FIELD_ORDERS = (tuple(sorted(_DECLARED_ORDER)), _DECLARED_ORDER)
_LONG_BITS = 64
_MOST_PARTITIONS = 2**31  # a partition number is a Java int


class BeamMark(NamedTuple):
    """The position of a split in one partition (PartitionMark).

    Attributes:
        next_offset: NOT_SET if ``splitState`` is null or the reader did not have a starting offset
            yet.
        watermark: the last watermark in epoch milliseconds; None if ``splitState`` is null.
    """

    topic: str
    partition: int
    next_offset: int
    watermark: int | None


def read_beam_element(element: bytes, label: str) -> list[BeamMark]:
    """Read an element of reader state: ``i32`` version, ``i32 n``, and n bytes of a split.

    Raises:
        DecodeError: the bytes are not a valid KafkaIO split.
    """
    cursor = Cursor(element, label)
    cursor.version("Beam split", _VERSIONS)
    split = cursor.frame(cursor.i32("split"), "split")
    cursor.finish("element of reader state")
    value = read_object_stream(split)
    split.finish("split of a Beam pipeline")
    return _marks_of_split(value, label, set())


def read_beam_wrapper_element(element: bytes, label: str) -> list[BeamMark]:
    """Read an element of an UnboundedSourceWrapper's state, a source followed by its mark.

    Raises:
        DecodeError: the bytes are not a KafkaIO source with a valid mark.
    """
    cursor = Cursor(element, label)
    source = read_object_stream(cursor)
    return _marks(_partitions(source, set()), cursor.rest(f"{label}: KafkaCheckpointMark"))


def read_beam_enumerator(cursor: Cursor, version: int) -> list[BeamMark]:
    """Read the positions of the splits that have not been sent to their subtask yet.

    Raises:
        DecodeError: the bytes are not a map from subtask to valid KafkaIO splits, or an object
            occurs twice.
    """
    cursor.check_version(version, "Beam enumerator", _VERSIONS, back=0)
    value = read_object_stream(cursor)
    cursor.finish("enumerator state")
    splits: list[JavaValue] = []
    seen: set[int] = set()
    map_of_lists = _objects_in(value, _MAP, seen)
    keys, lists = map_of_lists[::2], map_of_lists[1::2]
    if len(keys) != len(lists) or any(_class_name(key) != "java.lang.Integer" for key in keys):
        cursor.fail("not a map from subtask to list", "enumerator state", ErrorKind.UNSUPPORTED)
    for split_list in lists:
        splits += _objects_in(split_list, _LIST, seen)
    for split in splits:
        _check_new(split, seen)
    return [
        mark for split in splits for mark in _marks_of_split(split, "splits without a reader", seen)
    ]


def _objects_in(value: JavaValue, class_name: str, seen: set[int]) -> list[JavaValue]:
    """Return the objects in a Java map or list; refuse a map or list that was seen before."""
    if not isinstance(value, JavaObject) or value.class_name != class_name:
        _fail(f"{_class_name(value)}, where {class_name} belongs")
    if not all(isinstance(field, int) for field in value.fields.values()):
        _fail(f"{class_name} with objects in its fields")
    _check_new(value, seen)
    return value.written


def _check_new(value: JavaValue, seen: set[int]) -> None:
    """Refuse an object that occurs twice.

    If an object could occur repeatedly, a few bytes of references could expand to gigabytes.
    """
    if value is not None and id(value) in seen:
        _fail(f"{_class_name(value)}, listed twice")
    seen.add(id(value))


def _fail(problem: str) -> NoReturn:
    raise DecodeError(ErrorKind.UNSUPPORTED, problem)


def _class_name(value: JavaValue) -> str:
    return value.class_name if isinstance(value, JavaObject) else "a value without a class"


def _marks_of_split(split: JavaValue, label: str, seen: set[int]) -> list[BeamMark]:
    if not isinstance(split, JavaObject) or split.class_name != _SPLIT:
        raise DecodeError(ErrorKind.CORRUPT, f"not a split of a Beam pipeline ({label})")
    source, state = split.fields.get("beamSplitSource"), split.fields.get("splitState")
    listed = _partitions(source, seen)
    if state is None:
        return [BeamMark(topic, partition, NOT_SET, None) for topic, partition in listed]
    if not isinstance(state, JavaArray):
        raise DecodeError(ErrorKind.CORRUPT, f"a Beam split's state is not a byte array ({label})")
    _check_new(state, seen)
    return _marks(listed, Cursor(state.data, label))


def _marks(listed: list[tuple[str, int]], cursor: Cursor) -> list[BeamMark]:
    """Read a source's mark; refuse a mark that does not list the source's partitions."""
    problem: DecodeError | None = None
    for fields in _FIELD_ORDERS:
        try:
            marks = _read_marks(cursor.rest(cursor.file), fields)
        except DecodeError as error:
            problem = problem or error
            continue
        if [(mark.topic, mark.partition) for mark in marks] == listed:
            return marks
    raise problem or DecodeError(
        ErrorKind.CORRUPT,
        "a KafkaCheckpointMark whose partitions differ from the partitions of its source "
        f"({cursor.file})",
    )


def _partitions(source: JavaValue, seen: set[int]) -> list[tuple[str, int]]:
    """Return the partitions of a KafkaUnboundedSource: ``spec.topicPartitions``, a Java list."""
    if not isinstance(source, JavaObject) or source.class_name != _KAFKA:
        _fail(f"the source {_class_name(source)} of an Apache Beam pipeline is not KafkaIO")
    _check_new(source, seen)
    spec = source.fields.get("spec")
    partitions = spec.fields.get("topicPartitions") if isinstance(spec, JavaObject) else None
    listed = []
    for item in _objects_in(partitions, _LIST, seen):
        fields = item.fields if isinstance(item, JavaObject) else {}
        topic, partition = fields.get("topic"), fields.get("partition")
        if not isinstance(topic, str) or not is_legal_topic(topic):
            _fail(f"a Beam KafkaIO lists the illegal topic name {topic!r}")
        if not isinstance(partition, int) or not 0 <= partition < _MOST_PARTITIONS:
            _fail(f"a Beam KafkaIO lists the illegal partition number {partition!r}")
        listed.append((topic, partition))
    if not listed:
        _fail("a Beam KafkaIO that lists no partitions")
    return listed


def _read_marks(cursor: Cursor, fields: tuple[str, ...]) -> list[BeamMark]:
    marks = []
    while count := cursor.zigzag("partitions", _LONG_BITS):
        if count < 0:
            count = -count
            cursor.zigzag("bytes of a block", _LONG_BITS)
        if count > cursor.remaining // len(fields):
            cursor.fail(f"{count} partitions cannot fit into the bytes left", "partitions")
        marks += [_read_mark(cursor, fields) for _ in range(count)]
    cursor.finish("KafkaCheckpointMark")
    return marks


def _read_mark(cursor: Cursor, fields: tuple[str, ...]) -> BeamMark:
    numbers: dict[str, int] = {}
    topic = ""
    for field in fields:
        value = cursor.zigzag(field, _LONG_BITS)
        if field == _TOPIC_FIELD:
            if value < 0:
                cursor.fail(f"a length cannot be negative: {value}", field)
            topic = cursor.raw(value, field).decode("ascii", "replace")
            check_topic(cursor, topic)
        else:
            numbers[field] = value
    next_offset = numbers["nextOffset"]
    if next_offset < _UNINITIALIZED_OFFSET:
        cursor.fail(f"not an offset: {next_offset}", "nextOffset")
    start = NOT_SET if next_offset == _UNINITIALIZED_OFFSET else next_offset
    return BeamMark(topic, numbers["partition"], start, numbers["watermarkMillis"])
