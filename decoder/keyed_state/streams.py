"""The stream of a keyed state handle, read by its parts: the head, and a key group at a time.

Source: KeyGroupsStateHandle, HeapSnapshotStrategy, FullSnapshotAsyncWriter @ Flink 2.2.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.head import Head, read_head
from decoder.metadata.keyed import KeyGroupsState
from decoder.metadata.model import EmptySegment, InlineState, StreamState
from decoder.operator_state.locate import StateFiles

# A stream of this size is read at once: a store is asked once, not for each key group.
_WHOLE_BYTES = 8 * 1024 * 1024


class Stream:
    """A stream's bytes by range; ``what`` names it in errors."""

    def __init__(self, stream: StreamState, files: StateFiles, what: str) -> None:
        self._stream = stream
        self._files = files
        self.what = what

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
        return self._files.read_range(
            stream, start, None if end is None else max(0, end - start), self.what
        )

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

    def key_group(self, key_group: int) -> bytes:
        """What is kept of one key group, as it lies there; nothing: b""."""
        offset = self.handle.byte_offsets[key_group - self.handle.first]
        return self.stream.read(offset, self._ends[offset]) if offset > 0 else b""
