"""List the fuzz targets, one for each parser of the decoder.

A target takes any bytes, and either returns or raises DecodeError. Any other exception is a
finding. If a parser needs more than the payload, such as a version or the offsets of elements, the
first fuzzed bytes contain these values, and the docstring of the target's function describes their
layout. The length of a whole payload is not fuzzed, because it would no longer match after a
mutation that changes the size. The functions here write this length instead.
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
        name: the name for ``--target``, with which the file names of saved crashes also start.
        parse: the function that decodes the bytes; it must raise no error except DecodeError.
        share: the target's share of the executions, relative to the other targets' shares.
        max_bytes: the maximum size of an input.
        whole: True if a valid input with one byte more or less is refused.
    """

    name: str
    parse: Callable[[bytes], object]
    share: int
    max_bytes: int
    whole: bool = True


def _metadata(data: bytes) -> object:
    return parse_metadata(data, "_metadata")


def _checkpoint(data: bytes) -> object:
    """Decode a checkpoint and extract its positions, as every command does."""
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
    """Read ``u8 n``, ``n`` offsets of elements (``u16``), and the stream."""
    offsets, stream = _offsets_and_stream(data)
    return _elements(offsets, InlineState("state", stream))


def _unsized_state(data: bytes) -> object:
    """Read the same input as ``_operator_state``, with elements that are stored without lengths."""
    offsets, stream = _offsets_and_stream(data)
    return _elements(offsets, InlineState("state", stream), sized=False)


def _state_file(data: bytes) -> object:
    """Read the same input as ``_operator_state``, with a stream in a file that is read in part."""
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
    # The second half of the offsets belongs to another state, so this state ends where they start.
    own, other = offsets[: len(offsets) // 2 + 1], offsets[len(offsets) // 2 + 1 :]
    state = NamedState("state", DistributionMode.SPLIT_DISTRIBUTE, own)
    beside = NamedState("other", DistributionMode.SPLIT_DISTRIBUTE, other)
    held = SubtaskState(0, OperatorStateHandle((state, beside), stream), state)
    files = StateFiles("/chk-1", MemoryFiles({"/chk-1/state": file}))
    return list(state_elements([held], files, "operator", sized=sized))


def _compressed_state(data: bytes) -> object:
    """Read chunks of ``u8 kind``, ``u8 length``, and data.

    The kind is 1 for padding, and any other value for compressed data. If the kind is neither 0 nor
    1, an element starts with the chunk. This function adds correct checksums, because mutations
    would almost never produce them. If the size of the input is even, the elements have lengths.
    """
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
    """Read the version of the split's serializer (``u8``), and the split."""
    split = data[1:]
    return read_reader_element(struct.pack(">ii", _version(data), len(split)) + split, "element")


def _enumerator(data: bytes) -> object:
    """Read the version of the enumerator's serializer (``u8``), and the enumerator."""
    return read_enumerator(Cursor(data, "enumerator", min(1, len(data))), _version(data))


def _dynamic_enumerator(data: bytes) -> object:
    """Read the same layout as ``_enumerator``, for a DynamicKafkaSource."""
    cursor = Cursor(data, "enumerator", min(1, len(data)))
    return read_dynamic_enumerator(cursor, _version(data))


def _hybrid_enumerator(data: bytes) -> object:
    """Read the same layout as ``_enumerator``, for a HybridSource."""
    return read_hybrid_enumerator(Cursor(data, "enumerator", min(1, len(data))), _version(data))


def _legacy_element(data: bytes) -> object:
    """Read a partition of a FlinkKafkaConsumer in Kryo's format, and its offset."""
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
    """Read ``u8 n``, ``n`` elements of reader state (each after its ``u16`` length), and the rest.

    The rest of the input, if any, is the coordinator's state.
    """
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
