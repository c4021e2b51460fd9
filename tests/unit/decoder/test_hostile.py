"""Refuse hostile bytes with a reason, in memory and time bounded by the input.

A separate process measures the cost of each attack (tests/support/hostile.py).
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from decoder import (
    CheckpointKind,
    DecodeError,
    DynamicKafkaSource,
    ErrorKind,
    checkpoint,
    read_checkpoint,
)
from decoder.checkpoint import MAX_METADATA_BYTES
from decoder.cursor import Cursor
from decoder.kafka.enumerator import read_enumerator
from decoder.kafka.legacy import read_ascii_string
from decoder.metadata.java_stream import JavaObject, read_object_stream
from decoder.metadata.layout import LAYOUTS
from decoder.metadata.parse import parse_metadata
from decoder.operator_state.stream import MAX_DECOMPRESSED_BYTES
from decoder.state_files import MAX_STATE_BYTES
from migrate.inputs.flink.extract import extract
from migrate.model.finding import Severity
from tests.fuzz.corpus import seeds
from tests.fuzz.targets import TARGETS
from tests.golden.test_all_handles import ENTRIES, SYNTHETIC
from tests.support import hostile
from tests.support.hostile import (
    LARGEST_COUNT,
    LARGEST_OFFSET,
    MB,
    in_file,
    inline,
    java_class,
    java_object,
    measure,
    metadata,
    operator,
    reader_state,
    source,
    split,
    state_stream,
    subtask,
    utf,
    write_attack,
)

# Memory for the caches and buffers of Python and `migrate`, in addition to the input.
_FLOOR_BYTES = 8 * MB
# Far above the measured time (one or two seconds per MB), and far below that of a quadratic reader.
_SECONDS = 15

_SHARED = "shares bytes with another handle's"

# For each attack: the limit of the memory, as a multiple of the input, and the message of the
# refusal. The message is None if the input is decoded because it may be valid.
_QUICK = {
    "offsets outside the stream": (10, "operator state version"),
    "offsets all at one place": (6, "after one that ends at byte"),
    "nested hybrid enumerators": (1, None),
    "snappy bomb": (3, f"the limit is {MAX_DECOMPRESSED_BYTES} bytes"),
    "snappy bomb of many elements": (4, None),
    "snappy chunk with a wrong size": (1, "unsupported chunk length"),
    "one file of many readers": (3, _SHARED),
    "one file under many names": (3, _SHARED),
    "sparse zeros": (0, "not a Flink checkpoint"),
    "sparse state": (0, None),
}
_SLOW = {
    "finished subtasks": (20, None),
    "empty subtasks": (16, None),
    "operators": (16, None),
    "named states": (30, None),
    "null handles of a changelog": (3, None),
    "null files of an incremental snapshot": (3, None),
    "channel states": (3, None),
    "java objects": (30, None),
    "java objects of a class with many fields": (40, None),
    "java objects of a class with many ancestors": (30, None),
    "splits": (20, None),
    "one split many times": (10, None),
    "enumerator of many partitions": (64, None),
    "dynamic enumerator of many clusters": (50, None),
    "snappy chunks of one byte": (4, None),
    "snappy padding": (4, "snappy chunk"),
    "sparse state of unknown size": (1, None),
    "sparse metadata beyond the limit": (1, f"larger than {MAX_METADATA_BYTES} bytes"),
}


def test_every_hostile_checkpoint_is_tested_with_resource_limits() -> None:
    """The tables above contain every attack of tests/support/hostile.py."""
    assert _QUICK.keys() | _SLOW.keys() == hostile.METADATA_ATTACKS.keys() | (
        hostile.FILE_ATTACKS.keys()
    )


@pytest.mark.parametrize(
    "name", [*_QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in _SLOW)]
)
def test_hostile_checkpoint_is_read_or_refused_within_resource_limits(
    name: str, tmp_path: Path
) -> None:
    multiple, refusal = {**_QUICK, **_SLOW}[name]
    directory = tmp_path / "chk-1"
    directory.mkdir()
    write_attack(name, directory)
    size = sum(file.stat().st_size for file in directory.iterdir())
    measured = measure(directory)
    if refusal is None:
        assert measured.refused is None
    else:
        assert measured.refused is not None
        assert refusal in measured.refused
    assert measured.peak_bytes < _FLOOR_BYTES + multiple * size
    assert measured.read_bytes < _FLOOR_BYTES + 3 * size
    assert measured.seconds < _SECONDS


# -- counts and lengths --------------------------------------------------------------------------


@pytest.mark.parametrize("step", [397, pytest.param(13, marks=pytest.mark.slow)])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["path"].split("/")[0])
def test_extreme_counts_in_metadata_are_refused_in_bounded_memory(
    entry: dict[str, str], step: int
) -> None:
    """The test writes extreme counts at many places in files with every kind of handle."""
    whole = (SYNTHETIC / entry["path"]).read_bytes()
    refused = 0
    tracemalloc.start()
    try:
        for place in range(8, len(whole) - 4, step):
            for value in (LARGEST_COUNT, -LARGEST_COUNT - 1, -1):
                damaged = whole[:place] + pack(">i", value) + whole[place + 4 :]
                try:
                    parse_metadata(damaged, "_metadata")
                except DecodeError:
                    refused += 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused
    assert peak < 2 * MB


@pytest.mark.parametrize("version", sorted(LAYOUTS))
@pytest.mark.parametrize("count", [LARGEST_COUNT, LARGEST_COUNT // 4, -1, -LARGEST_COUNT - 1])
def test_impossible_operator_count_is_refused(version: int, count: int) -> None:
    header = metadata([], version)[:-4] + pack(">i", count)
    with pytest.raises(DecodeError, match=r"cannot (be negative|fit into)"):
        parse_metadata(header, "_metadata")


@pytest.mark.parametrize(
    ("count", "fits"), [(2, True), (3, False), (LARGEST_COUNT, False), (0, True)]
)
def test_count_is_checked_against_remaining_bytes(count: int, fits: bool) -> None:
    """The bytes before the count do not matter."""
    cursor = Cursor(bytes(100) + pack(">i", count) + bytes(17), "file", start=100)
    if fits:
        assert cursor.count("items", 8) == count
        return
    with pytest.raises(DecodeError, match="cannot fit into the 17 bytes left") as refused:
        cursor.count("items", 8)
    assert (refused.value.kind, refused.value.byte_offset) == (ErrorKind.TRUNCATED, 100)


def test_max_parallelism_over_flink_limit_is_refused() -> None:
    with pytest.raises(DecodeError, match="max parallelism <= 32768"):
        parse_metadata(metadata([operator([], max_parallelism=32769)]), "_metadata")


def test_subtask_count_over_parallelism_is_refused() -> None:
    with pytest.raises(DecodeError, match=f"{LARGEST_COUNT} subtasks at a parallelism of 1"):
        parse_metadata(metadata([operator([], count=LARGEST_COUNT)]), "_metadata")


@pytest.mark.parametrize("kind", [4, 17])
def test_operator_state_without_stream_is_refused(kind: int) -> None:
    """A null handle replaces the stream. Flink never writes such a handle."""
    merged = utf("owned") + utf("shared") + b"\0" if kind == 17 else b""
    managed = pack(">ibi", 1, kind, 0) + merged + b"\0"
    with pytest.raises(DecodeError, match="operator state without a stream") as refused:
        parse_metadata(metadata([operator([subtask(managed=managed)])]), "_metadata")
    assert refused.value.kind is ErrorKind.CORRUPT


@pytest.mark.parametrize("tag", [0x74, 0x7D, 0])  # a string, a proxy class, an unknown tag
def test_unexpected_java_class_descriptor_is_refused(tag: int) -> None:
    data = b"\xac\xed\0\x05\x73" + bytes([tag]) + bytes(20)
    with pytest.raises(DecodeError, match=f"unexpected class descriptor 0x{tag:02x}") as refused:
        read_object_stream(Cursor(data, "properties"))
    assert (refused.value.kind, refused.value.byte_offset) == (ErrorKind.UNSUPPORTED, 5)


def test_metadata_file_is_limited_in_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test lowers the limit. The slow test above covers the real limit."""
    data = metadata([operator([], inline(bytes(100_000)))])
    (tmp_path / "_metadata").write_bytes(data)
    monkeypatch.setattr(checkpoint, "MAX_METADATA_BYTES", len(data))
    read_checkpoint(tmp_path)
    monkeypatch.setattr(checkpoint, "MAX_METADATA_BYTES", len(data) - 1)
    with pytest.raises(DecodeError, match=f"larger than {len(data) - 1} bytes") as refused:
        read_checkpoint(tmp_path)
    assert refused.value.kind is ErrorKind.UNSUPPORTED


@pytest.mark.parametrize(
    ("read", "wanted"),
    [
        (Cursor.u8, 1),
        (Cursor.peek, 1),
        (Cursor.boolean, 1),
        (Cursor.i16, 2),
        (Cursor.i32, 4),
        (Cursor.count, 4),
        (Cursor.i64, 8),
        (Cursor.size, 8),
    ],
)
def test_error_for_truncated_number_reports_expected_and_remaining_bytes(
    read: Callable[[Cursor, str], int], wanted: int
) -> None:
    cursor = Cursor(b"\0" * (2 + wanted), "file", 3)
    with pytest.raises(DecodeError, match=f": {wanted} expected, {wanted - 1} left") as refused:
        read(cursor, "n")
    assert (refused.value.kind, refused.value.byte_offset) == (ErrorKind.TRUNCATED, 3)


def test_coordinator_state_in_file_is_refused() -> None:
    """Flink writes this state into the metadata and rejects any other location."""
    with pytest.raises(DecodeError, match="coordinator state is not in the metadata"):
        parse_metadata(metadata([operator([], in_file("state", 5))]), "_metadata")


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("count", [LARGEST_COUNT, -1])
def test_impossible_partition_count_is_refused(version: int, count: int) -> None:
    with pytest.raises(DecodeError, match=r"cannot (be negative|fit into)"):
        read_enumerator(Cursor(pack(">ii", count, 0) + bytes(100), "state"), version)


@pytest.mark.parametrize(
    ("start", "size", "offset"),
    [
        (1 << 62, 1 << 62, 1 << 62),
        (LARGEST_OFFSET, 100, 1 << 62),
        (0, LARGEST_OFFSET, LARGEST_OFFSET - 5),
        (0, 10, 1 << 62),
    ],
)
def test_impossible_file_segment_is_refused(
    tmp_path: Path, start: int, size: int, offset: int
) -> None:
    stream, _ = state_stream([split(0)])
    (tmp_path / "f").write_bytes(stream)
    segment = b"\x0f" + pack(">qqi", start, size, 0) + utf(f"file:{tmp_path}/f") + utf("logical")
    reader = subtask(managed=reader_state([offset], segment))
    with pytest.raises(
        DecodeError, match=r"bytes expected from byte .* 0 found|after one that ends"
    ):
        read_checkpoint(_write(tmp_path, metadata([operator([reader])])))


# -- nesting -------------------------------------------------------------------------------------

_DEEP = 5000


def _nested_changelogs(deep: int) -> bytes:
    open_, close = pack(">biiqi", 8, 0, 1, 0, 1), pack(">iq", 0, 0) + utf("id")
    return metadata([operator([subtask(keyed=open_ * deep + b"\0" + close * deep)])])


def _nested_key_groups(deep: int) -> bytes:
    handles = pack(">bii", 3, 0, 0) * deep + b"\x10"
    return metadata([operator([subtask(managed=reader_state([], handles))])])


def _nested_objects(deep: int) -> bytes:
    """Return nested sets (SerialDOS). In Java, the time to read them doubles with each level."""
    sets = (b"\x73" + java_class("java.util.HashSet", 3)) * deep + b"\x78" * deep
    return metadata([], 4, java_object(sets))


def _nested_classes(deep: int) -> bytes:
    described = b"\x72" + utf("A") + pack(">qBH", 1, 2, 0) + b"\x78"
    return metadata([], 4, b"\xac\xed\0\x05\x73" + described * deep + b"\x70")


def _nested_fields(deep: int) -> bytes:
    """Return an object in place of a field's class name. Its class also has such a field."""
    described = b"\x73\x72" + utf("A") + pack(">qBH", 1, 2, 1) + b"L" + utf("a")
    return metadata([], 4, b"\xac\xed\0\x05" + described * deep)


@pytest.mark.parametrize(
    ("nested", "deepest", "refusal"),
    [
        (_nested_changelogs, 8, "handles nested more than 8 deep"),
        (_nested_key_groups, 8, "handles nested more than 8 deep"),
        # The enclosing object, the class of the sets, and its missing parent also count.
        (_nested_objects, 62, "(objects|classes) nested more than 64 deep"),
        (_nested_classes, 17, "(classes nested more than 64 deep|more than 16 ancestors)"),
    ],
    ids=["changelogs", "key groups", "objects", "classes"],
)
def test_excessive_nesting_in_metadata_is_refused(
    nested: Callable[[int], bytes], deepest: int, refusal: str
) -> None:
    parse_metadata(nested(deepest), "_metadata")
    for deeper in (deepest + 1, _DEEP):
        with pytest.raises(DecodeError, match=refusal) as refused:
            parse_metadata(nested(deeper), "_metadata")
        assert refused.value.kind is ErrorKind.CORRUPT


def test_objects_in_place_of_class_names_are_refused_if_nested_too_deeply() -> None:
    with pytest.raises(DecodeError, match="nested more than 64 deep"):
        parse_metadata(_nested_fields(_DEEP), "_metadata")


# -- text encoding -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoded",
    [
        b"\xc1\x81",  # overlong A in two bytes
        b"\xc0\xaf",  # overlong slash in two bytes
        b"\xe0\x80\xaf",  # overlong slash in three bytes
        b"\xe0\x80\x80",  # overlong NUL in three bytes
        b"\xf0\x9f\x98\x80",  # plain UTF-8 beyond U+FFFF
        b"\xc3",  # cut off
        b"\xed\xa0",
        b"\x80",  # continuation byte without a start byte
        b"\xff",
        b"\xe1\xc0\x80\x80",  # the two bytes of NUL inside another character
    ],
)
def test_malformed_modified_utf8_is_refused(encoded: bytes) -> None:
    with pytest.raises(DecodeError, match="not modified UTF-8"):
        Cursor(utf(b"a" + encoded), "file").utf("text")


def test_java_modified_utf8_is_read() -> None:
    encoded = utf(b"a\xc0\x80\xed\xa0\xbd\xed\xb8\x80\xed\xa0\xbd")
    assert Cursor(encoded, "file").utf("text") == "a\0\N{GRINNING FACE}\ufffd"


def test_kryo_string_without_end_is_refused() -> None:
    with pytest.raises(DecodeError, match="more than 63 characters"):
        read_ascii_string(Cursor(b"a" * MB, "element"), "topic")


def test_long_names_in_error_messages_are_shortened() -> None:
    # Each of these characters is quoted as `\x80`.
    topic = "\x80" * 30000
    with pytest.raises(DecodeError) as refused:
        TARGETS["split"].parse(utf(topic) + bytes(20))
    assert "not a legal topic name" in str(refused.value)
    assert "more characters" in str(refused.value)
    assert len(str(refused.value)) < 5000


# -- duplicates ----------------------------------------------------------------------------------


def _write(directory: Path, data: bytes) -> Path:
    (directory / "_metadata").write_bytes(data)
    return directory


def test_duplicate_subtask_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="its subtasks are not distinct"):
        read_checkpoint(_write(tmp_path, metadata([operator([subtask(0), subtask(0)])])))


def test_partition_with_several_splits_blocks_move(tmp_path: Path) -> None:
    data = source(split(0, offset) for offset in range(1000))
    extraction = extract(read_checkpoint(_write(tmp_path, data)))
    (position,) = extraction.sources[0].positions
    assert (
        position.reason
        == "reader state contains the partition 1000 times, with starts from 0 to 999"
    )
    assert position.start is None
    assert any(finding.severity is Severity.BLOCKER for finding in extraction.findings)


def test_overlapping_state_elements_are_refused(tmp_path: Path) -> None:
    stream, (place,) = state_stream([split(0)])
    readers = [subtask(managed=reader_state([place, place], inline(stream)))]
    with pytest.raises(DecodeError, match="after one that ends at byte"):
        read_checkpoint(_write(tmp_path, metadata([operator(readers)])))


# -- objects that only Java constructs -----------------------------------------------------------

_STRING = b"\x74" + utf("Ljava/lang/String;")


def _url_lookup() -> bytes:
    """Return URLDNS, a well-known gadget. Java resolves the host when it reads this map."""
    names = ("authority", "file", "host", "protocol", "ref")
    url_fields = [b"I" + utf("hashCode"), b"I" + utf("port")] + [
        b"L" + utf(name) + _STRING for name in names
    ]
    texts = b"".join(b"\x74" + utf(text) for text in ("", "", "gadget.invalid", "http", ""))
    url = b"\x73" + java_class("java.net.URL", fields=url_fields) + pack(">ii", -1, -1) + texts
    map_fields = [b"F" + utf("loadFactor"), b"I" + utf("threshold")]
    head = b"\x73" + java_class("java.util.HashMap", 3, map_fields) + pack(">fi", 0.75, 12)
    entries = b"\x77\x08" + pack(">ii", 16, 1) + url + b"\x74" + utf("value") + b"\x78"
    return b"\xac\xed\0\x05" + head + entries


# Python cannot remove an audit hook, so the hook records events only while a test sets this list.
_EVENTS: list[str] | None = None


def _watch(event: str, _: object) -> None:
    if _EVENTS is not None:
        _EVENTS.append(event)


def test_deserialization_gadget_is_parsed_without_side_effects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gadget = _url_lookup()
    initializer = b"\1" + pack(">i", len(gadget)) + gadget
    cluster = utf("c") + pack(">i", 1) + utf("t") + utf("broker:9092") + initializer * 2
    streams = pack(">i", 1) + utf("stream") + pack(">i", 1) + cluster
    known = pack(">i", 1) + utf("t") + pack(">i", 0)
    enumerator = streams + pack(">ii", 1, 1) + utf("c") + pack(">i", len(known)) + known
    held = pack(">iii", 1, 2, len(enumerator)) + enumerator
    data = metadata([operator([], inline(held))], 4, gadget)

    sys.addaudithook(_watch)
    watched: list[str] = []
    monkeypatch.setattr(sys.modules[__name__], "_EVENTS", watched)
    walked = read_object_stream(Cursor(gadget, "properties"))
    parsed = parse_metadata(data, "_metadata")
    recognised = TARGETS["recognise"].parse(b"\0" + held)
    monkeypatch.undo()

    # Python reports every import, file, process, socket, and compilation to the hook.
    assert watched == []
    assert isinstance(walked, JavaObject)
    assert walked.class_name == "java.util.HashMap"
    assert parsed.type.kind is CheckpointKind.UNKNOWN
    assert isinstance(recognised, DynamicKafkaSource)


# -- valid input is accepted ---------------------------------------------------------------------


@pytest.mark.parametrize("kafka", [False, True])
def test_oversized_reader_state_blocks_move_if_other_subtask_reads_kafka(
    tmp_path: Path, kafka: bool
) -> None:
    """Otherwise, the operator may be a different kind of source, and the finding is a warning.

    In both cases, a second source in the checkpoint remains readable.
    """
    stream, places = state_stream([split(0)])
    large = subtask(int(kafka), managed=reader_state([5], in_file("large", MAX_STATE_BYTES + 1)))
    small = subtask(0, managed=reader_state(places, inline(stream)))
    other = subtask(managed=reader_state(places, inline(stream)))
    operators = [operator([small, large] if kafka else [large]), operator([other], number=2)]
    extraction = extract(read_checkpoint(_write(tmp_path, metadata(operators))))
    assert [source.operator_id[-1] for source in extraction.sources] == ["2"]
    (finding,) = [one for one in extraction.findings if one.operator_id == f"{1:032}"]
    assert finding.code == ("damaged-source" if kafka else "another-source-kind")
    assert finding.severity is (Severity.BLOCKER if kafka else Severity.WARNING)
    assert f"is larger than {MAX_STATE_BYTES} bytes" in finding.message


@pytest.mark.slow
@pytest.mark.parametrize("name", [target.name for target in TARGETS.values() if target.whole])
def test_every_format_is_read_exactly_to_its_last_byte(name: str) -> None:
    """In every format, an additional or a missing byte is refused."""
    parse = TARGETS[name].parse
    healthy = 0
    for seed in seeds()[name]:
        try:
            parse(seed)
        except DecodeError:
            continue  # belongs to a different source or version
        healthy += 1
        for damaged in (seed + b"\0", seed[:-1]):
            with pytest.raises(DecodeError):
                parse(damaged)
    assert healthy
