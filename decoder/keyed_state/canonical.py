"""Key groups in canonical format, from canonical savepoints; RocksDB rows use the same format.

A key group is one stream (if compressed, one Snappy stream): ``i16`` state number, then the state's
entries {``i32 n``, key; ``i32 n``, value}. If the highest bit of a key's first byte is set, an
``i16`` follows the entry: the next state's number, or FFFF at the end of the key group. A state
without entries is omitted.

*Key*: the key group in 1 byte, or in 2 bytes if the max parallelism is above 128; the keyBy key;
the namespace; for a MAP, the map key. If neither the key serializer nor the namespace serializer
has a fixed length, the key and the namespace are each followed by their length, lowest byte first,
in as few bytes as possible. *Value*: for a LIST, the elements, joined by the byte ``,``; for a MAP,
``bool valueIsNull`` and the value. For a timer, the key is the key group and the timer, and the
value is empty.

Source: FullSnapshotAsyncWriter, FullSnapshotRestoreOperation, HeapKeyValueStateIterator,
CompositeKeySerializationUtils, ListDelimitedSerializer @ Flink 2.2.0; RocksDBMapState @ 2.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from struct import error as struct_error
from typing import Any

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.entries import (
    BATCH,
    BATCH_BYTES,
    Entry,
    Readers,
    fail_truncated,
    new_entry,
    read_canonical_list,
    split_ttl,
    too_large_entry,
    with_location,
)
from decoder.keyed_state.stream_head import StateKind
from decoder.keyed_state.value_sizes import has_fixed_length

_i32 = Struct(">i").unpack_from
_u16 = Struct(">H").unpack_from

_size = Struct(">i").pack

_END = 0xFFFF
_STATE_FOLLOWS = 0x80
# CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix
_ONE_BYTE_KEY_GROUPS = 128
_TIMESTAMP_BYTES = 8


def prefix_bytes(max_parallelism: int) -> int:
    """Return the number of bytes in a key's key-group prefix."""
    return 1 if max_parallelism <= _ONE_BYTE_KEY_GROUPS else 2


def encode_key_group(number: int, rows: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Encode one or more (key, value) rows of one state as a key group."""
    parts = [number.to_bytes(2, "big")]
    for key, value in rows:
        parts += (_size(len(key)), key, _size(len(value)), value)
    last = bytearray(rows[-1][0])
    if last:
        last[0] |= _STATE_FOLLOWS
    parts[-3] = bytes(last)
    parts.append(b"\xff\xff")
    return b"".join(parts)


def split_canonical_key_group(
    blocks: Iterable[bytes], max_bytes: int, label: str
) -> Iterator[bytes]:
    """Split a key group that is read in blocks into smaller key groups, at most one per block.

    Raises:
        DecodeError: the bytes are corrupt, or an entry is longer than ``max_bytes``.
    """
    left = b""
    number = b""
    for block in blocks:
        data = left + block
        start = 0
        if not number:
            if len(data) < 2:
                left = data
                continue
            number, start = data[:2], 2
        first = number
        position = start
        last = -1  # the position of the key in the last complete entry
        try:
            while number != b"\xff\xff":
                key = position + 4
                key_end = key + _i32(data, position)[0]
                end = key_end + 4 + _i32(data, key_end)[0] if key_end > key else -1
                if end < key_end + 4:
                    raise DecodeError(ErrorKind.CORRUPT, "a length cannot be negative", file=label)
                if data[key] & _STATE_FOLLOWS:
                    _u16(data, end)
                    number = data[end : end + 2]
                    end += 2
                if end > len(data):
                    break
                last, position = key, end
        except (IndexError, struct_error):
            pass  # the entry continues in the next block
        part = bytearray(first + data[start:position]) if last >= 0 else None
        data = left = data[position:]
        if len(left) > max_bytes:
            raise too_large_entry(max_bytes, label)
        if part:
            if part[last - start + 2] & _STATE_FOLLOWS:
                part[-2:] = b"\xff\xff"
            else:
                part[last - start + 2] |= _STATE_FOLLOWS
                part += b"\xff\xff"
            yield bytes(part)
    if left or number != b"\xff\xff":
        raise DecodeError(
            ErrorKind.CORRUPT, "the key group does not end with its end mark", file=label
        )


class CanonicalReader:
    """A reader of one state's entries."""

    def __init__(self, readers: Readers, number: int, max_parallelism: int) -> None:
        info = readers.info
        self._readers = readers
        self._number = number
        self._prefix = prefix_bytes(max_parallelism)
        self._has_lengths = not (has_fixed_length(info.key) or has_fixed_length(info.namespace))
        self._kind = info.kind

    def batches(self, data: bytes, key_group: int, label: str) -> Iterator[list[Entry]]:
        """Yield the state's entries in one key group, in batches.

        Raises:
            DecodeError: the bytes are corrupt, or a value cannot be read.
        """
        batch: list[Entry] = []
        begin = 0
        entry = self._simple_entry() if self._readers.simple else self._entry
        for key_start, key_end, value_end in self._entry_bounds(data, label):
            batch.append(entry(data, key_group, key_start, key_end, value_end, label))
            if len(batch) == BATCH or value_end - begin >= BATCH_BYTES:
                yield batch
                batch, begin = [], value_end
        if batch:
            yield batch

    def _entry_bounds(self, data: bytes, label: str) -> Iterator[tuple[int, int, int]]:
        """Yield (start of the key, end of the key, end of the value) for each entry of this state.

        The value's length is between the key and the value.
        """
        position = 0
        try:
            number = _u16(data)[0]
            position = 2
            while number != _END:
                start = position + 4
                key_end = start + _i32(data, position)[0]
                value_end = key_end + 4 + _i32(data, key_end)[0]
                if not start < key_end < key_end + 4 <= value_end <= len(data):
                    raise IndexError
                if number == self._number:
                    yield start, key_end, value_end
                position = value_end
                if data[start] & _STATE_FOLLOWS:
                    number = _u16(data, position)[0]
                    position += 2
        except (IndexError, struct_error):
            fail_truncated(label, self._readers.info.name, position)
        if position != len(data):
            raise DecodeError(
                ErrorKind.CORRUPT,
                f"{len(data) - position} bytes are left over after the key group",
                file=label,
                byte_offset=position,
            )

    def _simple_entry(self) -> Callable[[bytes, int, int, int, int, str], Entry]:
        """Return a faster function than ``_entry`` for ``Readers.simple`` states.

        If the function finds an error, it calls ``_entry``, which raises the error.
        """
        readers, prefix = self._readers, self._prefix
        read_key, read_value, key_group_of = (
            readers.key,
            readers.value,
            readers.key_group_of,
        )
        mask = 0x7F if prefix == 1 else 0x7FFF

        def read(
            data: bytes, key_group: int, start: int, end: int, value_end: int, label: str
        ) -> Entry:
            try:
                key, key_end = read_key(data, start + prefix)
                value, used = read_value(data, end + 4)
                actual = (
                    key_group_of(data, start + prefix, key) if key_group_of is not None else None
                )
            except (IndexError, struct_error, DecodeError):
                return self._entry(data, key_group, start, end, value_end, label)
            stored = data[start] if prefix == 1 else _u16(data, start)[0]
            if (
                key_end + 1 != end
                or used != value_end
                or stored & mask != key_group & mask
                or (actual is not None and actual != key_group)
                or self._has_lengths
            ):
                return self._entry(data, key_group, start, end, value_end, label)
            return new_entry((key_group, key, None, None, value, None))

        return read

    def _entry(
        self, data: bytes, key_group: int, start: int, end: int, value_end: int, label: str
    ) -> Entry:
        try:
            return self.entry(data, key_group, start, end, data, end + 4, value_end)
        except (IndexError, struct_error):
            fail_truncated(label, self._readers.info.name, start)
        except DecodeError as error:
            raise with_location(error, label, self._readers.info.name, start) from error

    def entry(
        self,
        key_data: bytes,
        key_group: int,
        start: int,
        end: int,
        value_data: bytes,
        value_start: int,
        value_end: int,
    ) -> Entry:
        """Read one entry, given the bounds of its key and its value.

        Raises:
            DecodeError, IndexError, struct.error: the bytes are corrupt, or a value cannot be read.
        """
        position = start + self._prefix
        if self._prefix == 1:
            actual = key_data[start] & ~_STATE_FOLLOWS
        else:
            actual = _u16(key_data, start)[0] & ~(_STATE_FOLLOWS << 8)
        if actual != key_group & (0x7F if self._prefix == 1 else 0x7FFF):
            raise DecodeError(
                ErrorKind.CORRUPT, f"a key of key group {actual} is in key group {key_group}"
            )
        if self._kind is StateKind.TIMERS:
            return self._timer(key_data, key_group, position, end)
        readers = self._readers
        key_start = position
        key, position = readers.key(key_data, position)
        readers.check_key_group(key_group, key_data, key_start, key)
        if self._has_lengths:
            position = _skip_length(key_data, key_start, position)
        namespace_start = position
        namespace, position = readers.namespace(key_data, position)
        if self._has_lengths:
            position = _skip_length(key_data, namespace_start, position)
        map_key = None
        if self._kind is StateKind.MAP:
            map_key, position = readers.map_key(key_data, position)
        _check_used_up(position, end, "key")
        value = self._value(value_data, value_start, value_end)
        value, last_access = split_ttl(readers, value)
        return Entry(key_group, key, namespace, map_key, value, last_access)

    def _timer(self, data: bytes, key_group: int, position: int, end: int) -> Entry:
        readers = self._readers
        (timestamp, key, namespace), after = readers.whole_value(data, position)
        _check_used_up(after, end, "timer")
        readers.check_key_group(key_group, data, position + _TIMESTAMP_BYTES, key)
        return Entry(key_group, key, namespace, None, timestamp, None)

    def _value(self, data: bytes, position: int, end: int) -> Any:
        readers = self._readers
        if self._kind is StateKind.LIST:
            return read_canonical_list(readers.value, data, position, end)
        if self._kind is StateKind.MAP:
            null = data[position]
            if null == 1:
                return None  # heap backends also write bytes after the flag of a null
            if null:
                raise DecodeError(ErrorKind.CORRUPT, f"a boolean is 0 or 1, not {null}")
            position += 1
        value, position = readers.value(data, position)
        _check_used_up(position, end, "value")
        return value


def _skip_length(data: bytes, start: int, position: int) -> int:
    """Skip a stored length, which must be the number of bytes from ``start`` to ``position``."""
    length = position - start
    while True:
        if data[position] != length & 0xFF:
            raise DecodeError(
                ErrorKind.CORRUPT, "the stored length of a part of a key is different"
            )
        position += 1
        length >>= 8
        if not length:
            return position


def _check_used_up(position: int, end: int, label: str) -> None:
    if position > end:
        raise IndexError
    if position < end:
        raise DecodeError(
            ErrorKind.CORRUPT, f"{end - position} bytes are left over after a {label}"
        )
