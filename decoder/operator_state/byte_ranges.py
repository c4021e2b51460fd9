"""Which bytes of which file belong to which state handle: none to two of them.

Flink writes each subtask's operator state to a file, or a segment of a merged file, of its own. A
checkpoint whose handles share bytes is not Flink's, and could have one large file read as often as
it has handles, and what is in it decoded as often.

Source: DefaultOperatorStateBackendSnapshotStrategy, FileMergingSnapshotManagerBase @ Flink 2.2.0.
"""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from decoder.errors import DecodeError, ErrorKind
from decoder.metadata.model import FileState, RelativeFileState, SegmentState

_Stream = FileState | RelativeFileState | SegmentState


class _Claim(NamedTuple):
    start: int
    end: float
    stream: _Stream


@dataclass(frozen=True, slots=True)
class Claims:
    """What has been read so far, by path; files are read by several threads at once."""

    _by_path: dict[str, list[_Claim]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __reduce__(self) -> tuple[type[Claims], tuple[()]]:
        return Claims, ()  # another process has claims of its own

    def take(self, path: str, stream: _Stream, what: str) -> None:
        """Note that a handle's bytes are in the file at ``path``; the same handle may come again.

        Raises:
            DecodeError: they are another handle's too.
        """
        # A whole file has no end that could be relied on: its size may not be known.
        start, end = 0, math.inf
        if isinstance(stream, SegmentState):
            start, end = stream.start, stream.start + stream.size
            if start == end:
                return
        with self._lock:
            claims = self._by_path.setdefault(path, [])
            place = bisect(claims, start, key=lambda claim: claim.start)
            # Claims do not overlap: only the neighbours can.
            for other in claims[max(0, place - 1) : place + 1]:
                if other.stream is stream:
                    return
                if other.start < end and start < other.end:
                    raise DecodeError(
                        ErrorKind.CORRUPT,
                        f"the state of {what} lies where another handle's does",
                        file=path,
                        byte_offset=max(start, other.start),
                    )
            claims.insert(place, _Claim(start, end, stream))
