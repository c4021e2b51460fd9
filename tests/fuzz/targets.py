"""What is fuzzed: one entry per parser of the decoder.

A target takes any bytes and returns, or raises DecodeError; whatever else leaves it is a finding.
Where a parser takes more than one value (a version beside the bytes, the offsets of elements), the
first fuzzed bytes stand for it: the comments say how. Lengths that only wrap a payload are written
here, not fuzzed, as a mutation that changes a payload's length would never get past them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import cramjam

from decoder import read_checkpoint
from decoder.cursor import Cursor
from decoder.kafka.beam import read_beam_element, read_beam_wrapper_element
from decoder.kafka.dynamic import read_dynamic_enumerator
from decoder.kafka.enumerator import read_enumerator
from decoder.kafka.hybrid import read_hybrid_enumerator
from decoder.kafka.legacy import read_legacy_element
from decoder.kafka.reader_state import read_reader_element
from decoder.kafka.sink import read_committer_state, read_writer_state
from decoder.kafka.source import recognise_source
from decoder.kafka.split import read_split
from decoder.metadata.model import (
    DistributionMode,
    InlineState,
    NamedState,
    OperatorStateHandle,
    RelativeFileState,
)
from decoder.metadata.parse import parse_metadata
from decoder.metadata.properties import read_checkpoint_type
from decoder.operator_state.fetch import SubtaskState, state_elements
from decoder.snappy import next_chunk
from decoder.state_files import StateFiles
from migrate.inputs.flink.extract import extract
from tests.fuzz.keyed import (
    fuzz_avro,
    fuzz_avro_schema,
    fuzz_handle,
    fuzz_head,
    fuzz_kernel,
    fuzz_kryo,
    fuzz_parts,
    fuzz_row,
    fuzz_stream,
)
from tests.support.memory_files import MemoryFiles

_SNAPPY_IDENTIFIER_BYTES = 10


@dataclass(frozen=True, slots=True)
class Target:
    """One parser.

    Attributes:
        name: as ``--target`` has it, and the first part of a kept crash's file name.
        parse: decodes the bytes; raises DecodeError and nothing else.
        share: its part of the executions of a run over all targets.
        max_bytes: the longest input that is tried.
        whole: a valid input ends where its bytes end: one byte more or less is refused.
    """

    name: str
    parse: Callable[[bytes], object]
    share: int
    max_bytes: int
    whole: bool = True


def _metadata(data: bytes) -> object:
    return parse_metadata(data, "_metadata")


def _checkpoint(data: bytes) -> object:
    """The way of every command: facade, recognition of sources, extraction of positions."""
    pointer = "/job/chk-1/_metadata"
    return extract(read_checkpoint(pointer, MemoryFiles({pointer: data})))


def _properties(data: bytes) -> object:
    cursor = Cursor(data, "properties")
    told = read_checkpoint_type(cursor)
    cursor.finish("properties")
    return told


def _utf(data: bytes) -> object:
    return Cursor(struct.pack(">H", len(data)) + data, "utf").utf("text")


def _operator_state(data: bytes) -> object:
    """``u8 n``, n x ``u16`` byte offset of an element, the stream."""
    offsets, stream = _offsets_and_stream(data)
    return _elements(offsets, InlineState("state", stream))


def _unsized_state(data: bytes) -> object:
    """As operator-state, of elements whose length is not written."""
    offsets, stream = _offsets_and_stream(data)
    return _elements(offsets, InlineState("state", stream), sized=False)


def _state_file(data: bytes) -> object:
    """As operator-state, the stream in a file of which only a part is read."""
    offsets, stream = _offsets_and_stream(data)
    return _elements(offsets, RelativeFileState("state", len(stream)), stream)


def _offsets_and_stream(data: bytes) -> tuple[tuple[int, ...], bytes]:
    count = min(data[0], len(data) // 2 - 1) if len(data) > 2 else 0
    return struct.unpack_from(f">{count}H", data, 1) if count else (), data[1 + 2 * count :]


def _elements(
    offsets: tuple[int, ...],
    stream: InlineState | RelativeFileState,
    file: bytes = b"",
    sized: bool = True,
) -> object:
    # Another state's elements may follow: it ends where they begin.
    own, other = offsets[: len(offsets) // 2 + 1], offsets[len(offsets) // 2 + 1 :]
    state = NamedState("state", DistributionMode.SPLIT_DISTRIBUTE, own)
    beside = NamedState("other", DistributionMode.SPLIT_DISTRIBUTE, other)
    held = SubtaskState(0, OperatorStateHandle((state, beside), stream), state)
    files = StateFiles("/chk-1", MemoryFiles({"/chk-1/state": file}))
    return list(state_elements([held], files, "operator", sized=sized))


def _compressed_state(data: bytes) -> object:
    """Chunks with right checksums, which mutation alone would not hit: ``u8 kind`` (0 compressed, 1
    padding, otherwise the start of an element as well), ``u8 length`` and the chunk's data."""
    stream = bytearray(b"\0\0\0\6\1")
    offsets = []
    position = 0
    while position + 2 <= len(data):
        kind, size = data[position], data[position + 1]
        content = data[position + 2 : position + 2 + size]
        position += 2 + size
        if kind == 1:
            stream += b"\xfe" + len(content).to_bytes(3, "little") + content
            continue
        if kind:
            offsets.append(len(stream))
        stream += bytes(cramjam.snappy.compress(content))[_SNAPPY_IDENTIFIER_BYTES:]
    return _elements(tuple(offsets), InlineState("state", bytes(stream)), sized=len(data) % 2 == 0)


def _snappy(data: bytes) -> object:
    cursor = Cursor(data, "chunks")
    chunks = []
    while cursor.remaining:
        chunks.append(next_chunk(cursor))
    return chunks


def _split(data: bytes) -> object:
    return read_split(Cursor(data, "split"), 0)


def _reader_element(data: bytes) -> object:
    """``u8`` version of the split's serializer, the split."""
    split = data[1:]
    return read_reader_element(struct.pack(">ii", _version(data), len(split)) + split, "element")


def _enumerator(data: bytes) -> object:
    """``u8`` version of the enumerator's serializer, the enumerator."""
    return read_enumerator(Cursor(data, "enumerator", min(1, len(data))), _version(data))


def _dynamic_enumerator(data: bytes) -> object:
    """As enumerator."""
    cursor = Cursor(data, "enumerator", min(1, len(data)))
    return read_dynamic_enumerator(cursor, _version(data))


def _hybrid_enumerator(data: bytes) -> object:
    """As enumerator."""
    return read_hybrid_enumerator(Cursor(data, "enumerator", min(1, len(data))), _version(data))


def _legacy_element(data: bytes) -> object:
    """Kryo's bytes of a FlinkKafkaConsumer's partition, and its offset."""
    return read_legacy_element(Cursor(data, "element"), 0)


def _beam_split(data: bytes) -> object:
    return read_beam_element(struct.pack(">ii", 0, len(data)) + data, "element")


def _beam_wrapped(data: bytes) -> object:
    return read_beam_wrapper_element(data, "element")


def _writer_state(data: bytes) -> object:
    return read_writer_state(data, "element")


def _committer_state(data: bytes) -> object:
    return read_committer_state(data, "element")


def _recognise(data: bytes) -> object:
    """``u8 n``, n x {``u16 length``, element of reader state}, the coordinator's state if any."""
    states = []
    position = 1
    for subtask in range(data[0] if data else 0):
        size = int.from_bytes(data[position : position + 2], "big")
        states.append((subtask, (data[position + 2 : position + 2 + size],)))
        position += 2 + size
    return recognise_source(states, data[position:] or None)


def _version(data: bytes) -> int:
    return data[0] if data else 0


TARGETS = {
    target.name: target
    for target in (
        Target("metadata", _metadata, 20, 6000),
        Target("checkpoint", _checkpoint, 10, 6000),
        Target("properties", _properties, 5, 1500),
        Target("utf", _utf, 2, 64, whole=False),
        Target("operator-state", _operator_state, 5, 800, whole=False),
        Target("unsized-state", _unsized_state, 3, 800, whole=False),
        Target("state-file", _state_file, 2, 800, whole=False),
        Target("compressed-state", _compressed_state, 4, 400, whole=False),
        Target("snappy", _snappy, 4, 400, whole=False),
        Target("split", _split, 5, 100),
        Target("reader-element", _reader_element, 8, 300),
        Target("enumerator", _enumerator, 8, 400),
        Target("dynamic-enumerator", _dynamic_enumerator, 5, 600),
        Target("hybrid-enumerator", _hybrid_enumerator, 2, 400),
        Target("legacy-element", _legacy_element, 5, 100),
        Target("beam-split", _beam_split, 3, 6000),
        Target("beam-wrapped", _beam_wrapped, 2, 6000),
        Target("writer-state", _writer_state, 2, 200),
        Target("committer-state", _committer_state, 5, 400),
        Target("recognise", _recognise, 5, 800, whole=False),
        Target("keyed-head", fuzz_head, 10, 6000, whole=False),
        Target("keyed-stream", fuzz_stream, 15, 6000, whole=False),
        Target("keyed-handle", fuzz_handle, 2, 800, whole=False),
        Target("keyed-parts", fuzz_parts, 5, 6000, whole=False),
        Target("keyed-kernel", fuzz_kernel, 10, 6000, whole=False),
        Target("binary-row", fuzz_row, 5, 800, whole=False),
        Target("avro", fuzz_avro, 4, 200, whole=False),
        Target("avro-schema", fuzz_avro_schema, 3, 800, whole=False),
        Target("kryo", fuzz_kryo, 5, 200, whole=False),
    )
}
