"""Key groups to columns without numba: a loop finds where entries end, numpy fills the columns.

It runs the programs (``operations``) of entries that all have the same parts: numbers, texts and
bytes, no lists and no binary rows. The loop looks at the lengths of texts alone, as nothing else
moves what follows. The rest is read, and held against its frame, of all entries at once. It accepts
less than the kernel does: no null, and no character beyond ASCII. What it does not accept it
refuses, and the plain reader reads that key group.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate.state.kernel import operations as k
from migrate.state.kernel.arrays import Buffers
from migrate.state.kernel.program import Program, Unknown

_Numbers = NDArray[Any]

_i32 = Struct(">i").unpack_from
_u16 = Struct(">H").unpack_from

_MOVING = {k.STRING, k.SIZED}
_KNOWN = {k.INTEGER, k.FLAG, k.KEY_END, k.VALUE_END, *_MOVING}
_FRAME = 4  # bytes of a length in canonical form
_STATE_FOLLOWS = 0x80
_NO_STATE = 0xFFFF
# From these sizes on, the length of a text takes a byte more.
_LONGER = (128, 16_385)
# A batch that is full with fewer entries than these holds long texts: to move so few of them column
# by column takes longer than to read them one by one.
_FEW = 64


class _Refused(Exception):
    """It is not what this loop reads."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """
    Attributes:
        ops: its operations.
        moving: of each part whose size differs, how many bytes are before it, and whether it is a
            text, and not bytes.
        rest: how many bytes are behind them.
        table: that its columns are in.
        heap: whether it stands in the heap backend's form.
    """

    ops: Sequence[Sequence[int]]
    moving: Sequence[tuple[int, bool]]
    rest: int
    table: int
    heap: bool

    @property
    def fixed(self) -> int:
        """How many bytes are not of moving parts."""
        return self.rest + sum(before for before, _ in self.moving)


def _entry(program: Program, start: int, table: int, heap: bool) -> _Entry | None:
    """The program from operation ``start`` on; None: not of the kind that is known."""
    ops: list[list[int]] = []
    moving: list[tuple[int, bool]] = []
    bytes_ = 0 if heap else _FRAME
    for op in program.ops[start:] if start >= 0 else ():
        code, size = op[0], op[3]
        if code == k.END:
            return _Entry(ops, moving, bytes_, table, heap)
        if code not in _KNOWN:
            return None
        ops.append(op)
        if code in _MOVING:
            moving.append((bytes_, code == k.STRING))
            bytes_ = 0
        elif code != k.VALUE_END:
            bytes_ += {k.INTEGER: size, k.FLAG: 1, k.KEY_END: _FRAME}[code]
    return None


class Loop:
    """Runs one program.

    Attributes:
        blocked: a state that it cannot read lay before the one that is read.
    """

    def __init__(self, program: Program, number: int, heap: bool) -> None:
        """``number``: of the state that is read.

        Raises:
            Unknown: it cannot read that state.
        """
        self._heap = heap
        self._wanted = number
        self._entries = [_entry(program, start, table, heap) for start, table in program.starts]
        self.blocked = False
        if self._entries[number] is None:
            raise Unknown("not one entry behind another, each with the same parts")

    def walk(self, data: bytes, buffers: Buffers, at: _Numbers, seen: _Numbers) -> int:
        """As the kernel's ``walk``: read entries from ``at`` on into the columns."""
        try:
            return self._walk(data, buffers, at, seen)
        except (IndexError, struct_error, _Refused):
            return k.REFUSED

    def _walk(self, data: bytes, buffers: Buffers, at: _Numbers, seen: _Numbers) -> int:
        position, state, left = at.tolist()
        while True:
            if self._heap:
                if left == 0:
                    if seen.all():
                        return k.DONE if position == len(data) else k.REFUSED
                    number, left = _u16(data, position)[0], _i32(data, position + 2)[0]
                    position += 6
                    if seen[number] or not 0 <= left <= len(data) - position:
                        return k.REFUSED
                    if state == self._wanted:
                        return k.DONE
                    seen[number] = 1
                    state = number
                    continue
            else:
                if state < 0:
                    state = _u16(data, position)[0]
                    position += 2
                if state == _NO_STATE:
                    return k.DONE if position == len(data) else k.REFUSED
                if state != self._wanted:
                    position, state = _step_over(data, position)
                    continue
            entry = self._entries[state]
            if entry is None:
                self.blocked = True
                return k.REFUSED
            most = int(buffers.room[entry.table] - buffers.rows[entry.table])
            if most == 0:
                at[:] = position, state, left
                return k.FULL
            if self._heap:
                most = min(most, left)
            sizes, end, last = _measure(entry, data, position, most, buffers)
            whole = sizes.sum(axis=1) + entry.fixed
            starts = position + np.cumsum(whole) - whole
            read = _fill(entry, data, starts, sizes, buffers)
            left -= read
            if read < len(sizes):
                if buffers.rows[entry.table] < _FEW:
                    return k.REFUSED
                at[:] = starts[read], state, left
                return k.FULL
            position = end
            if last:
                state = _u16(data, position)[0]
                position += 2


def _step_over(data: bytes, position: int) -> tuple[int, int]:
    """Where the entries of a state in canonical form end, and the number of the next state."""
    while True:
        key = position + _FRAME
        key_end = key + _i32(data, position)[0]
        position = key_end + _FRAME + _i32(data, key_end)[0]
        if not key < key_end < key_end + _FRAME <= position:
            raise _Refused
        if data[key] & _STATE_FOLLOWS:
            return position + 2, _u16(data, position)[0]


def _measure(
    entry: _Entry, data: bytes, position: int, most: int, buffers: Buffers
) -> tuple[_Numbers, int, bool]:
    """The sizes of the moving parts of each entry: of ``most``, of those that one column has room
    for, or up to the state's last one; where they end; whether that one is among them."""
    moving, rest, canonical = entry.moving, entry.rest, not entry.heap
    room = (buffers.columns[op[1], k.BYTES] for op in entry.ops if op[0] in _MOVING)
    most_position = position + int(min(room, default=1 << 62))
    sizes = array("q")
    add = sizes.append
    last = False
    count = 0
    while count < most and position < most_position and not last:
        start = position
        for before, is_text in moving:
            position += before
            size = data[position]
            if not (is_text and 0 < size < _LONGER[0]):
                size = _long_size(data, position, is_text)
            add(size)
            position += size
        position += rest
        count += 1
        last = canonical and data[start + _FRAME] >= _STATE_FOLLOWS
    return np.asarray(sizes, np.int64).reshape(count, len(moving)), position, last


def _long_size(data: bytes, position: int, is_text: bool) -> int:
    """Of a part whose first byte does not tell it."""
    if not is_text:
        size = _FRAME + int(_i32(data, position)[0])
        if size < _FRAME:
            raise _Refused
        return size
    units = shift = 0
    for width in (1, 2, 3):
        byte = data[position + width - 1]
        units |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if byte == 0:  # null, or longer than it has to be
                break
            return units - 1 + width
    raise _Refused


def _fill(entry: _Entry, data: bytes, starts: _Numbers, sizes: _Numbers, buffers: Buffers) -> int:
    """Put entries into the columns, as many as there is room for: that is how many."""
    frame = np.frombuffer(data, np.uint8)
    texts = _texts(entry, sizes)
    count = len(starts)
    for column, _, length in texts:
        room = buffers.columns[column, k.BYTES] - buffers.used[column]
        count = min(count, int(np.searchsorted(np.cumsum(length), room, "right")))
    starts = starts[:count]
    row = int(buffers.rows[entry.table])
    used = {}
    moved = 0
    at = starts if entry.heap else starts + _FRAME
    value = starts  # where the length of the value stands
    for code, column, _, a, _, _, d, _ in entry.ops:
        slot = int(buffers.columns[column, k.SLOT]) + row
        if code == k.INTEGER:
            buffers.slots[slot : slot + count] = _integers(data, at, a)
            at = at + a
        elif code == k.FLAG:
            _hold(frame[at] == d)
            at = at + 1
        elif code == k.KEY_END:
            _hold(_integers(data, starts, _FRAME) == at - starts - _FRAME)
            value = at
            at = at + _FRAME
        elif code in _MOVING:
            _, width, length = texts[moved]
            ends = np.cumsum(length[:count])
            total = int(ends[-1]) if count else 0
            begins = at + width[:count]
            length = length[:count]
            content = frame[np.repeat(begins - (ends - length), length) + np.arange(total)]
            if code == k.STRING:
                _hold(content < 0x80)
                if a:
                    beside = int(buffers.columns[column + 1, k.SLOT]) + row
                    buffers.slots[beside : beside + count] = _hashes(
                        content, length, ends, int(buffers.columns[column, k.BYTES])
                    )
            before = int(buffers.used[column])
            to = int(buffers.columns[column, k.BYTE]) + before
            buffers.text[to : to + total] = content
            buffers.slots[slot : slot + count] = before + ends
            used[column] = before + total
            at = begins + length
            moved += 1
    if not entry.heap:
        _hold(_integers(data, value, _FRAME) == at - value - _FRAME)
    for column, bytes_ in used.items():
        buffers.used[column] = bytes_
    buffers.rows[entry.table] += count
    return count


def _texts(entry: _Entry, sizes: _Numbers) -> list[tuple[int, _Numbers, _Numbers]]:
    """Of each moving part: its column, how many bytes tell its length, and its length."""
    found = []
    for (code, column, *_), size in zip(
        (op for op in entry.ops if op[0] in _MOVING), sizes.T, strict=True
    ):
        width = np.full(len(size), _FRAME)
        if code == k.STRING:
            width = 1 + (size >= _LONGER[0]) + (size >= _LONGER[1])
        found.append((column, width, size - width))
    return found


def _hold(held: _Numbers) -> None:
    if not held.all():
        raise _Refused


def _integers(data: bytes, at: _Numbers, size: int) -> _Numbers:
    """Big-endian numbers of ``size`` bytes that stand at ``at``."""
    if len(data) < size:
        raise _Refused
    every: _Numbers = np.ndarray(len(data) - size + 1, f">i{size}", data, strides=(1,))
    found: _Numbers = every[at]
    return found


def _hashes(content: _Numbers, length: _Numbers, ends: _Numbers, most: int) -> _Numbers:
    """String's, of texts one behind another, of ``most`` bytes in all: the sum of units, each times
    31 to the power of how many follow. Of all texts at once: the power counts from the first text,
    and is taken back."""
    powers, inverse = _powers(most)
    sums = np.zeros(len(content) + 1, np.uint32)
    np.cumsum(content * inverse[: len(content)], dtype=np.uint32, out=sums[1:])
    code: _Numbers = (sums[ends] - sums[ends - length]) * powers[ends - 1]
    return code


@lru_cache(maxsize=1)
def _powers(count: int) -> tuple[_Numbers, _Numbers]:
    """31 to the power of 0, 1, … below 2 to the power of 32, and what each is the inverse of."""
    made = []
    for base in (31, pow(31, -1, 1 << 32)):
        factors = np.full(count, base, np.uint32)
        factors[0] = 1
        made.append(np.cumprod(factors, dtype=np.uint32))
    return made[0], made[1]
