"""The stream of a keyed state handle, read in parts (the head, and one key group at a time).

Source: KeyGroupsStateHandle, HeapSnapshotStrategy, FullSnapshotAsyncWriter @ Flink 2.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.stream_head import Head, read_head
from decoder.metadata.keyed import KeyGroupsState
from decoder.metadata.model import EmptySegment, InlineState, StreamState
from decoder.state_files import StateFiles

# A stream of at most this size stays in memory; a checkpoint may have thousands of streams.
_MAX_WHOLE_BYTES = 256 * 1024
# The minimum number of bytes to read in one request from a stream that does not stay in memory. The
# head, the last bytes, and streams of unknown size are exceptions.
_MIN_READ_BYTES = 4 * 1024 * 1024


def attributes_without(instance: object, cached: str) -> dict[str, Any]:
    """Return an instance's attributes for pickling, except the attribute named ``cached``."""
    return {name: value for name, value in vars(instance).items() if name != cached}


class Stream:
    """A stream that is read in ranges; ``label`` is the stream's name in error messages."""

    def __init__(self, stream: StreamState, files: StateFiles, label: str) -> None:
        self._stream = stream
        self._files = files
        self.label = label
        self._read_ahead = (0, b"")  # (start of the bytes that were read ahead, the bytes)

    def read(self, start: int, end: int | None) -> bytes:
        """Read the bytes from ``start`` to ``end``; None means the end of the stream.

        Raises:
            DecodeError: the stream ends before ``end``.
            DecodeError, OSError: as in ``StateFiles.read``.
        """
        if self._whole is not None:
            if end is None:
                end = len(self._whole)
            if not start <= end <= len(self._whole):
                raise DecodeError(
                    ErrorKind.TRUNCATED,
                    f"it ends early: bytes {start} to {end} expected, {len(self._whole)} found",
                    file=self.label,
                )
            return self._whole[start:end]
        stream = self._stream
        if isinstance(stream, InlineState | EmptySegment):
            raise AssertionError("an inline stream is read whole")
        if end is None and stream.size:
            end = stream.size
        if end is None:
            return self._files.read_range(stream, start, None, self.label)
        first, data = self._read_ahead
        if not first <= start <= end <= first + len(data):
            # Do not read ahead past the head, because often only the head is needed.
            until = min(start + _MIN_READ_BYTES, stream.size) if start else end
            first = start
            data = self._files.read_range(stream, start, max(start, end, until) - start, self.label)
        self._read_ahead = (first, data) if end < first + len(data) else (0, b"")
        return data[start - first : end - first]

    @property
    def size(self) -> int:
        """The size in bytes, from the handle; 0 if unknown."""
        return self._stream.size

    def __getstate__(self) -> dict[str, Any]:
        return {**attributes_without(self, "_whole"), "_read_ahead": (0, b"")}

    @cached_property
    def _whole(self) -> bytes | None:
        stream = self._stream
        if isinstance(stream, InlineState | EmptySegment) or 0 < stream.size <= _MAX_WHOLE_BYTES:
            return self._files.read(stream, self.label)
        return None


@dataclass(frozen=True)
class KeyGroupsStream:
    """A stream of key groups; a key group with an offset below ``first_offset`` is empty."""

    handle: KeyGroupsState
    stream: Stream
    first_offset: int = 1

    @property
    def key_groups(self) -> range:
        return range(self.handle.first, self.handle.first + len(self.handle.byte_offsets))

    @cached_property
    def _ends(self) -> dict[int, int | None]:
        """The end offset of each key group, by start offset; None means the stream's end."""
        offsets = [offset for offset in self.handle.byte_offsets if offset >= self.first_offset]
        if offsets != sorted(set(offsets)):
            raise DecodeError(
                ErrorKind.CORRUPT, "its key groups are not in order", file=self.stream.label
            )
        return dict(zip(offsets, [*offsets[1:], None], strict=False))

    def head(self, kryo_version: int) -> Head:
        """Read the head, up to the first key group.

        Raises:
            DecodeError: as in ``read_head``; or there are extra bytes between the head and the
                first key group.
        """
        end = next(iter(self._ends), None)
        cursor = Cursor(self.stream.read(0, end), self.stream.label)
        head = read_head(cursor, kryo_version)
        if head.end is not None:
            cursor.finish("head of a keyed state's stream")
        return head

    def key_group_ranges(self, max_bytes: int) -> list[tuple[range, int]]:
        """Return ranges of key groups; see ``StateSource.key_group_ranges``."""
        ranges: list[tuple[range, int]] = []
        start = end = total = 0
        for key_group, offset in zip(self.key_groups, self.handle.byte_offsets, strict=True):
            if offset < self.first_offset:
                continue
            # In a stream of unknown size, the last key group counts as one byte.
            size = (self._ends[offset] or max(self.stream.size, offset + 1)) - offset
            if total and total + size > max_bytes:
                ranges.append((range(start, end), total))
                total = 0
            if not total:
                start = key_group
            total += size
            end = key_group + 1
        return [*ranges, (range(start, end), total)] if total else ranges

    def key_group(self, key_group: int) -> bytes:
        """Read the stored bytes of one key group; b"" if the key group is empty."""
        offset = self.handle.byte_offsets[key_group - self.handle.first]
        return self.stream.read(offset, self._ends[offset]) if offset >= self.first_offset else b""

    def blocks(self, key_group: int, block_bytes: int) -> Iterator[bytes]:
        """Yield a key group in blocks, or in one piece if its end is unknown."""
        offset = self.handle.byte_offsets[key_group - self.handle.first]
        if offset < self.first_offset:
            return
        end = self._ends[offset] or self.stream.size
        if end <= offset:
            yield self.key_group(key_group)
        for start in range(offset, end, block_bytes):
            yield self.stream.read(start, min(start + block_bytes, end))
