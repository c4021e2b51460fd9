"""Errors report the invalid field and its first byte.

Each case takes input that its reader accepts, replaces a field with a value that Flink never
writes, and derives the expected byte from the position of the replaced value.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack
from typing import NamedTuple

import pytest

from decoder import DecodeError, ErrorKind
from decoder.cursor import Cursor
from decoder.kafka.dynamic import read_dynamic_split
from decoder.kafka.enumerator import open_coordinator_state, read_enumerator
from decoder.kafka.hybrid import read_hybrid_enumerator, read_hybrid_split
from decoder.kafka.legacy import read_ascii_string, read_legacy_element
from decoder.kafka.sink import read_committer_state, read_writer_state
from decoder.kafka.split import NOT_SET, read_split
from decoder.metadata.java_stream import read_object_stream
from decoder.metadata.layout import MASTER_STATE_MAGIC
from decoder.metadata.parse import parse_metadata
from decoder.operator_state.stream import ByteArrays, Excerpt
from decoder.snappy import next_chunk
from tests.support.encoder import (
    LEGACY_NOT_SET,
    Committable,
    EnumeratorSplit,
    KafkaSplit,
    encode_committer_element,
    encode_coordinator,
    encode_dynamic_split,
    encode_enumerator,
    encode_file_writer_element,
    encode_hybrid_enumerator,
    encode_hybrid_split,
    encode_legacy_element,
    encode_split,
    encode_writer_element,
)
from tests.support.hostile import (
    chunk,
    inline,
    java_class,
    java_object,
    metadata,
    operator,
    reader_state,
    subtask,
    utf,
)

Read = Callable[[bytes], object]


class Case(NamedTuple):
    """Input that is readable until the bytes ``old`` are replaced with ``new``.

    The field starts ``at`` bytes after ``old``, and ``kind`` is the kind of the error.
    """

    read: Read
    healthy: bytes
    old: bytes
    new: bytes
    told: str
    at: int = 0
    kind: ErrorKind = ErrorKind.CORRUPT


UNSUPPORTED, TRUNCATED = ErrorKind.UNSUPPORTED, ErrorKind.TRUNCATED


def _with_cursor(read: Callable[[Cursor], object]) -> Read:
    return lambda data: read(Cursor(data, "bytes"))


def _committer(data: bytes) -> object:
    return read_committer_state(data, "bytes")


def _writer(data: bytes) -> object:
    return read_writer_state(data, "bytes")


_split = _with_cursor(lambda cursor: read_split(cursor, 0))
_dynamic_split = _with_cursor(lambda cursor: read_dynamic_split(cursor, 2))
_hybrid_split = _with_cursor(read_hybrid_split)
_hybrid_enumerator = _with_cursor(lambda cursor: read_hybrid_enumerator(cursor, 0))
_legacy = _with_cursor(lambda cursor: read_legacy_element(cursor, 0))
_text = _with_cursor(lambda cursor: read_ascii_string(cursor, "text"))
_java = _with_cursor(read_object_stream)
_chunk = _with_cursor(next_chunk)


def _enumerator(version: int) -> Read:
    return _with_cursor(lambda cursor: read_enumerator(cursor, version))


def _coordinator(data: bytes) -> object:
    return open_coordinator_state(data, "bytes")


def _metadata(data: bytes) -> object:
    return parse_metadata(data, "bytes")


def _elements(data: bytes) -> object:
    return list(ByteArrays(Excerpt(data, data), (5,), len(data), "bytes"))


# -- sinks ---------------------------------------------------------------------------------------

_PRODUCER = pack(">hq", 3, 77)
_COMMITTER = encode_committer_element("2.2", {5: {0: [Committable("pay-0-5", 77, 3)]}})
_DONE = utf("pay-0-5") + pack(">ii", 0, 0)  # retries, and the state of the request
_WRITER = encode_writer_element("prefix", 2, {"a-0-1": 9})
_FILES = encode_file_writer_element("b", "s3://b/path", None)

_SINKS = [
    Case(_committer, _COMMITTER, _PRODUCER, pack(">hq", -1, 77), "not a producer: 77, epoch -1"),
    Case(_committer, _COMMITTER, _PRODUCER, pack(">hq", 3, -1), "not a producer: -1, epoch 3"),
    Case(
        _committer,
        _COMMITTER,
        utf("pay-0-5"),
        utf("") + b"pay-0-5",
        "a transactional id cannot be empty",
    ),
    *(
        Case(
            _committer,
            _COMMITTER,
            _DONE,
            utf("pay-0-5") + pack(">ii", 0, state),
            f"unknown state of a request: {state}",
            len(_DONE) - 4,
        )
        for state in (-1, 4)
    ),
    Case(
        _committer, _COMMITTER, b"\xb9\x1f\x25\x2c", bytes(4), "committer state without its magic"
    ),
    Case(
        _committer,
        _COMMITTER,
        _COMMITTER[:4],
        pack(">i", 3),
        "committer state version 3 is not supported (supported: 1, 2)",
        0,
        UNSUPPORTED,
    ),
    Case(
        _writer,
        _WRITER,
        pack(">iii", 0, 1, 0),
        pack(">iii", 0, 1, 2),
        "unknown ownership: 2",
        8,
    ),
    Case(_writer, _FILES, b"\x1e\x76\x4b\x79", bytes(4), "bucket state without its magic"),
]

# -- splits --------------------------------------------------------------------------------------

_SPLIT = encode_split("orders", 3, 40, 90)
_DYNAMIC = encode_dynamic_split("east", KafkaSplit("orders", 3, 40), 2)
_HYBRID = encode_hybrid_split(1, "orders-3", _SPLIT)
_LEGACY = encode_legacy_element("orders", 1, 999)

_SPLITS = [
    Case(_split, _SPLIT, pack(">i", 3), pack(">i", -1), "a partition cannot be negative: -1"),
    *(
        Case(_split, _SPLIT, pack(">q", 40), pack(">q", start), f"or a marker: {start}")
        for start in (-4, NOT_SET + 1)
    ),
    *(
        Case(_split, _SPLIT, pack(">q", 90), pack(">q", stop), f"or a marker: {stop}")
        for stop in (-2, -4, NOT_SET + 1)
    ),
    Case(_dynamic_split, _DYNAMIC, utf("east"), utf(""), "a cluster's id cannot be empty"),
    Case(_dynamic_split, _DYNAMIC, b"east\0", b"east\2", "a boolean is 0 or 1, not 2", 4),
    Case(_hybrid_split, _HYBRID, pack(">i", 1), pack(">i", -1), "index cannot be negative: -1"),
    Case(_hybrid_split, _HYBRID, utf("orders-3"), utf(""), "a split's id cannot be empty"),
    Case(
        _hybrid_enumerator,
        encode_hybrid_enumerator(1, 3, b"xyz"),
        pack(">i", 1),
        pack(">i", -7),
        "index cannot be negative: -7",
    ),
    Case(_legacy, _LEGACY, _LEGACY[:2], b"\1\1", "not a registered class: 1"),
    Case(_legacy, _LEGACY, _LEGACY[:2], _LEGACY[:1] + b"\2", "a reference (2)", 1),
    *(
        Case(
            _legacy,
            _LEGACY,
            pack(">q", 999),
            pack(">q", offset),
            f"or a marker: {offset}",
        )
        for offset in (-2, 2**63 - 1, LEGACY_NOT_SET - 1, LEGACY_NOT_SET + 4)
    ),
    Case(_text, b"\x81", b"\x81", b"\x80", "a string is null"),
    Case(_text, b"\x84abc", b"\x84abc", b"\x84a\xc3c", "a string is not ASCII", 1),
]

# -- enumerators ---------------------------------------------------------------------------------

_ENTRIES = [EnumeratorSplit(KafkaSplit("orders", 3, 40), 0)]
_V2 = encode_enumerator(2, _ENTRIES)
_V3 = encode_enumerator(3, _ENTRIES)
_COORDINATOR = encode_coordinator(1, 3, _V3)

_ENUMERATORS = [
    *(
        Case(
            _enumerator(version),
            state,
            state[-5:],  # the status, and a flag for the first discovery
            pack(">ib", status, 1),
            f"unknown assignment status: {status}",
        )
        for version, state in ((2, _V2), (3, _V3))
        for status in (-1, 2)
    ),
    Case(_enumerator(3), _V3, _V3[-5:], pack(">ib", 0, 2), "a boolean is 0 or 1, not 2", 4),
    Case(
        _enumerator(3),
        _V3,
        _V3[:8],
        pack(">ii", 1, 1),
        "split version 1 is not supported (supported: 0)",
        4,
        UNSUPPORTED,
    ),
    Case(_enumerator(2), _V2, pack(">i", 3), pack(">i", -1), "a partition cannot be negative"),
    *(
        Case(
            _coordinator,
            _COORDINATOR,
            _COORDINATOR[:8],
            pack(">ii", version, 3),
            f"coordinator version {version} is not supported (supported: 0, 1)",
            0,
            UNSUPPORTED,
        )
        for version in (-1, 2)
    ),
]

# -- metadata ------------------------------------------------------------------------------------

_EMPTY = metadata([])
_HOOK = pack(">i", 0) + utf("hook") + pack(">i", 2) + b"xy"
_MASTER = _EMPTY[:16] + pack(">iii", 1, MASTER_STATE_MAGIC, len(_HOOK)) + _HOOK + _EMPTY[20:]
_ID = bytes(15) + b"\7"
_OPERATOR = metadata([operator([subtask()], number=7, max_parallelism=128)])
_AFTER_ID = _ID + pack(">ii", 1, 128)
_STATE = metadata([operator([subtask(managed=reader_state([5], inline(b"held")))], number=7)])
_LIST = b"SourceReaderState"
_FILE = metadata(
    [operator([subtask(managed=reader_state([5], b"\2" + pack(">q", 99) + utf("f")))], number=7)]
)
_SEGMENT = b"\x0f" + pack(">qqi", 11, 22, 1) + utf("uri") + utf("id")
_MERGED = metadata([operator([subtask(managed=reader_state([5], _SEGMENT))], number=7)])
_VERSION_2 = (
    pack(">iiqii", 0x4960672D, 2, 1, 0, 1)
    + _ID
    + pack(">iii", 1, 128, 1)  # parallelisms, and the length of a chain
    + pack(">i", 1)
    + pack(">iqi", 0, 88, 0)  # index and duration of a subtask, and legacy states
    + pack(">iibb", 0, 0, 0, 0)
)

_METADATA = [
    Case(
        _metadata,
        _EMPTY,
        _EMPTY[:4],
        b"PK\3\4",
        "not a Flink checkpoint, because its magic number is",
    ),
    *(
        Case(
            _metadata,
            _EMPTY,
            _EMPTY[:8],
            _EMPTY[:4] + pack(">i", version),
            f"metadata version {version} is not supported (supported: 2, 3, 4, 5, 6); {advice}",
            4,
            UNSUPPORTED,
        )
        for version, advice in (
            (7, "a newer Flink release wrote it; check for a newer release of migrate"),
            (1, "restore it in Flink 1.3 to 1.10 and take a new savepoint"),
        )
    ),
    Case(_metadata, _EMPTY, pack(">iq", 3, 1), pack(">iq", 3, -1), "id cannot be negative: -1", 4),
    Case(_metadata, _MASTER, pack(">i", MASTER_STATE_MAGIC), bytes(4), "a master state without"),
    Case(
        _metadata,
        _MASTER,
        pack(">i", 2) + b"xy",
        pack(">i", 1) + b"xy",
        "1 bytes are left over after the master state",
        5,
    ),
    *(
        Case(
            _metadata,
            _OPERATOR,
            _AFTER_ID,
            _ID + pack(">ii", *parallelisms),
            f"parallelism {parallelisms[0]} and max parallelism {parallelisms[1]} do not "
            "satisfy 1 <=",
            16,
        )
        for parallelisms in ((0, 128), (129, 128), (1, 32769))
    ),
    Case(
        _metadata,
        _OPERATOR,
        _AFTER_ID + b"\0" + pack(">i", 1),
        _AFTER_ID + b"\0" + pack(">i", 2),
        "2 subtasks at a parallelism of 1",
        25,
    ),
    Case(
        _metadata,
        metadata([operator([], inline(b"c"), number=7, count=0, max_parallelism=128)]),
        b"c" + pack(">i", 0),
        b"c" + pack(">i", -1),
        "a fully finished operator has no coordinator state",
        1,
    ),
    Case(
        _metadata, _VERSION_2, pack(">iq", 0, 88), pack(">iq", -1, 88), "index cannot be negative"
    ),
    Case(
        _metadata,
        _VERSION_2,
        pack(">qi", 88, 0),
        pack(">qi", 88, 1),
        "state of Flink 1.1 or older",
        8,
        UNSUPPORTED,
    ),
    Case(
        _metadata,
        _STATE,
        pack(">ibi", 1, 4, 1),
        pack(">ibi", 2, 4, 1),
        "the mark of a present state must be 0 or 1, not 2",
    ),
    Case(
        _metadata,
        _STATE,
        pack(">ibi", 1, 4, 1),
        pack(">ibi", 1, 18, 1),
        "unknown kind of operator state handle: 18",
        4,
        UNSUPPORTED,
    ),
    Case(_metadata, _STATE, _LIST + b"\0", _LIST + b"\3", "distribution mode: 3", len(_LIST)),
    Case(
        _metadata,
        _STATE,
        inline(b"held"),
        b"\x07" + inline(b"held")[1:],
        "unknown kind of stream state handle: 7",
        0,
        UNSUPPORTED,
    ),
    Case(_metadata, _FILE, pack(">q", 99), pack(">q", -2), "a size cannot be negative: -2"),
    *(
        Case(
            _metadata,
            _MERGED,
            pack(">qqi", 11, 22, 1),
            pack(">qqi", 11, 22, scope),
            f"unknown scope of a merged file: {scope}",
            16,
        )
        for scope in (-1, 2)
    ),
    Case(
        _metadata,
        _MERGED,
        pack(">qqi", 11, 22, 1),
        pack(">qqi", 11, -22, 1),
        "a size cannot be negative: -22",
        8,
    ),
]

# -- Java objects --------------------------------------------------------------------------------

_STRING = b"\x74" + utf("text")
_OBJECT = java_object(_STRING)
_ENUM = java_object(b"\x7e" + java_class("E") + b"\x74" + utf("NAME"))
_OF_NO_FIELDS = utf("A") + pack(">qBH", 1, 3, 0)

_JAVA = [
    Case(_java, _OBJECT, b"\xac\xed\0\5", b"\xac\xed\0\4", "not a Java object stream"),
    Case(
        _java,
        _OBJECT,
        _STRING,
        b"\x79" + utf("text"),
        "unexpected element 0x79 of an object stream",
        0,
        UNSUPPORTED,
    ),
    *(
        Case(
            _java,
            _OBJECT,
            _STRING,
            b"\x71" + pack(">i", 0x7E0000 + handle),
            "a reference to nothing",
            1,
        )
        for handle in (-1, 2)
    ),
    Case(
        _java,
        _OBJECT,
        _STRING,
        b"\x71" + pack(">i", 0x7E0000),
        "a reference to a class where an object belongs",
        1,
    ),
    Case(
        _java,
        _ENUM,
        b"\x7e" + java_class("E"),
        b"\x7e\x71" + pack(">i", 0x7E0001),
        "a reference to an object where a class belongs",
        2,
    ),
    Case(
        _java,
        _OBJECT,
        _OF_NO_FIELDS,
        utf("A") + pack(">qBh", 1, 3, -1),
        "a count cannot be negative: -1",
        len(_OF_NO_FIELDS) - 2,
    ),
]

# -- operator state ------------------------------------------------------------------------------

_STREAM = pack(">ib", 6, 0) + pack(">i", 3) + b"abc"

_STREAMS = [
    *(
        Case(
            _elements,
            _STREAM,
            _STREAM[:5],
            pack(">ib", version, 0),
            f"operator state version {version} is not supported (supported: 1, 2, 3, 4, 5, 6)",
            0,
            UNSUPPORTED,
        )
        for version in (0, 7)
    ),
    Case(_elements, _STREAM, _STREAM[:5], pack(">ib", 6, 2), "a boolean is 0 or 1, not 2", 4),
    Case(_chunk, chunk(b"abc"), chunk(b"abc")[:1], b"\x02", "unknown type of snappy chunk: 2"),
    Case(_chunk, chunk(b"abc"), chunk(b"abc")[:1], b"\x7f", "unknown type of snappy chunk: 127"),
]

_CASES = [*_SINKS, *_SPLITS, *_ENUMERATORS, *_METADATA, *_JAVA, *_STREAMS]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.told[:50])
def test_decode_error_reports_field_and_byte_of_damage(case: Case) -> None:
    case.read(case.healthy)
    place = case.healthy.index(case.old)
    damaged = case.healthy[:place] + case.new + case.healthy[place + len(case.old) :]
    with pytest.raises(DecodeError) as refused:
        case.read(damaged)
    assert case.told in refused.value.problem
    assert refused.value.byte_offset == place + case.at
    assert refused.value.kind is case.kind


@pytest.mark.parametrize(
    ("epoch", "producer", "state", "pending"),
    [(0, 0, 0, True), (0, 0, 1, True), (0, 0, 2, False), (0, 0, 3, False)],
)
def test_committable_of_producer_0_and_epoch_0_is_read(
    epoch: int, producer: int, state: int, pending: bool
) -> None:
    """Zero is a valid number for both. Committables in states 2 and 3 are no longer pending."""
    held = [Committable("pay-0-5", producer, epoch, state)]
    found = read_committer_state(encode_committer_element("2.2", {5: {0: held}}), "c")
    assert bool(found) == pending


def test_varint_over_32_bits_is_refused() -> None:
    assert Cursor(b"\xff\xff\xff\xff\x0f", "bytes").varint("number") == 2**32 - 1
    ends_late = b"\x80\x80\x80\x80\x80\0"
    for endless in (b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x80\x01", ends_late):
        with pytest.raises(DecodeError, match="a varint is longer than 32 bits"):
            Cursor(endless, "bytes").varint("number")


def _fields(read: Read, whole: bytes) -> list[str]:
    """Return the fields that are reported if the bytes end early, in their order."""
    told: list[str] = []
    for end in range(len(whole)):
        with pytest.raises(DecodeError) as refused:
            read(whole[:end])
        error = refused.value
        assert error.field is not None
        if told[-1:] != [error.field]:
            told.append(error.field)
    return told


_BEFORE_OPERATORS = ["magic number", "metadata version", "checkpoint id", "master states"]


@pytest.mark.parametrize(
    ("read", "whole", "fields"),
    [
        (_split, _SPLIT, ["topic", "partition", "starting offset", "stopping offset"]),
        (
            _dynamic_split,
            _DYNAMIC,
            [
                *("cluster id", "retained", "split version"),
                *("topic", "partition", "starting offset", "stopping offset"),
            ],
        ),
        (
            _hybrid_split,
            _HYBRID,
            ["source index", "split id", "wrapped split version", "wrapped split"],
        ),
        (
            _legacy,
            _LEGACY,
            [
                *("class of a partition", "partition of a topic", "hash of a partition"),
                *("partition", "topic", "offset"),
            ],
        ),
        (_committer, _COMMITTER, ["committer state version", "length", "state"]),
        (_writer, _WRITER, ["writer state version", "length", "state"]),
        (_writer, _FILES, ["writer state version", "length", "state"]),
        (
            _coordinator,
            _COORDINATOR,
            [
                *("coordinator version", "enumerator version", "enumerator length"),
                "enumerator state",
            ],
        ),
        (
            _enumerator(2),
            _V2,
            ["partitions", "partition", "assignment status", "initial discovery finished"],
        ),
        (
            _enumerator(3),
            _V3,
            [
                *("partitions", "split version", "splits", "split", "assignment status"),
                "initial discovery finished",
            ],
        ),
        (_metadata, _MASTER, [*_BEFORE_OPERATORS, "master state", "operators"]),
        (_elements, _STREAM, ["operator state version", "compressed", "element"]),
        (_java, _OBJECT, ["Java object"]),
        (_java, _ENUM, ["Java object"]),
    ],
)
def test_error_for_truncated_bytes_reports_missing_field(
    read: Read, whole: bytes, fields: list[str]
) -> None:
    """The bytes are cut off at each position in turn.

    The fields follow the order of docs/format.md.
    """
    assert _fields(read, whole) == fields


_IN_STATE = [
    *("present", "type", "number of states", "state name", "mode of 'SourceReaderState'"),
    *("offsets of 'SourceReaderState'", "type"),
]


@pytest.mark.parametrize(
    ("whole", "stream"),
    [
        (_STATE, ["name", "bytes"]),
        (_FILE, ["size", "URI"]),
        (
            _MERGED,
            ["segment start", "segment size", "segment scope", "URI", "logical file id"],
        ),
    ],
)
def test_error_for_truncated_metadata_reports_operator_subtask_and_field(
    whole: bytes, stream: list[str]
) -> None:
    subtask_0 = f"operator {_ID.hex()} subtask 0 "
    managed = [f"{subtask_0}managed operator state {field}" for field in (*_IN_STATE, *stream)]
    assert _fields(_metadata, whole) == [
        *_BEFORE_OPERATORS,
        "operators",
        f"operator {_ID.hex()} subtask index",
        *managed,
        f"{subtask_0}raw operator state present",
        f"{subtask_0}managed keyed state type",
        f"{subtask_0}raw keyed state type",
        f"{subtask_0}input channel state handles",
        f"{subtask_0}result subpartition state handles",
    ]


def test_long_decode_error_is_shortened_in_the_middle() -> None:
    """The start and the end of the text carry the most information."""
    whole = "a" * 2000 + "b" * 2000
    assert str(DecodeError(ErrorKind.CORRUPT, whole)) == whole
    error = DecodeError(ErrorKind.CORRUPT, "a" * 3000 + "b" * 2001, field="f" * 4001, file="x")
    shortened = "a" * 2000 + "[1001 more characters]" + "b" * 2000
    field = "f" * 2000 + "[1 more characters]" + "f" * 2000
    assert (error.problem, error.field) == (shortened, field)
    assert str(error) == f"x: {shortened} ({field})"
    assert str(DecodeError(ErrorKind.CORRUPT, "p", byte_offset=0)) == "p (at byte 0)"
    assert str(DecodeError(ErrorKind.CORRUPT, "p", field="f", byte_offset=7)) == "p (f, at byte 7)"
