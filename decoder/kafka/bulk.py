"""Fast reading of many splits or many enumerator entries.

All splits (or entries) of one topic start with the same bytes (lengths, a version, the topic),
called their *head* here. Numbers (a partition, offsets, and a status) follow. Many splits are
unpacked together. Each distinct head is checked once, and the numbers are checked column by column.

If a function returns None, the caller must read the whole list with the strict readers in
``reader_state`` and ``enumerator``. Errors from the strict readers contain the field and its
position. The docstrings of those modules describe the layouts. The caller must not pass an empty
list.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import add, sub
from struct import Struct
from typing import Any, NamedTuple

from decoder.kafka.columns import SplitColumns
from decoder.kafka.split import (
    COMMITTED,
    LATEST,
    LONGEST_TOPIC,
    NOT_SET,
    SPLIT_VERSION,
    is_legal_topic,
)
from decoder.operator_state.stream import PlainElements

_U16 = Struct(">H")
_I32 = Struct(">i")
_SPLIT_NUMBERS = "iqq"  # partition, starting offset, stopping offset
_SPLIT_BYTES = 2 + 4 + 8 + 8  # the size of a split without the topic name
_BEFORE_TOPIC_OF_ELEMENT = Struct(">iii")  # element length, split version, split length
# By enumerator version: the number of bytes before an entry's topic, and the format of the numbers
# after it. In version 3, the split length comes before the topic. The numbers are partition, two
# offsets (only in version 3), and status (not in version 1).
_ENTRY_FORMATS = {1: (0, "i"), 2: (0, "ii"), 3: (4, "iqqi")}
_STATUSES = frozenset({0, 1})
# The number of entries to unpack together. This number of entries fits into the CPU caches.
_BATCH = 1024

# A tuple (head, *numbers) for each split or entry.
_Rows = Iterable[tuple[Any, ...]]


class _NeedsStrictReader(Exception):
    """The bytes do not have the common layout, so the strict readers must read them."""


class EntryColumns(NamedTuple):
    """An enumerator's entries, one column per field.

    ``statuses`` is None in version 1; ``splits`` is None in versions 1 and 2.
    """

    topics: Sequence[str]
    partitions: Sequence[int]
    statuses: Sequence[int] | None
    splits: SplitColumns | None


class _Topics(dict[bytes, str]):
    """A cache of topics by head; ``read_head`` checks each new head."""

    def __init__(self, read_head: Callable[[bytes], str]) -> None:
        self._read_head = read_head

    def __missing__(self, head: bytes) -> str:
        topic = self[head] = self._read_head(head)
        return topic


def element_topics() -> dict[bytes, str]:
    """Return an empty cache for ``read_uniform_splits``."""
    return _Topics(_element_topic)


def read_uniform_splits(elements: PlainElements, topics: dict[bytes, str]) -> SplitColumns | None:
    """Read the elements of reader state; return None if the strict reader must read them.

    ``topics`` is a cache of topics by head, from ``element_topics``.
    """
    try:
        heads, partitions, starts, stops = zip(*_unpacked_elements(elements), strict=True)
        return _splits(list(map(topics.__getitem__, heads)), partitions, starts, stops)
    except (_NeedsStrictReader, struct.error):
        return None


def read_uniform_entries(
    data: bytes, start: int, end: int, *, version: int, count: int
) -> tuple[int, EntryColumns] | None:
    """Read ``count`` entries of an enumerator from ``start`` on.

    Returns:
        (the position after the entries, the entries), or None if the strict reader must read them.
    """
    if version not in _ENTRY_FORMATS:
        return None
    before_topic, numbers = _ENTRY_FORMATS[version]
    topics_by_head = _Topics(_split_topic if before_topic else _topic)
    topics: list[str] = []
    columns: list[list[int]] = [[] for _ in numbers]
    position = start
    try:
        while len(topics) < count:
            at_once = min(_BATCH, count - len(topics))
            unpacked = _unpacked_entries(data, position, at_once, before_topic, numbers)
            heads, *values = zip(*unpacked, strict=True)
            position += sum(map(len, heads)) + at_once * struct.calcsize(">" + numbers)
            topics += map(topics_by_head.__getitem__, heads)
            for column, more in zip(columns, values, strict=True):
                column += more
        return (position, _entries(topics, columns)) if position <= end else None
    except (_NeedsStrictReader, struct.error):
        return None


# -- unpacking -----------------------------------------------------------------------------------


@lru_cache(1024)
def _entry_struct(topic_bytes: int, before_topic: int, numbers: str) -> Struct:
    """Return the layout of a head with a ``topic_bytes``-byte topic, followed by the numbers."""
    if not 0 < topic_bytes <= LONGEST_TOPIC:
        raise _NeedsStrictReader
    return Struct(f">{before_topic + 2 + topic_bytes}s{numbers}")


def _unpacked_elements(elements: PlainElements) -> _Rows:
    data, starts, end = elements
    before_topic = _BEFORE_TOPIC_OF_ELEMENT.size
    sizes = list(map(sub, chain(starts[1:], (end,)), starts))
    layouts = {
        size: _entry_struct(size - before_topic - _SPLIT_BYTES, before_topic, _SPLIT_NUMBERS)
        for size in set(sizes)
    }
    if len(layouts) == 1:
        return layouts[sizes[0]].iter_unpack(data[starts[0] : end])
    return [
        layouts[size].unpack_from(data, start) for size, start in zip(sizes, starts, strict=True)
    ]


def _unpacked_entries(
    data: bytes, start: int, count: int, before_topic: int, numbers: str
) -> _Rows:
    (length,) = _U16.unpack_from(data, start + before_topic)
    entry = _entry_struct(length, before_topic, numbers)
    run = data[start : start + count * entry.size]
    if run[before_topic + 1 :: entry.size] == bytes((length,)) * count:
        return entry.iter_unpack(run)
    unpacked = []
    for _ in range(count):
        (length,) = _U16.unpack_from(data, start + before_topic)
        entry = _entry_struct(length, before_topic, numbers)
        unpacked.append(entry.unpack_from(data, start))
        start += entry.size
    return unpacked


# -- numbers -------------------------------------------------------------------------------------


def _splits(
    topics: Sequence[str],
    partitions: Sequence[int],
    starts: Sequence[int],
    stops: Sequence[int],
) -> SplitColumns:
    if min(partitions) < 0:
        raise _NeedsStrictReader
    if min(starts) < COMMITTED and min(set(starts) - {NOT_SET}, default=0) < COMMITTED:
        raise _NeedsStrictReader
    distinct_stops = set(stops)
    if distinct_stops == {NOT_SET}:
        return SplitColumns(topics, partitions, starts, (None,) * len(stops))
    if min(distinct_stops - {NOT_SET, LATEST, COMMITTED}, default=0) < 0:
        raise _NeedsStrictReader
    return SplitColumns(
        topics, partitions, starts, [None if stop == NOT_SET else stop for stop in stops]
    )


def _entries(topics: list[str], columns: Sequence[list[int]]) -> EntryColumns:
    partitions = columns[0]
    statuses = columns[-1] if len(columns) > 1 else None
    if statuses is not None and not _STATUSES.issuperset(statuses):
        raise _NeedsStrictReader
    # Combine the topic and the partition into one number, because a number takes less memory than a
    # pair. The topics get adjacent ranges, because numbers that are far apart collide more often in
    # a set.
    stride = max(partitions) + 1
    numbers = {topic: number * stride for number, topic in enumerate(set(topics))}
    distinct = set(map(add, map(numbers.__getitem__, topics), partitions))
    if min(partitions) < 0 or len(distinct) != len(topics):
        raise _NeedsStrictReader
    splits = _splits(topics, *columns[:3]) if len(columns) == 4 else None
    return EntryColumns(topics, partitions, statuses, splits)


# -- heads ---------------------------------------------------------------------------------------


def _element_topic(head: bytes) -> str:
    before = _BEFORE_TOPIC_OF_ELEMENT.size
    split = len(head) - before - 2 + _SPLIT_BYTES
    if head[:before] != _BEFORE_TOPIC_OF_ELEMENT.pack(8 + split, SPLIT_VERSION, split):
        raise _NeedsStrictReader
    return _topic(head[before:])


def _split_topic(head: bytes) -> str:
    if head[:4] != _I32.pack(len(head) - 4 - 2 + _SPLIT_BYTES):
        raise _NeedsStrictReader
    return _topic(head[4:])


def _topic(head: bytes) -> str:
    name = head[2:]
    if head[:2] != _U16.pack(len(name)) or not name.isascii():
        raise _NeedsStrictReader
    topic = name.decode("ascii")
    if not is_legal_topic(topic):
        raise _NeedsStrictReader
    return sys.intern(topic)  # lookups are faster if equal topics are one object
