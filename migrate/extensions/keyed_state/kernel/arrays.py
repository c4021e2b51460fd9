"""The columns that the kernel fills, the checks of their values, and the conversion to Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from migrate.extensions.keyed_state.kernel.operations import (
    BYTE,
    CHILD,
    KIND,
    NUMBER,
    SLOT,
    TABLE,
    TEXT,
    pack_operations,
)
from migrate.extensions.keyed_state.kernel.program import Keys, Node, Program

_Numbers = NDArray[Any]

_LONG_MIN = -(1 << 63)
_MICROS_PER_MILLI = 1000
# The largest accepted time, in milliseconds and in seconds. In microseconds, it still fits into 64
# bits.
_MAX_MILLIS = 9_000_000_000_000_000
_MAX_SECONDS = 9_000_000_000_000
_MASK_64 = (1 << 64) - 1
# These constants limit the total memory of all columns. With more than _FULL_COLUMNS columns,
# each column has room for fewer rows than requested (at least _MIN_ROWS). With more than 8 columns,
# each has room for fewer bytes of text (at least _MIN_TEXT).
_FULL_COLUMNS = 32
_MIN_ROWS, _MIN_TEXT = 64, 4096


class NeedsPlainReader(Exception):
    """A value that Flink does not write, or that does not fit into its column.

    After this exception, the plain reader (see ``read``) rereads the entries. It raises an error if
    the value is invalid.
    """


class Buffers:
    """Buffers for a program's columns, with room for a limited number of rows and text bytes.

    Attributes:
        ops, columns, slots, valid, text, rows, capacity, used: the arguments of the same names in
            the kernel's ``_walk`` function.
    """

    def __init__(self, program: Program, rows: int, text_bytes: int) -> None:
        count = len(program.columns)
        entries = {table for _, table in program.starts}
        rows = min(rows, max(_MIN_ROWS, rows * _FULL_COLUMNS // max(count, 1)))
        text_bytes = min(text_bytes, max(_MIN_TEXT, text_bytes * 8 // max(count, 1)))
        capacity = [rows if table in entries else 4 * rows for table in range(program.table_count)]
        self.columns = np.zeros((count, 6), np.int64)
        slots = texts = 0
        for column, (kind, table, child) in enumerate(program.columns):
            text_capacity = text_bytes if kind == TEXT else 0
            self.columns[column] = (kind, table, slots, child, texts, text_capacity)
            slots += capacity[table]
            texts += text_capacity
        ops = np.array(program.ops, np.int64)
        columns_of_ops = self.columns[ops[:, 1]]
        self.ops = pack_operations(ops, columns_of_ops[:, TABLE], columns_of_ops[:, SLOT])
        self.slots = np.empty(slots, np.int64)
        self.valid = np.ones(slots, np.uint8)
        self.text = np.empty(max(texts, 1), np.uint8)
        self.rows = np.zeros(program.table_count, np.int64)
        self.capacity = np.array(capacity, np.int64)
        self.used = np.zeros(count, np.int64)

    def clear(self) -> None:
        self.valid[:] = 1
        self.rows[:] = 0
        self.used[:] = 0

    # -- values ----------------------------------------------------------------------------------

    def numbers(self, column: int) -> _Numbers:
        """Return the numbers in the slots of a column."""
        start, count = self._extent(column)
        return self.slots[start : start + count]

    def validity(self, column: int) -> _Numbers:
        start, count = self._extent(column)
        return self.valid[start : start + count].view(np.bool_)

    def _extent(self, column: int) -> tuple[int, int]:
        return int(self.columns[column, SLOT]), int(self.rows[self.columns[column, TABLE]])

    def bytes_of(self, column: int) -> _Numbers:
        """Return the bytes of all strings in a column, one after another."""
        start = int(self.columns[column, BYTE])
        return self.text[start : start + int(self.used[column])]

    def child(self, column: int) -> int:
        """Return the index of the table that contains a list column's elements."""
        return int(self.columns[column, CHILD])

    def lengths(self, column: int) -> _Numbers:
        """Return the length of each list, string, or bytes value in a column."""
        return np.diff(self.numbers(column), prepend=0)

    # -- as arrays -------------------------------------------------------------------------------

    def array(self, node: Node, type_: pa.DataType, *, exact: bool = False) -> pa.Array:
        """Return the values of a node as an Arrow array.

        Raises:
            NeedsPlainReader: a string is not UTF-8; a decimal is empty or longer than 16 bytes; or,
                with ``exact``, a time has nanoseconds.
        """
        column = node.column
        values, valid = self.numbers(column), self.validity(column)
        count = len(values)
        complete = bool(valid.all())
        mask = None if complete else pa.py_buffer(np.packbits(valid, bitorder="little"))
        match node.form:
            case "struct":
                parts = [
                    self.array(part, field.type, exact=exact)
                    for part, field in zip(node.parts, type_, strict=True)
                ]
                return pa.Array.from_buffers(type_, count, [mask], children=parts)
            case "list":
                element = self.array(node.parts[0], type_.value_type, exact=exact)
                return pa.Array.from_buffers(
                    type_, count, [mask, _offsets(values)], -1, 0, [element]
                )
            case "map":
                pair = pa.struct([type_.key_field, type_.item_field])
                parts = [
                    self.array(node.parts[0], type_.key_type, exact=exact),
                    self.array(node.parts[1], type_.item_type, exact=exact),
                ]
                pairs = pa.Array.from_buffers(pair, len(parts[0]), [None], children=parts)
                return pa.Array.from_buffers(type_, count, [mask, _offsets(values)], -1, 0, [pairs])
            case "text" | "utf8" | "bytes":
                content = pa.py_buffer(self.bytes_of(column).copy())
                array = pa.Array.from_buffers(type_, count, [mask, _offsets(values), content])
                if node.form == "utf8":
                    try:
                        array.validate(full=True)
                    except pa.ArrowInvalid as error:
                        raise NeedsPlainReader from error
                return array
            case "enum":
                constants = pa.array(node.constants, type_)
                return constants.take(pa.array(values, mask=None if complete else ~valid))
            case "flag" | "truth":
                bits = pa.py_buffer(np.packbits(values != 0, bitorder="little"))
                return pa.Array.from_buffers(type_, count, [mask, bits])
            case "nothing":
                return pa.nulls(count)
            case "decimal":
                return _fixed_width_array(type_, mask, np.column_stack((values, values >> 63)))
            case "long_decimal":
                return _fixed_width_array(type_, mask, np.column_stack(self._int128_halves(node)))
            case _:
                values = self._arrow_numbers(node, values, exact)
                dtype = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[type_.bit_width // 8]
                return _fixed_width_array(type_, mask, values.astype(dtype))

    def _arrow_numbers(self, node: Node, values: _Numbers, exact: bool) -> _Numbers:
        """Convert the slots of a numeric node to the numbers that its Arrow type stores.

        Raises:
            NeedsPlainReader: with ``exact``, a time has nanoseconds.
        """
        column, micros = node.column, values
        match node.form:
            case "timer":
                micros = values ^ _LONG_MIN
                return micros
            case "millis" | "date":
                return values * _MICROS_PER_MILLI
            case "instant":
                micros = values * 1_000_000
            case "sql_timestamp":
                micros = values // 1000 * 1_000_000
            case "millis_nanos":
                micros = values * _MICROS_PER_MILLI
            case "slot_millis_nanos":
                micros, column = self._millis(column) * _MICROS_PER_MILLI, column - 2
            case _:
                return values
        nanos = self.numbers(column + 1)
        if exact and (nanos[self.validity(node.column)] % 1000).any():
            raise NeedsPlainReader
        micros += nanos // 1000
        return micros

    def _millis(self, column: int) -> _Numbers:
        """Return the numbers that a column stores as 8 little-endian bytes each; 0 for null."""
        millis = np.zeros(len(self.numbers(column)), np.int64)
        millis[self.validity(column)] = self.bytes_of(column).view("<i8")
        return millis

    def _int128_halves(self, node: Node) -> tuple[_Numbers, _Numbers]:
        """Return the low and the high 64 bits of a node's big-endian numbers; 0 for null.

        Raises:
            NeedsPlainReader: a number has no bytes, or more than 16 bytes.
        """
        lengths = self.lengths(node.column)
        valid = self.validity(node.column)
        if ((lengths < 1) & valid).any() or (lengths > 16).any():
            raise NeedsPlainReader
        ends, data = self.numbers(node.column), self.bytes_of(node.column)
        numbers = np.zeros((len(lengths), 16), np.uint8)
        if len(data):
            negative = data[np.maximum(ends - lengths, 0).clip(max=len(data) - 1)] >= 0x80
            numbers[negative & valid] = 0xFF
        for index in range(16):
            has = lengths > index
            numbers[has, index] = data[ends[has] - 1 - index]
        halves = numbers.view("<i8")
        return halves[:, 0], halves[:, 1]

    # -- checks ----------------------------------------------------------------------------------

    def check(self, node: Node) -> None:
        """Check that Flink could have written a node's values, and that they fit the Arrow type.

        Flink represents a null date, instant, or SQL timestamp by a special number. This method
        marks these values as null.

        Raises:
            NeedsPlainReader: a value fails the check.
        """
        values = self.numbers(node.column)
        match node.form:
            case "flag":
                accepted = (values & ~1) == 0
            case "enum":
                accepted = (values >= 0) & (values < len(node.constants))
            case "pointer":
                accepted = values >= 0
            case "date":
                null = values == _LONG_MIN
                self._set_null(node.column, null)
                accepted = null | (np.abs(values) <= _MAX_MILLIS)
            case "instant" | "sql_timestamp":
                nanos = self.numbers(node.column + 1)
                null = values == _LONG_MIN
                if node.form == "instant":
                    null &= nanos == -(1 << 31)
                self._set_null(node.column, null)
                limit = _MAX_SECONDS if node.form == "instant" else _MAX_MILLIS
                accepted = null | (np.abs(values) <= limit) & (nanos >= 0) & (nanos < 1_000_000_000)
            case "millis":
                accepted = np.abs(values) <= _MAX_MILLIS
            case "millis_nanos" | "slot_millis_nanos":
                slot = node.form == "slot_millis_nanos"
                nanos = self.numbers(node.column + (-1 if slot else 1))
                millis = self._millis(node.column) if slot else values
                accepted = (millis != _LONG_MIN) & (np.abs(millis) <= _MAX_MILLIS)
                accepted &= (nanos >= 0) & (nanos < 1_000_000)
            case "decimal":
                accepted = np.abs(values) < node.constants[0]
            case "long_decimal":
                accepted = _is_below(*self._int128_halves(node), int(node.constants[0]))
            case _:
                raise AssertionError(node.form)
        # np.abs of the smallest 64-bit number is negative, so the checks above accept this number.
        if not accepted.all() or (node.form not in ("flag", "enum") and self._has_long_min(node)):
            raise NeedsPlainReader

    def _has_long_min(self, node: Node) -> bool:
        if self.columns[node.column, KIND] != NUMBER:
            return False
        return bool(((self.numbers(node.column) == _LONG_MIN) & self.validity(node.column)).any())

    def _set_null(self, column: int, null: _Numbers) -> None:
        if null.any():
            self.validity(column)[null] = False

    def check_keys(self, keys: Keys, key_groups: _Numbers, max_parallelism: int) -> None:
        """Check that each key belongs to the key group in which it was found.

        If a key is null or its hash is unknown, only its key-group prefix is checked, if any.

        Raises:
            NeedsPlainReader: a key belongs to a different key group.
        """
        if keys.prefix is not None:
            node, size = keys.prefix
            mask = 0x7F if size == 1 else 0x7FFF
            if ((self.numbers(node.column) ^ key_groups) & mask).any():
                raise NeedsPlainReader
        if not keys.hashes:
            return
        code = np.zeros(len(key_groups), np.uint32)
        null_keys: _Numbers | None = None
        for node in keys.hashes:
            values = self.numbers(node.column)
            if node.form == "hash":
                null = values < 0
                if null.any():
                    values = np.where(null, 0, values)
                    null_keys = null if len(keys.hashes) == 1 else None
            code = code * 31 + _HASHES[node.form](values).astype(np.uint32)
        misplaced = _compute_key_groups(code, max_parallelism) != key_groups
        if null_keys is not None:
            misplaced &= ~null_keys
        if misplaced.any():
            raise NeedsPlainReader


def _offsets(ends: _Numbers) -> pa.Buffer:
    """Return Arrow offsets for lists, strings, or bytes: 0, and then the end of each item."""
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    return pa.py_buffer(offsets)


def _fixed_width_array(type_: pa.DataType, mask: pa.Buffer | None, values: _Numbers) -> pa.Array:
    return pa.Array.from_buffers(type_, len(values), [mask, pa.py_buffer(values)])


def _is_below(low: _Numbers, high: _Numbers, limit: int) -> _Numbers:
    """Return whether each number's magnitude is below the limit."""
    negative = high < 0
    low = np.where(negative, -low, low).view(np.uint64)
    high = np.where(negative, ~high + (low == 0), high)
    below: _Numbers = (high >= 0) & (
        (high < limit >> 64) | (high == limit >> 64) & (low < np.uint64(limit & _MASK_64))
    )
    return below


# -- key groups ----------------------------------------------------------------------------------


def _compute_key_groups(code: _Numbers, max_parallelism: int) -> _Numbers:
    """Return the key groups of hash codes: the murmur hash of each code, mod ``max_parallelism``.

    ``code`` contains the hash codes, as 32-bit unsigned integers. Source: MathUtils.murmurHash @
    Flink 2.2.0.
    """
    code = code * np.uint32(0xCC9E2D51)
    code = (code << 15 | code >> 17) * np.uint32(0x1B873593)
    code = (code << 13 | code >> 19) * 5 + np.uint32(0xE6546B64)
    code ^= 4
    code ^= code >> 16
    code *= np.uint32(0x85EBCA6B)
    code ^= code >> 13
    code *= np.uint32(0xC2B2AE35)
    code ^= code >> 16
    # The smallest 32-bit number has no absolute value in 32 bits, so Flink uses 0 for this number.
    code = np.abs(code.view(np.int32)).view(np.uint32) & 0x7FFFFFFF
    if max_parallelism & max_parallelism - 1 == 0:
        return code & max_parallelism - 1
    return code % max_parallelism


def _long_hash(values: _Numbers) -> _Numbers:
    code: _Numbers = values ^ values >> 32
    return code


# The bits of the canonical NaN. Java computes the same hash for every NaN, from these bits.
_FLOAT_NAN, _DOUBLE_NAN = 0x7FC00000, 0x7FF8 << 48
# For each form of a node, a function that computes Java's hash codes. Only the low 32 bits of the
# function's result are used.
_HASHES: dict[str, Callable[[_Numbers], _Numbers]] = {
    "hash": lambda values: values,
    "int": lambda values: values,
    "long": _long_hash,
    "flag": lambda values: np.where(values != 0, 1231, 1237),
    "float": lambda values: np.where((values & 0x7FFFFFFF) > 0x7F800000, _FLOAT_NAN, values),
    "double": lambda values: _long_hash(
        np.where(np.isnan(values.view(np.float64)), _DOUBLE_NAN, values)
    ),
}
