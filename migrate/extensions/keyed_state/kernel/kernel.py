"""The kernel that reads key groups into columns, compiled by numba.

The kernel runs a program (``operations``) over the bytes of a key group, entry by entry.

The kernel checks only the layout of the bytes. ``arrays`` checks the numbers, one column at a time.
If both checks accept the bytes, the plain reader (``decoder.keyed_state``) accepts them too. The
kernel refuses some bytes that the plain reader accepts. After a refusal, the plain reader reads the
same bytes, and raises an error if the bytes are invalid.

The kernel compares every length with the number of bytes left in the enclosing key, value, or row.
Numba also checks array bounds.

Numba recompiles a cached function only if the function's own file has changed. Therefore, all
compiled code is in this file, and OPERATIONS must change whenever the constants in ``operations``
change. The code is kept short, because the first process must compile it.

Source: the serializers listed in ``decoder.keyed_state.values``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from migrate.extensions.keyed_state.kernel.operations import (
    BYTE,
    BYTES,
    CHILD,
    DONE,
    END,
    ENTRIES,
    FLAG,
    FULL,
    INTEGER,
    KEY_END,
    KIND,
    LEFT,
    LIST,
    LIST_OF,
    NEXT,
    POSITION,
    REFUSED,
    ROW,
    SIZED,
    SLOT,
    SLOT_INTEGER,
    START,
    STATE,
    STRING,
    TABLE,
    TEXT,
    VALUE_END,
    WIDTH,
)

# A checksum of the constants in ``operations``; if it is wrong, a test prints the new checksum.
OPERATIONS = 756668444

_MASK = 0xFFFFFFFF
# With this mask, numba can see that an index is not negative. As a result, numba omits the code for
# negative indexes, which count from the end of an array.
_INDEX = (1 << 62) - 1

_F = TypeVar("_F", bound=Callable[..., Any])
_Array = NDArray[Any]

# The types of all arguments are specified, so that each function is compiled once.
_I64 = numba.int64
_OUT = numba.types.Array(numba.uint8, 1, "C")
_DATA = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_NUMBERS = numba.types.Array(numba.int64, 1, "C")
_TABLE = numba.types.Array(numba.int64, 2, "C")
# The code needs no reference counts (_nrt), because all arrays belong to the caller.
_OPTIONS: dict[str, Any] = {"boundscheck": True, "_nrt": False, "no_rewrites": True}
# The type of ``output``: (columns, slots, valid, rows, used); see ``_walk``.
_OUTPUT = numba.types.Tuple((_TABLE, _NUMBERS, _OUT, _NUMBERS, _NUMBERS))
# The types of the input (data, position, and an end or a size).
_INPUT = (_DATA, _I64, _I64)


def _compiled(function: Callable[..., Any], signature: Any, **options: Any) -> Any:
    """Load a function from numba's disk cache, or compile it, even without a writable cache."""
    try:
        return numba.njit(signature, cache=True, **options, **_OPTIONS)(function)
    except (OSError, RuntimeError):  # no writable directory, or a full disk
        return numba.njit(signature, **options, **_OPTIONS)(function)


def _for_kernel(result: Any, *arguments: Any, forceinline: bool = True) -> Callable[[_F], _F]:
    """Return a decorator that compiles a function; only compiled code can call the function."""

    def decorate(function: _F) -> _F:
        compiled: _F = _compiled(
            function,
            result(*arguments),
            forceinline=forceinline,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
        )
        return compiled

    return decorate


@_for_kernel(_I64, *_INPUT, _I64)
def _integer(data: _Array, position: int, size: int, step: int) -> int:
    """Return a signed integer.

    If the integer is big-endian, ``position`` is its first byte, and ``step`` is 1. If the integer
    is little-endian, ``position`` is its last byte, and ``step`` is -1.
    """
    value = 0
    for _ in range(size):
        value = value << 8 | data[position & _INDEX]
        position += step
    unused = 64 - 8 * size
    return value << unused >> unused


@_for_kernel(_I64, *_INPUT)
def _row_hash(data: _Array, start: int, size: int) -> int:
    """Return the hash code of a BinaryRowData."""
    code = 42
    for last in range(start + 3, start + size, 4):
        word = ((_integer(data, last, 4, -1) & _MASK) * 0xCC9E2D51) & _MASK
        code ^= ((word << 15 | word >> 17) * 0x1B873593) & _MASK
        code = (((code << 13 | code >> 19) & _MASK) * 5 + 0xE6546B64) & _MASK
    code ^= size
    code = ((code ^ code >> 16) * 0x85EBCA6B) & _MASK
    code = ((code ^ code >> 13) * 0xC2B2AE35) & _MASK
    return code ^ code >> 16


@_for_kernel(_I64, _OUT, _I64, _I64)
def _write_utf8(text: _Array, to: int, character: int) -> int:
    """Write a non-ASCII character to ``text`` as UTF-8; return the new end."""
    following = 1 if character < 0x800 else 2 if character < 0x10000 else 3
    text[to] = (0xFF00 >> following + 1 & 0xFF) | character >> 6 * following
    for index in range(following - 1, -1, -1):
        to += 1
        text[to] = 0x80 | character >> 6 * index & 0x3F
    return to + 1


# Not inlined, because the loop has enough registers only in a separate function.
@_for_kernel(numba.types.UniTuple(_I64, 3), *_INPUT, _I64, _OUT, _I64, forceinline=False)
def _utf8_of_string(
    data: _Array, position: int, end: int, count: int, text: _Array, to: int
) -> tuple[int, int, int]:
    """Convert a string to UTF-8. The data stores each UTF-16 unit in one to three bytes.

    Returns:
        the end of the units in ``data``, the end of the string in ``text``, and the hash of the
        string. The first number is -1 if the string is refused, for example if it contains a lone
        surrogate.
    """
    code = 0
    high_surrogate = 0  # 0 if the previous unit was not a high surrogate
    # A fast loop for ASCII. The caller has checked that at least ``count`` bytes are left.
    done = 0
    while done < count:
        first = data[position + done & _INDEX]
        if first >= 0x80:
            break
        text[to + done & _INDEX] = first
        code = 31 * code + first
        done += 1
    position += done
    to += done
    for _ in range(count - done):
        if position >= end:
            return -1, to, code
        unit = np.int64(data[position & _INDEX])
        position += 1
        shift = 7
        byte = unit
        unit &= 0x7F
        while byte >= 0x80 and shift < 21 and position < end:
            byte = np.int64(data[position])
            position += 1
            unit |= (byte & 0x7F) << shift
            shift += 7
        if byte >= 0x80 or unit > 0xFFFF or (byte == 0 and shift > 7):
            return -1, to, code
        code = 31 * code + unit
        if (high_surrogate != 0) != (unit >> 10 == 0x37):
            return -1, to, code
        if high_surrogate:
            to = _write_utf8(text, to, 0x10000 + (high_surrogate - 0xD800 << 10) + (unit - 0xDC00))
            high_surrogate = 0
        elif unit >> 10 == 0x36:
            high_surrogate = unit
        elif unit < 0x80:
            text[to] = unit
            to += 1
        else:
            to = _write_utf8(text, to, unit)
    if high_surrogate:
        return -1, to, code
    return position, to, code & _MASK


@_for_kernel(numba.types.UniTuple(_I64, 2), *_INPUT)
def _varint(data: _Array, position: int, end: int) -> tuple[int, int]:
    """Return the number in a varint, and the position after the varint.

    The position is -1 if the data ends early, or if Flink would not write such a varint (for
    example, because it has more than five bytes).
    """
    count = 0
    shift = 0
    byte = np.int64(0x80)
    while byte >= 0x80:
        if shift > 28 or position >= end:
            return 0, -1
        byte = np.int64(data[position & _INDEX])
        position += 1
        count |= (byte & 0x7F) << shift
        shift += 7
    if count >> 31 or (byte == 0 and shift > 7):
        return 0, -1
    return count, position


@_for_kernel(numba.void, _I64, _I64, _OUTPUT)
def _set_null(first: int, last: int, output: tuple[_Array, ...]) -> None:
    """Set the columns ``first`` to ``last`` to null, except the columns of other tables."""
    columns, slots, valid, rows, used = output
    table = columns[first, TABLE]
    for column in range(first, last + 1):
        if columns[column, TABLE] == table:
            slot = columns[column, SLOT] + rows[table]
            kind = columns[column, KIND]
            valid[slot] = 0
            slots[slot] = 0
            if kind == TEXT:
                slots[slot] = used[column]
            elif kind == LIST:
                slots[slot] = rows[columns[column, CHILD]]


@_for_kernel(numba.void, _OUTPUT)
def _remove_incomplete_entry(output: tuple[_Array, ...]) -> None:
    """Remove the values of an incomplete entry.

    A list's column comes before the columns of its elements. Therefore, the loop corrects the
    number of elements before it needs this number for the elements' columns.
    """
    columns, slots, _, rows, used = output
    for column in range(columns.shape[0]):
        count = rows[columns[column, TABLE]]
        before = slots[columns[column, SLOT] + count - 1] if count else 0
        kind = columns[column, KIND]
        if kind == TEXT:
            used[column] = before
        elif kind == LIST:
            rows[columns[column, CHILD]] = before


@_for_kernel(
    *(numba.types.UniTuple(_I64, 2), *_INPUT, _I64, _I64, _NUMBERS, _OUTPUT),
    *(_OUT, _NUMBERS, _NUMBERS),
)
def _entry(
    data: _Array,
    position: int,
    end: int,
    value_end: int,
    pc: int,
    ops: _Array,
    output: tuple[_Array, ...],
    text: _Array,
    capacity: _Array,
    lists: _Array,
) -> tuple[int, int]:
    """Read one entry with the operations from ``pc`` on; return the status and final position."""
    columns, slots, valid, rows, used = output
    depth = 0
    row = row_size = row_used = 0
    while True:
        pc &= _INDEX
        header = ops[pc]
        arguments = ops[pc + 1]
        op = header & 0xFF
        column = header >> 16 & 0xFFFF
        a = arguments & 0xFFFFF
        b = arguments >> 20 & 0xFFFFF
        c = arguments >> 40
        slot = ops[pc + 2] + rows[header >> 32 & 0xFFFF] & _INDEX
        if header >> 8 & 0xFF > end - position:
            return REFUSED, position
        pc += WIDTH
        if op == INTEGER:
            slots[slot] = _integer(data, position, a, 1)
            position += a
        elif op == STRING:
            count, position = _varint(data, position, end)
            if position < 0 or count - 1 > end - position or (count == 0 and b):
                return REFUSED, position
            if 3 * count > columns[column, BYTES] - used[column]:
                return FULL, position
            code = -1
            if count:
                to = columns[column, BYTE]
                position, ends, code = _utf8_of_string(
                    data, position, end, count - 1, text, to + used[column]
                )
                if position < 0:
                    return REFUSED, position
                used[column] = ends - to
            else:
                valid[slot] = 0
            slots[slot] = used[column]
            if a:
                slots[columns[column + 1, SLOT] + rows[columns[column, TABLE]]] = code
        elif op == END:
            rows[a] += 1
            return DONE, position
        elif op == KEY_END:
            if position != end:
                return REFUSED, position
            position += 4
            end = value_end
        elif op == VALUE_END:
            if position != end:
                return REFUSED, position
        elif op == FLAG:
            flag = data[position]
            position += 1
            if flag == b:
                position += ops[pc - 1] >> 8
                if position > end:
                    return REFUSED, position
                _set_null(column, a, output)
                pc = c * WIDTH
            elif flag != ops[pc - 1] & 0xFF:
                return REFUSED, position
        elif op == LIST_OF:
            count = _integer(data, position, 4, 1)
            position += 4
            if not 0 <= count <= end - position:
                return REFUSED, position
            if count:
                if rows[a] == capacity[a]:
                    return FULL, position
                lists[depth] = count
                depth += 1
            else:
                slots[slot] = rows[a]
                pc = b * WIDTH
        elif op == NEXT:
            rows[a] += 1
            if c:
                more = position < end
                if more and data[position] != 0x2C:
                    return REFUSED, position
                position += more
            else:
                lists[depth - 1] -= 1
                more = lists[depth - 1] > 0
                depth -= not more
            if not more:
                slots[slot] = rows[a]
            elif rows[a] == capacity[a]:
                return FULL, position
            else:
                pc = b * WIDTH
        elif op in (ROW, SIZED):
            size = _integer(data, position, 4, 1)
            position += 4
            if not 0 <= size <= end - position:
                return REFUSED, position
            row, row_size, row_used = position, size, a
            position += size
            if op == SIZED:
                if size > columns[column, BYTES] - used[column]:
                    return FULL, position
                to = columns[column, BYTE] + used[column]
                for index in range(size):
                    text[to + index] = data[row + index]
                used[column] += size
                slots[slot] = used[column]
            elif size < a or (b and size & 3):
                return REFUSED, position
            elif b:
                slots[columns[column + 1, SLOT] + rows[columns[column, TABLE]]] = _row_hash(
                    data, row, size
                )
        elif data[row + (a >> 3)] >> (a & 7) & 1:
            _set_null(column, column, output)
        elif op == SLOT_INTEGER:
            slots[slot] = _integer(data, row + b + c - 1, c, -1)
        else:  # SLOT_SIZED
            size = c
            offset = _integer(data, row + b + 7, 4, -1)
            if offset < 0 and c == 0:
                size = np.int64(data[row + b + 7]) & 0x7F
                offset = b
                if size > 7:
                    return REFUSED, position
            else:
                if c == 0:
                    size = _integer(data, row + b + 3, 4, -1)
                row_used += size
            if not (0 <= size <= row_size - offset and offset >= 0 and row_used <= row_size):
                return REFUSED, position
            if size > columns[column, BYTES] - used[column]:
                return FULL, position
            to = columns[column, BYTE] + used[column]
            for index in range(size):
                text[to + index] = data[row + offset + index]
            used[column] += size
            slots[slot] = used[column]


def _walk(
    data: _Array,
    heap: bool,
    target: int,
    starts: _Array,
    ops: _Array,
    columns: _Array,
    slots: _Array,
    valid: _Array,
    text: _Array,
    rows: _Array,
    capacity: _Array,
    used: _Array,
    at: _Array,
    seen: _Array,
    lists: _Array,
) -> int:
    """Read entries of a state, and return DONE, FULL, or REFUSED.

    Args:
        data: a key group in the canonical format, or in the heap backend's format without the
            key group's number.
        heap: True if ``data`` has the heap backend's format.
        target: the number of the state to read.
        starts: for each state, the start of its program; see START.
        ops: the packed program.
        columns: the layout of each column; see KIND.
        slots: the slots of all columns.
        valid: for each slot, 0 if it contains a null, else 1 (also if it is not filled yet).
        text: the bytes of the texts of all columns.
        rows: for each table, the number of rows.
        capacity: for each table, the number of rows that fit.
        used: for each column, the number of bytes of its texts.
        at: the start position (see POSITION); after FULL, the start position of the next call.
        seen: for each state, whether its entries have started; only in the heap backend's format.
        lists: for each depth of nested lists, the number of elements that remain to be read.
    """
    output = (columns, slots, valid, rows, used)
    size = data.shape[0]
    position = at[POSITION]
    state = at[STATE]
    left = at[LEFT]
    while True:
        start = position
        key_end = value_end = size
        if heap:
            if left == 0:
                unseen = 0
                for number in range(seen.shape[0]):
                    unseen += 1 - seen[number]
                if unseen == 0:
                    return DONE if position == size else REFUSED
                if position > size - 6:
                    return REFUSED
                number = _integer(data, position, 2, 1) & 0xFFFF
                left = _integer(data, position + 2, 4, 1)
                position += 6
                if number >= seen.shape[0] or not 0 <= left <= size - position or seen[number]:
                    return REFUSED
                if state == target:
                    return DONE
                seen[number] = 1
                state = number
                continue
        else:
            if state < 0:
                if position > size - 2:
                    return REFUSED
                state = _integer(data, position, 2, 1) & 0xFFFF
                position += 2
            if state == 0xFFFF:
                return DONE if position == size else REFUSED
            start = position
            position += 4
            if position > size:
                return REFUSED
            length = _integer(data, start, 4, 1)
            if not 0 < length <= size - position - 4:
                return REFUSED
            key_end = position + length
            length = _integer(data, key_end, 4, 1)
            if not 0 <= length <= size - key_end - 4:
                return REFUSED
            value_end = key_end + 4 + length
        if heap or state == target:
            status, ends = REFUSED, start
            table = starts[state, ENTRIES]
            if rows[table] == capacity[table]:
                status = FULL
            elif starts[state, START] >= 0:
                pc = starts[state, START] * WIDTH
                status, ends = _entry(
                    data, position, key_end, value_end, pc, ops, output, text, capacity, lists
                )
            if status != DONE:
                _remove_incomplete_entry(output)
                at[POSITION], at[STATE], at[LEFT] = start, state, left
                return status
            position = ends
        if heap:
            left -= 1
        else:
            position = value_end
            if data[start + 4] >= 0x80:
                if position > size - 2:
                    return REFUSED
                state = _integer(data, position, 2, 1) & 0xFFFF
                position += 2


_SIGNATURE = _I64(
    *(_DATA, numba.boolean, _I64, _TABLE, _NUMBERS, _TABLE, _NUMBERS, _OUT, _OUT),
    *(_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, _OUT, _NUMBERS),
)


# Only Python calls this function, so it needs no wrapper for C. Without the wrapper, compilation
# takes 5% less time.
walk: Callable[..., int] = _compiled(_walk, _SIGNATURE, no_cfunc_wrapper=True)
