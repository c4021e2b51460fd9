"""The stream of a keyed state handle, read by its parts: the head, and a key group at a time.

Source: KeyGroupsStateHandle, HeapSnapshotStrategy, FullSnapshotAsyncWriter @ Flink 2.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.stream_head import Head, read_head
from decoder.metadata.keyed import KeyGroupsState
from decoder.metadata.model import EmptySegment, InlineState, StreamState
from decoder.state_files import StateFiles

# A stream of this size is read at once, and kept as long as its state is: there may be thousands.
_WHOLE_BYTES = 256 * 1024
# Of a larger one so much at least: what follows is wanted next, and a store is asked less often.
_AHEAD_BYTES = 4 * 1024 * 1024


def without(made: object, name: str) -> dict[str, Any]:
    """What an object is pickled as that another process goes on with: without what it keeps at hand
    under that name, which is made anew there."""
    return {one: value for one, value in vars(made).items() if one != name}


def shares(first: int, sizes: Iterable[int], most_bytes: int) -> list[tuple[range, int]]:
    """Key groups from ``first`` on, of these sizes in bytes, as ``parts.Source.shares`` has
    them."""
    found: list[tuple[range, int]] = []
    start, end, total = first, first, 0
    for key_group, size in enumerate(sizes, first):
        if total and total + size > most_bytes:
            found.append((range(start, end), total))
            total = 0
        if size:
            if not total:
                start = key_group
            total += size
            end = key_group + 1
    if total:
        found.append((range(start, end), total))
    return found


class Stream:
    """A stream's bytes by range; ``what`` names it in errors."""

    def __init__(self, stream: StreamState, files: StateFiles, what: str) -> None:
        self._stream = stream
        self._files = files
        self.what = what
        self._ahead = (0, b"")  # from where on, what was read

    def read(self, start: int, end: int | None) -> bytes:
        """Bytes ``start`` to ``end``; None: to the end of the stream.

        Raises:
            DecodeError: the file is not there, not the checkpoint's, or too short; or more is asked
                for than is read at once.
        """
        if self._whole is not None:
            if end is None:
                end = len(self._whole)
            if not start <= end <= len(self._whole):
                raise DecodeError(
                    ErrorKind.TRUNCATED,
                    f"it ends early: bytes {start} to {end} wanted, {len(self._whole)} there",
                    file=self.what,
                )
            return self._whole[start:end]
        stream = self._stream
        if isinstance(stream, InlineState | EmptySegment):
            raise AssertionError("an inline stream is read whole")
        if end is None and stream.size:
            end = stream.size
        if end is None:
            return self._files.read_range(stream, start, None, self.what)
        first, data = self._ahead
        if not first <= start <= end <= first + len(data):
            # A head alone may be wanted, of many streams.
            until = min(start + _AHEAD_BYTES, stream.size) if start else end
            first = start
            data = self._files.read_range(stream, start, max(start, end, until) - start, self.what)
        found = data[start - first : end - first]
        self._ahead = (first, data) if end < first + len(data) else (0, b"")
        return found

    @property
    def size(self) -> int:
        """In bytes, as the handle says."""
        stream = self._stream
        return 0 if isinstance(stream, EmptySegment) else stream.size

    def __getstate__(self) -> dict[str, Any]:
        return {**without(self, "_whole"), "_ahead": (0, b"")}

    @cached_property
    def _whole(self) -> bytes | None:
        stream = self._stream
        if isinstance(stream, InlineState | EmptySegment) or 0 < stream.size <= _WHOLE_BYTES:
            return self._files.read(stream, self.what)
        return None


@dataclass(frozen=True)
class KeyGroupsStream:
    """The stream of key groups, each at its offset; one at 0 has nothing."""

    handle: KeyGroupsState
    stream: Stream

    @cached_property
    def _ends(self) -> dict[int, int | None]:
        """Where what begins at an offset ends."""
        offsets = [offset for offset in self.handle.byte_offsets if offset > 0]
        if offsets != sorted(set(offsets)):
            raise DecodeError(
                ErrorKind.CORRUPT,
                "its key groups do not lie one behind another",
                file=self.stream.what,
            )
        ends: list[int | None] = [*offsets[1:], None] if offsets else []
        return dict(zip(offsets, ends, strict=True))

    def head(self, kryo_version: int) -> Head:
        """The head, which ends where the first key group begins.

        Raises:
            DecodeError: as ``read_head``, and where something stands between the two.
        """
        end = next(iter(self._ends), None)
        cursor = Cursor(self.stream.read(0, end), self.stream.what)
        head = read_head(cursor, kryo_version)
        if head.end is not None:
            cursor.finish("head of a keyed state's stream")
        return head

    def shares(self, most_bytes: int) -> list[tuple[range, int]]:
        """As ``parts.Source.shares``."""
        size = self.stream.size
        # Where the handle tells no size, the last key group counts as a byte.
        sizes = (
            (end if (end := self._ends[offset]) is not None else max(size, offset + 1)) - offset
            if offset > 0
            else 0
            for offset in self.handle.byte_offsets
        )
        return shares(self.handle.first, sizes, most_bytes)

    def key_group(self, key_group: int) -> bytes:
        """What is kept of one key group, as it lies there; nothing: b""."""
        offset = self.handle.byte_offsets[key_group - self.handle.first]
        return self.stream.read(offset, self._ends[offset]) if offset > 0 else b""

    def blocks(self, key_group: int, block_bytes: int) -> Iterator[bytes]:
        """The same in blocks of that size; of a stream of unknown size the last key group whole."""
        offset = self.handle.byte_offsets[key_group - self.handle.first]
        if offset <= 0:
            return
        end = self._ends[offset] or self.stream.size
        if end <= offset:
            yield self.key_group(key_group)
        for start in range(offset, end, block_bytes):
            yield self.stream.read(start, min(start + block_bytes, end))
