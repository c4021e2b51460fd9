"""A state in one subtask's handle: from the handle to its entries, whatever the layout.

Which layout a stream of key groups has: a savepoint's is canonical; a checkpoint's is the heap
backend's, unless an older RocksDB wrote it (before 1.15 its full checkpoints were canonical): each
key group of the heap backend begins with its number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Protocol

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.canonical import CanonicalReader, canonical_parts
from decoder.keyed_state.entries import Entry, KeyGroupLayout, Readers
from decoder.keyed_state.heap import (
    HeapReader,
    blocked_reason,
    has_key_group,
    heap_parts,
    strip_key_group,
    walk,
)
from decoder.keyed_state.stream_head import Head
from decoder.keyed_state.streams import KeyGroupsStream, without
from decoder.snappy import decompress_blocks, decompress_stream

# The most that one entry comes to, decompressed.
_MOST_AT_ONCE = 256 * 1024 * 1024
# A key group of the heap backend of more than this is read in parts: each entry twice.
_MOST_WHOLE = 32 * 1024 * 1024
# A canonical key group of more than this is read in parts, each of one such block; Snappy makes 21
# bytes of one at most.
_BLOCK_BYTES = 16 * 1024 * 1024
_COMPRESSED_BLOCK_BYTES = 2 * 1024 * 1024
_HEAP_BLOCK_BYTES = 4 * 1024 * 1024


class StateSource(Protocol):
    """The states of one handle."""

    @property
    def head(self) -> Head: ...

    @property
    def key_groups(self) -> range: ...

    @property
    def what(self) -> str:
        """Names it in errors."""

    def batches(self, number: int, key_group: int) -> Iterator[list[Entry]]:
        """The entries of the state of that number in one key group, some at a time.

        Raises:
            DecodeError: a file is not there, or what is there cannot be read.
        """

    @property
    def layout(self) -> KeyGroupLayout | None:
        """How ``frames`` are laid out; None: there are none."""

    def frames(self, number: int, key_group: int) -> Iterator[bytes]:
        """The bytes that ``batches`` reads, decompressed; those of the heap backend without the
        key group's number. Each is whole in itself.

        Raises:
            DecodeError: as for ``batches``.
        """

    def blocked(self) -> dict[int, str]:
        """By the number of a state, why it cannot be read though its own types can."""

    def shares(self, most_bytes: int) -> list[tuple[range, int]]:
        """The key groups cut into ranges that can be read apart, each with about how many bytes
        that takes: at most ``most_bytes``, or one key group, or what can only be read whole. Key
        groups without anything are left out at both ends."""


@dataclass(frozen=True)
class KeyGroupsSource:
    """States in a stream of key groups."""

    stream: KeyGroupsStream
    head: Head
    max_parallelism: int
    what: str

    @property
    def key_groups(self) -> range:
        handle = self.stream.handle
        return range(handle.first, handle.first + len(handle.byte_offsets))

    @cached_property
    def canonical(self) -> bool:
        """Whether the stream is in canonical form."""
        if self.stream.handle.savepoint:
            return True
        # Key group 0 of state 0 may begin alike in both.
        for key_group in reversed(self.key_groups):
            begin = next(self.stream.blocks(key_group, 4), None)
            if begin:
                return begin[:4] != key_group.to_bytes(4, "big")
        return True

    @cached_property
    def _readers(self) -> Sequence[Readers]:
        return [Readers(info, self.max_parallelism) for info in self.head.states]

    def batches(self, number: int, key_group: int) -> Iterator[list[Entry]]:
        what = f"{self.what} key group {key_group}"
        for data in self.frames(number, key_group):
            if self.canonical:
                reader = CanonicalReader(self._readers[number], number, self.max_parallelism)
                yield from reader.batches(data, key_group, what)
            else:
                heap = HeapReader(self._readers, number, self.head.unread)
                yield from heap.batches(data, key_group, what)

    @property
    def layout(self) -> KeyGroupLayout:
        return KeyGroupLayout.CANONICAL if self.canonical else KeyGroupLayout.HEAP

    def frames(self, number: int, key_group: int) -> Iterator[bytes]:
        what = f"{self.what} key group {key_group}"
        if not self.canonical:
            yield from self._heap_frames(number, key_group, what)
            return
        blocks = self._blocks(key_group)
        if self.head.compressed:
            blocks = decompress_blocks(blocks, what)
        first, second = next(blocks, None), next(blocks, None)
        if second is None:
            if first:
                yield first
            return
        yield from canonical_parts(chain((first or b"", second), blocks), _MOST_AT_ONCE, what)

    def _blocks(self, key_group: int) -> Iterator[bytes]:
        size = _BLOCK_BYTES if self.canonical else _HEAP_BLOCK_BYTES
        if self.head.compressed:
            size = _COMPRESSED_BLOCK_BYTES
        return self.stream.blocks(key_group, size)

    def _heap_frames(self, number: int, key_group: int, what: str) -> Iterator[bytes]:
        """The key group whole, or a large one in parts."""
        blocks = self._blocks(key_group)
        begin = b""
        while not has_key_group(begin) and (block := next(blocks, None)) is not None:
            begin += block
        if not begin:
            return
        blocks = chain((strip_key_group(begin, key_group, what),), blocks)
        if self.head.compressed:
            blocks = decompress_blocks(blocks, what)
        whole: deque[bytes] = deque()
        size = 0
        for block in blocks:
            whole.append(block)
            size += len(block)
            if size > _MOST_WHOLE:
                some = (whole.popleft() for _ in range(len(whole)))
                yield from heap_parts(
                    *(self._readers, chain(some, blocks), number, key_group, _MOST_AT_ONCE, what)
                )
                return
        yield b"".join(whole)

    def shares(self, most_bytes: int) -> list[tuple[range, int]]:
        return self.stream.shares(most_bytes)

    def __getstate__(self) -> dict[str, Any]:
        return without(self, "_readers")

    def _plain(self, data: bytes, what: str) -> bytes:
        if not self.head.compressed:
            return data
        return decompress_stream(data, what, _MOST_AT_ONCE)

    def blocked(self) -> dict[int, str]:
        """In the heap backend's form, the states behind one that cannot be read and has entries:
        found by walking the key groups up to it."""
        readable = self.head.unread is None and all(s.reason is None for s in self.head.states)
        if readable or self.canonical:
            return {}
        found: dict[int, str] = {}
        for key_group in self.key_groups:
            what = f"{self.what} key group {key_group}"
            data = self.stream.key_group(key_group)
            plain = self._plain(strip_key_group(data, key_group, what), what)
            seen: list[int] = []
            last = 0
            try:
                for number, _ in walk(
                    self._readers, plain, key_group, what, None, self.head.unread
                ):
                    last = number
                    if number not in seen:
                        seen.append(number)
            except DecodeError as error:
                if error.kind is not ErrorKind.UNSUPPORTED:
                    raise
                name = self.head.states[last].name
                reason = blocked_reason(name, error.problem)
                for number in range(len(self.head.states)):
                    if number not in seen:
                        found.setdefault(number, reason)
                if all(self.head.states[number].reason is None for number in seen[:-1]):
                    break
        return found
