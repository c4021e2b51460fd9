"""Timers in raw keyed state, from jobs that use RocksDB with timers on the heap.

A key group is ``F1 CD 85 9F``, ``i32`` version 2, ``i32 n`` x {``UTF service``, serializer
snapshots of key and namespace, ``i32 n`` x event-time timer, ``i32 n`` x processing-time timer}. A
timer consists of key, namespace, and ``i64`` timestamp. Nothing is compressed. Each service becomes
two states with the names that state backends use (``_timer_state/event_NAME``,
``_timer_state/processing_NAME``).

Source: InternalTimerServiceSerializationProxy (version 2), InternalTimersSnapshotReaderWriters,
PostVersionedIOReadableWritable, InternalTimeServiceManagerImpl, KeyedStateCheckpointOutputStream @
Flink 1.15.4, 2.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from struct import Struct
from struct import error as struct_error

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.entries import (
    BATCH,
    Entry,
    KeyGroupLayout,
    Readers,
    fail_truncated,
    with_location,
)
from decoder.keyed_state.snapshots import read_snapshot
from decoder.keyed_state.stream_head import Head, timers_info
from decoder.keyed_state.streams import KeyGroupsStream
from decoder.keyed_state.types import Timer, unreadable

_IDENTIFIER = bytes.fromhex("f1cd859f")
_VERSIONS = (2,)
_KINDS = ("event", "processing")
_TIMESTAMP_BYTES = 8
_i64 = Struct(">q").unpack_from


@dataclass(frozen=True)
class RawTimersSource:
    """The timers of one subtask."""

    stream: KeyGroupsStream
    kryo_version: int
    max_parallelism: int
    label: str

    @property
    def key_groups(self) -> range:
        return self.stream.key_groups

    def blocked_reasons(self) -> dict[int, str]:
        return {}

    def key_group_ranges(self, max_bytes: int) -> list[tuple[range, int]]:
        return self.stream.key_group_ranges(max_bytes)

    @cached_property
    def head(self) -> Head:
        """The states of the timer services, read from the first non-empty key group.

        Raises:
            DecodeError: the raw keyed state is of a different kind, or the bytes are corrupt.
        """
        states = []
        for key_group in self.key_groups:
            data = self.stream.key_group(key_group)
            if data:
                for name, timer, _, entry in self._timers_by_service(data, key_group):
                    if entry is None:
                        states += [
                            timers_info(f"_timer_state/{kind}_{name}", timer) for kind in _KINDS
                        ]
                break
        return Head(False, tuple(states), None, None)

    def batches(self, number: int, key_group: int) -> Iterator[list[Entry]]:
        data = self.stream.key_group(key_group)
        batch: list[Entry] = []
        for _, _, state_number, entry in self._timers_by_service(data, key_group) if data else ():
            if entry is not None and state_number == number:
                batch.append(entry)
                if len(batch) == BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch

    @property
    def layout(self) -> KeyGroupLayout | None:
        return None

    def frames(self, number: int, key_group: int) -> Iterator[bytes]:
        raise AssertionError("there are none")

    def _timers_by_service(
        self, data: bytes, key_group: int
    ) -> Iterator[tuple[str, Timer, int, Entry | None]]:
        """Yield (service, type, state number, timer) for each timer.

        A tuple with None in place of the timer precedes the timers of each service.
        """
        label = f"{self.label} key group {key_group}"
        cursor = Cursor(data, label)
        if not cursor.skip_if(_IDENTIFIER):
            cursor.fail("raw keyed state other than timers", "timers", ErrorKind.UNSUPPORTED)
        cursor.version("timers", _VERSIONS)
        for service in range(cursor.count("timer services")):
            name = cursor.utf("timer service")
            key = read_snapshot(cursor, self.kryo_version)
            timer = Timer(key, read_snapshot(cursor, self.kryo_version))
            yield name, timer, 2 * service, None
            problem = unreadable(timer)
            readers = Readers(timers_info(name, timer), self.max_parallelism)
            for state_number in (2 * service, 2 * service + 1):
                count = cursor.count("timers")
                if count and problem is not None:
                    cursor.fail(
                        f"{problem.class_name}: {problem.reason}", "timers", ErrorKind.UNSUPPORTED
                    )
                for _ in range(count):
                    entry, size = _read_timer(readers, data, cursor.byte_offset, key_group, label)
                    cursor.skip(size, "timer")
                    yield name, timer, state_number, entry
        cursor.finish("timers")


def _read_timer(
    readers: Readers, data: bytes, start: int, key_group: int, label: str
) -> tuple[Entry, int]:
    try:
        key, position = readers.key(data, start)
        readers.check_key_group(key_group, data, start, key)
        namespace, position = readers.namespace(data, position)
        timestamp = _i64(data, position)[0]
    except (IndexError, struct_error):
        fail_truncated(label, readers.info.name, start)
    except DecodeError as error:
        raise with_location(error, label, readers.info.name, start) from error
    entry = Entry(key_group, key, namespace, None, timestamp, None)
    return entry, position + _TIMESTAMP_BYTES - start
