"""The states in one subtask's handle, in either of the two key-group layouts.

Canonical savepoints, and full RocksDB checkpoints before Flink 1.15, have key groups in canonical
format. Checkpoints and native savepoints of the heap backend have key groups in the heap backend's
own format, in which each key group starts with its number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Protocol

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.canonical import CanonicalReader, split_canonical_key_group
from decoder.keyed_state.entries import Entry, KeyGroupLayout, Readers
from decoder.keyed_state.heap import (
    blocked_reason,
    has_key_group,
    read_heap_batches,
    read_states,
    split_heap_key_group,
    strip_key_group,
)
from decoder.keyed_state.stream_head import Head
from decoder.keyed_state.streams import KeyGroupsStream, attributes_without
from decoder.snappy import decompress_blocks, decompress_stream

# The largest entry to read, in decompressed bytes.
_MAX_ENTRY_BYTES = 256 * 1024 * 1024
# The largest key group of the heap backend to read in one piece, in bytes. A larger key group is
# split. To split it, each of its entries must be read twice.
_MAX_WHOLE_BYTES = 32 * 1024 * 1024
# The sizes of the blocks in which key groups are read; the Snappy ratio is up to 21 to 1.
_BLOCK_BYTES = 16 * 1024 * 1024
_COMPRESSED_BLOCK_BYTES = 2 * 1024 * 1024
_HEAP_BLOCK_BYTES = 4 * 1024 * 1024
_END_OF_KEY_GROUP = b"\xff\xff"


class StateSource(Protocol):
    """The states in one handle."""

    @property
    def head(self) -> Head: ...

    @property
    def key_groups(self) -> range: ...

    @property
    def label(self) -> str:
        """The handle's name in error messages."""

    def batches(self, number: int, key_group: int) -> Iterator[list[Entry]]:
        """Yield the entries of the state ``number`` in one key group, in batches.

        Raises:
            DecodeError: a file is missing or cannot be read, or the bytes are corrupt.
        """

    @property
    def layout(self) -> KeyGroupLayout | None:
        """The layout of ``frames``; None if the source has no frames."""

    def frames(self, number: int, key_group: int) -> Iterator[bytes]:
        """Yield the decompressed bytes that ``batches`` reads, in frames.

        Each frame has the format of a complete key group. In the heap backend's layout, the key
        group's number at the start is omitted. A large key group is split into several frames.

        Raises:
            DecodeError: as in ``batches``.
        """

    def blocked_reasons(self) -> dict[int, str]:
        """Return the reasons that blocked states cannot be read, by state number.

        A state is blocked if it comes after an unreadable state.
        """

    def key_group_ranges(self, max_bytes: int) -> list[tuple[range, int]]:
        """Return (range, size in bytes) for ranges of key groups that can be read separately.

        The sizes are approximate. A range is at most ``max_bytes`` bytes long, unless it is a
        single key group or the handle cannot be divided. A range does not start or end with a key
        group that is empty according to the handle.
        """


@dataclass(frozen=True)
class KeyGroupsSource:
    """The states in a stream of key groups."""

    stream: KeyGroupsStream
    head: Head
    max_parallelism: int
    label: str

    @property
    def key_groups(self) -> range:
        return self.stream.key_groups

    @cached_property
    def canonical(self) -> bool:
        """True if the stream is in canonical format."""
        if self.stream.handle.savepoint:
            return True
        # Check the last key group first, because key group 0 can start with the same bytes in both
        # formats.
        for key_group in reversed(self.key_groups):
            beginning = next(self.stream.blocks(key_group, 4), None)
            if beginning:
                if beginning[:4] != key_group.to_bytes(4, "big"):
                    return True
                return key_group == 0 and self._is_canonical_key_group_0()
        return True

    def _is_canonical_key_group_0(self) -> bool:
        """Return whether a key group 0 that starts with four zero bytes is in canonical format.

        The method checks three properties of the canonical format: the next bytes are ``u16 state``
        and entries of ``i32 n, n bytes, i32 m, m bytes``; an entry whose key has its highest bit
        set is followed by another state or by the end (FFFF); and each key starts with the number
        of the key group. Bytes in the heap backend's own format lack at least one of these
        properties.
        """
        if self.head.compressed:
            return False  # in canonical format, compressed bytes do not start with zeros
        data = next(self.stream.blocks(0, _BLOCK_BYTES), b"")
        is_whole = len(data) < _BLOCK_BYTES
        number, position = data[:2], 2
        while number != _END_OF_KEY_GROUP:
            if int.from_bytes(number, "big") >= len(self.head.states) and self.head.error is None:
                return False
            key_end = position + 4 + int.from_bytes(data[position : position + 4], "big")
            end = key_end + 4 + int.from_bytes(data[key_end : key_end + 4], "big")
            if end > len(data):
                return not is_whole and position > 2  # the entry ends after this block
            first = data[position + 4 : position + 5]
            if key_end == position + 4 or first[0] & 0x7F:
                return False
            position = end
            if first[0] & 0x80:
                number, position = data[end : end + 2], end + 2
        return position == len(data) or not is_whole

    @cached_property
    def _readers(self) -> Sequence[Readers]:
        return [Readers(info, self.max_parallelism) for info in self.head.states]

    def batches(self, number: int, key_group: int) -> Iterator[list[Entry]]:
        label = f"{self.label} key group {key_group}"
        for data in self.frames(number, key_group):
            if self.canonical:
                reader = CanonicalReader(self._readers[number], number, self.max_parallelism)
                yield from reader.batches(data, key_group, label)
            else:
                yield from read_heap_batches(
                    self._readers, number, self.head.error, data, key_group, label
                )

    @property
    def layout(self) -> KeyGroupLayout:
        return KeyGroupLayout.CANONICAL if self.canonical else KeyGroupLayout.HEAP

    def frames(self, number: int, key_group: int) -> Iterator[bytes]:
        label = f"{self.label} key group {key_group}"
        if not self.canonical:
            yield from self._heap_frames(number, key_group, label)
            return
        blocks = self._blocks(key_group)
        if self.head.compressed:
            blocks = decompress_blocks(blocks, label)
        first, second = next(blocks, None), next(blocks, None)
        if second is None:
            if first:
                yield first
            return
        yield from split_canonical_key_group(
            chain((first or b"", second), blocks), _MAX_ENTRY_BYTES, label
        )

    def _blocks(self, key_group: int) -> Iterator[bytes]:
        size = _BLOCK_BYTES if self.canonical else _HEAP_BLOCK_BYTES
        if self.head.compressed:
            size = _COMPRESSED_BLOCK_BYTES
        return self.stream.blocks(key_group, size)

    def _heap_frames(self, number: int, key_group: int, label: str) -> Iterator[bytes]:
        """Yield the key group as one frame, or as several frames if it is large."""
        blocks = self._blocks(key_group)
        beginning = b""
        while not has_key_group(beginning) and (block := next(blocks, None)) is not None:
            beginning += block
        if not beginning:
            return
        blocks = chain((strip_key_group(beginning, key_group, label),), blocks)
        if self.head.compressed:
            blocks = decompress_blocks(blocks, label)
        read_blocks: deque[bytes] = deque()
        size = 0
        for block in blocks:
            read_blocks.append(block)
            size += len(block)
            if size > _MAX_WHOLE_BYTES:
                read_before = (read_blocks.popleft() for _ in range(len(read_blocks)))
                every_block = chain(read_before, blocks)
                yield from split_heap_key_group(
                    self._readers, every_block, number, key_group, _MAX_ENTRY_BYTES, label
                )
                return
        yield b"".join(read_blocks)

    def key_group_ranges(self, max_bytes: int) -> list[tuple[range, int]]:
        return self.stream.key_group_ranges(max_bytes)

    def __getstate__(self) -> dict[str, Any]:
        return attributes_without(self, "_readers")

    def blocked_reasons(self) -> dict[int, str]:
        """Return the reasons; see ``StateSource.blocked_reasons``.

        Finding the reasons requires parsing the key groups in the heap backend's format.
        """
        readable = self.head.error is None and all(s.reason is None for s in self.head.states)
        if readable or self.canonical:
            return {}
        reasons: dict[int, str] = {}
        for key_group in self.key_groups:
            label = f"{self.label} key group {key_group}"
            data = strip_key_group(self.stream.key_group(key_group), key_group, label)
            if self.head.compressed:
                data = decompress_stream(data, label, _MAX_ENTRY_BYTES)
            seen: list[int] = []
            last = 0
            try:
                for number, _ in read_states(
                    self._readers, data, key_group, label, None, self.head.error
                ):
                    last = number
                    if number not in seen:
                        seen.append(number)
            except DecodeError as error:
                if error.kind is not ErrorKind.UNSUPPORTED:
                    raise
                reason = blocked_reason(self.head.states[last].name, error.problem)
                for number in range(len(self.head.states)):
                    if number not in seen:
                        reasons.setdefault(number, reason)
                if all(self.head.states[number].reason is None for number in seen[:-1]):
                    break
        return reasons
