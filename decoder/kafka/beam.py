"""Apache Beam's KafkaIO, read by an UnboundedSource, as Beam's Flink runner stores its positions.

In Beam 2.50 an UnboundedSourceWrapper reads it, a SourceFunction. An element of its list state is a
source, an object of Java's serialization, and the source's CheckpointMark, in the source's coder.
Nothing tells their lengths.

In Beam 2.62 it is a source of Flink's. A split is a FlinkSourceSplit, an object of Java's
serialization. Of its fields ``beamSplitSource`` is the source that reads it, and ``splitState`` the
source's CheckpointMark: null where no reader has been created for it yet. Splits that no reader has
are in the enumerator's state, a HashMap from Integer, the subtask, to ArrayList.

Of a KafkaUnboundedSource the mark is a KafkaCheckpointMark in Avro's binary form: an array of
PartitionMark, as blocks of ``long n`` and n items up to an n of 0; of a negative n a ``long`` with
the block's bytes follows. An item is ``string topic, int partition, long nextOffset, long
watermarkMillis``, in the order in which the class declares them, or by their names, as a newer Avro
orders them: whichever Avro the pipeline has. An int or long is a zig-zag varint, a string a
``long`` length and UTF-8. ``nextOffset`` is that of the record to be read next, -1 where the reader
has not asked Kafka for its start yet. The watermark is what the reader has said last.

A mark lists the partitions of its source, in their order, or Beam does not restore it. So it is
known which order its fields have.

Source: UnboundedSourceWrapper @ Beam 2.50.0; FlinkSourceSplit, FlinkSourceSplitEnumerator @ 2.62.0;
KafkaCheckpointMark, KafkaUnboundedReader @ both; Apache Avro specification, binary encoding.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.kafka.legacy import read_signed_varint
from decoder.kafka.split import NOT_SET, check_topic, is_legal_topic
from decoder.metadata.java_stream import JavaArray, JavaObject, JavaValue, read_object_stream

_PACKAGE = "org.apache.beam.runners.flink.translation.wrappers.streaming.io.source."
_SPLIT = f"{_PACKAGE}FlinkSourceSplit"
_KAFKA = "org.apache.beam.sdk.io.kafka.KafkaUnboundedSource"
# In a Java object's stream the names of their classes.
BEAM_SPLIT, BEAM_KAFKA = _SPLIT.encode(), _KAFKA.encode()
# DefaultOperatorStateBackend.DEFAULT_OPERATOR_STATE_NAME; functions of users have it, too.
WRAPPER_STATE = "_default_"
# List state of every DoFnOperator @ Beam 2.50.0 and 2.62.0: what a bundle gave out as it was
# finished for the checkpoint, after the barrier. A job that has it is a pipeline of Beam's.
BEAM_BUNDLE = "bundle-buffer-tag"
# Version of its serializer: SerdeUtils.getNaiveObjectSerializer.
_VERSION = 0

_LIST, _MAP = "java.util.ArrayList", "java.util.HashMap"
_NOT_STARTED = -1  # KafkaUnboundedReader.UNINITIALIZED_OFFSET
_TOPIC = "topic"
# As the class declares them: Avro 1.8 (Beam 2.50). By their names: Avro 1.11 (Beam 2.62).
_DECLARED = (_TOPIC, "partition", "nextOffset", "watermarkMillis")
_FIELD_ORDERS = (tuple(sorted(_DECLARED)), _DECLARED)
_LONG = 64  # bits of the longest number of Avro's
_MOST_PARTITIONS = 2**31  # one is an int of Java's


class BeamMark(NamedTuple):
    """A partition that a split reads.

    Attributes:
        next_offset: of the record to be read next; NOT_SET where its start was not known yet.
        watermark: in milliseconds of the epoch; None of a split without a reader.
    """

    topic: str
    partition: int
    next_offset: int
    watermark: int | None


def read_beam_element(element: bytes, what: str) -> list[BeamMark]:
    """An element of reader state: ``i32`` version, ``i32 n``, and n bytes of a split.

    Raises:
        DecodeError: not a split of KafkaIO's, read strictly.
    """
    cursor = Cursor(element, what)
    version = cursor.i32("split serializer version")
    size = cursor.i32("split")
    split = cursor.frame(size, "split")
    cursor.finish("element of reader state")
    if version != _VERSION:
        cursor.fail(f"version {version} of a Beam split is not known here", "split")
    value = read_object_stream(split)
    split.finish("split of a Beam pipeline")
    return _marks_of_split(value, what, set())


def read_beam_wrapped(element: bytes, what: str) -> list[BeamMark]:
    """An element of an UnboundedSourceWrapper's state: a source, then its mark.

    Raises:
        DecodeError: not one of KafkaIO's, read strictly.
    """
    cursor = Cursor(element, what)
    source = read_object_stream(cursor)
    return _marks(_partitions(source, set()), cursor.again(f"{what}: KafkaCheckpointMark"))


def read_beam_enumerator(cursor: Cursor, version: int) -> list[BeamMark]:
    """The splits that no reader has.

    Raises:
        DecodeError: not such a map, or of another source, or one that names an object twice.
    """
    if version != _VERSION:
        cursor.fail(f"version {version} of a Beam enumerator is not known here", "enumerator state")
    value = read_object_stream(cursor)
    cursor.finish("enumerator state")
    splits: list[JavaValue] = []
    seen: set[int] = set()
    map_of_lists = _written(value, _MAP, seen)
    keys, lists = map_of_lists[::2], map_of_lists[1::2]
    if len(keys) != len(lists) or any(_class_name(key) != "java.lang.Integer" for key in keys):
        cursor.fail("not a map from subtask to list", "enumerator state", ErrorKind.UNSUPPORTED)
    for one in lists:
        splits += _written(one, _LIST, seen)
    for split in splits:
        _once(split, seen)
    return [
        mark for split in splits for mark in _marks_of_split(split, "splits without a reader", seen)
    ]


def _written(value: JavaValue, class_name: str, seen: set[int]) -> list[JavaValue]:
    """The objects in a map or a list of Java's, which is listed once."""
    if not isinstance(value, JavaObject) or value.class_name != class_name:
        _fail(f"{_class_name(value)}, where {class_name} belongs")
    if not all(isinstance(held, int) for held in value.fields.values()):
        _fail(f"{class_name} with objects in its fields")
    _once(value, seen)
    return value.written


def _once(value: JavaValue, seen: set[int]) -> None:
    """References to what was read already could make much of few bytes."""
    if value is not None and id(value) in seen:
        _fail(f"{_class_name(value)}, listed twice")
    seen.add(id(value))


def _fail(problem: str) -> NoReturn:
    raise DecodeError(ErrorKind.UNSUPPORTED, problem)


def _class_name(value: JavaValue) -> str:
    return value.class_name if isinstance(value, JavaObject) else "what is of no class"


def _marks_of_split(split: JavaValue, what: str, seen: set[int]) -> list[BeamMark]:
    if not isinstance(split, JavaObject) or split.class_name != _SPLIT:
        raise DecodeError(ErrorKind.CORRUPT, f"not a split of a Beam pipeline ({what})")
    source, state = split.fields.get("beamSplitSource"), split.fields.get("splitState")
    listed = _partitions(source, seen)
    if state is None:
        return [BeamMark(*place, NOT_SET, None) for place in listed]
    if not isinstance(state, JavaArray):
        raise DecodeError(ErrorKind.CORRUPT, f"the state of a Beam split is no bytes ({what})")
    _once(state, seen)
    return _marks(listed, Cursor(state.data, what))


def _marks(listed: list[tuple[str, int]], cursor: Cursor) -> list[BeamMark]:
    """What a source's mark tells of the partitions that it is to read."""
    problem: DecodeError | None = None
    for fields in _FIELD_ORDERS:
        try:
            marks = _read_marks(cursor.again(cursor.file), fields)
        except DecodeError as error:
            problem = problem or error
            continue
        if [(one.topic, one.partition) for one in marks] == listed:
            return marks
    raise problem or DecodeError(
        ErrorKind.CORRUPT,
        f"a KafkaCheckpointMark of other partitions than its source's ({cursor.file})",
    )


def _partitions(source: JavaValue, seen: set[int]) -> list[tuple[str, int]]:
    """Those that a KafkaUnboundedSource is to read: ``spec.topicPartitions``, a list of Java's."""
    named = _class_name(source)
    if not isinstance(source, JavaObject) or named != _KAFKA:
        _fail(f"an Apache Beam pipeline's source, {named}: no KafkaIO")
    _once(source, seen)
    spec = source.fields.get("spec")
    held = spec.fields.get("topicPartitions") if isinstance(spec, JavaObject) else None
    listed = []
    for one in _written(held, _LIST, seen):
        topic = one.fields.get("topic") if isinstance(one, JavaObject) else None
        partition = one.fields.get("partition") if isinstance(one, JavaObject) else None
        if not isinstance(topic, str) or not is_legal_topic(topic):
            _fail(f"a Beam KafkaIO lists no legal topic name: {topic!r}")
        if not isinstance(partition, int) or not 0 <= partition < _MOST_PARTITIONS:
            _fail(f"a Beam KafkaIO lists no partition's number: {partition!r}")
        listed.append((topic, partition))
    if not listed:
        _fail("a Beam KafkaIO that lists no partitions")
    return listed


def _read_marks(cursor: Cursor, fields: tuple[str, ...]) -> list[BeamMark]:
    marks = []
    while count := read_signed_varint(cursor, "partitions", _LONG):
        if count < 0:
            count = -count
            read_signed_varint(cursor, "bytes of a block", _LONG)
        if count > cursor.remaining // len(fields):
            cursor.fail(f"{count} partitions cannot fit into the bytes left", "partitions")
        marks += [_read_mark(cursor, fields) for _ in range(count)]
    cursor.finish("KafkaCheckpointMark")
    return marks


def _read_mark(cursor: Cursor, fields: tuple[str, ...]) -> BeamMark:
    found: dict[str, int] = {}
    topic = ""
    for field in fields:
        value = read_signed_varint(cursor, field, _LONG)
        if field == _TOPIC:
            if value < 0:
                cursor.fail(f"a length cannot be negative: {value}", field)
            topic = cursor.raw(value, field).decode("ascii", "replace")
            check_topic(cursor, topic)
        else:
            found[field] = value
    next_offset, partition = found["nextOffset"], found["partition"]
    if next_offset < _NOT_STARTED:
        cursor.fail(f"not an offset: {next_offset}", "nextOffset")
    start = NOT_SET if next_offset == _NOT_STARTED else next_offset
    return BeamMark(topic, partition, start, found["watermarkMillis"])
