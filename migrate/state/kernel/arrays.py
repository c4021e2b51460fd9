"""Columns that the kernel filled, as arrays of Arrow; and the checks that need whole columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from migrate.state.kernel import operations as k
from migrate.state.kernel.program import Keys, Node, Program

_Numbers = NDArray[Any]

_LEAST = -(1 << 63)
_MICROS = 1000
# Of milliseconds and seconds, what fits as microseconds.
_MOST_MILLIS = 9_000_000_000_000_000
_MOST_SECONDS = 9_000_000_000_000
_LOW = (1 << 64) - 1
# How many columns have all the room there may be; of more each has less, down to the least.
_MOST_COLUMNS = 32
_LEAST_ROWS, _LEAST_TEXT = 64, 4096


class Rejected(Exception):
    """Something is not what Flink writes, or does not fit into its column: the plain reader tells
    what."""


class Buffers:
    """The columns of a program, with room for some rows, and what the kernel has put there.

    Attributes:
        ops, columns: the program, as the kernel has it.
        rows: by table, how many.
    """

    def __init__(self, program: Program, rows: int, text_bytes: int) -> None:
        count = len(program.columns)
        entries = {table for _, table in program.starts}
        # Of very many columns fewer rows: what they take together is bounded.
        rows = min(rows, max(_LEAST_ROWS, rows * _MOST_COLUMNS // max(count, 1)))
        text_bytes = min(text_bytes, max(_LEAST_TEXT, text_bytes * 8 // max(count, 1)))
        room = [rows if table in entries else 4 * rows for table in range(program.tables)]
        self.columns = np.zeros((count, 6), np.int64)
        slots = texts = 0
        for column, (kind, table, child) in enumerate(program.columns):
            bytes_ = text_bytes if kind == k.TEXT else 0
            self.columns[column] = (kind, table, slots, child, texts, bytes_)
            slots += room[table]
            texts += bytes_
        ops = np.array(program.ops, np.int64)
        of_column = self.columns[ops[:, 1]]
        self.ops = k.packed(ops, of_column[:, k.TABLE], of_column[:, k.SLOT])
        self.slots = np.empty(slots, np.int64)
        self.valid = np.ones(slots, np.uint8)
        self.text = np.empty(max(texts, 1), np.uint8)
        self.rows = np.zeros(program.tables, np.int64)
        self.room = np.array(room, np.int64)
        self.used = np.zeros(count, np.int64)

    def clear(self) -> None:
        self.valid[:] = 1
        self.rows[:] = 0
        self.used[:] = 0

    # -- what is in them -------------------------------------------------------------------------

    def numbers(self, column: int) -> _Numbers:
        """The slots of a column."""
        start, count = self._of(column)
        return self.slots[start : start + count]

    def is_valid(self, column: int) -> _Numbers:
        start, count = self._of(column)
        return self.valid[start : start + count].view(np.bool_)

    def _of(self, column: int) -> tuple[int, int]:
        return int(self.columns[column, k.SLOT]), int(self.rows[self.columns[column, k.TABLE]])

    def bytes_of(self, column: int) -> _Numbers:
        """The bytes of all texts of a column."""
        start = int(self.columns[column, k.BYTE])
        return self.text[start : start + int(self.used[column])]

    def child(self, column: int) -> int:
        """The table of a list's elements."""
        return int(self.columns[column, k.CHILD])

    def lengths(self, column: int) -> _Numbers:
        """Of each list or text of a column."""
        return np.diff(self.numbers(column), prepend=0)

    # -- as arrays -------------------------------------------------------------------------------

    def array(self, node: Node, type_: pa.DataType) -> pa.Array:
        """What is in a node.

        Raises:
            Rejected: text that is none.
        """
        column = node.column
        values, valid = self.numbers(column), self.is_valid(column)
        count = len(values)
        all_there = bool(valid.all())
        mask = None if all_there else pa.py_buffer(np.packbits(valid, bitorder="little"))
        match node.form:
            case "struct":
                parts = [
                    self.array(part, field.type)
                    for part, field in zip(node.parts, type_, strict=True)
                ]
                return pa.Array.from_buffers(type_, count, [mask], children=parts)
            case "list":
                element = self.array(node.parts[0], type_.value_type)
                return pa.Array.from_buffers(
                    type_, count, [mask, _offsets(values)], -1, 0, [element]
                )
            case "map":
                pair = pa.struct([type_.key_field, type_.item_field])
                parts = [
                    self.array(node.parts[0], type_.key_type),
                    self.array(node.parts[1], type_.item_type),
                ]
                pairs = pa.Array.from_buffers(pair, len(parts[0]), [None], children=parts)
                return pa.Array.from_buffers(type_, count, [mask, _offsets(values)], -1, 0, [pairs])
            case "text" | "utf8" | "bytes":
                content = pa.py_buffer(self.bytes_of(column).copy())
                made = pa.Array.from_buffers(type_, count, [mask, _offsets(values), content])
                if node.form == "utf8":
                    _validated(made)
                return made
            case "enum":
                constants = pa.array(node.constants, type_)
                return constants.take(pa.array(values, mask=None if all_there else ~valid))
            case "flag" | "truth":
                bits = pa.py_buffer(np.packbits(values != 0, bitorder="little"))
                return pa.Array.from_buffers(type_, count, [mask, bits])
            case "nothing":
                return pa.nulls(count)
            case "decimal":
                return _fixed(type_, mask, np.column_stack((values, values >> 63)))
            case "long_decimal":
                return _fixed(type_, mask, np.column_stack(self._wide(node)))
            case _:
                values = self._converted(node, values)
                bits = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[type_.bit_width // 8]
                return _fixed(type_, mask, values.astype(bits))

    def _converted(self, node: Node, values: _Numbers) -> _Numbers:
        column = node.column
        found = values
        match node.form:
            case "timer":
                found = values ^ _LEAST
            case "millis" | "date":
                found = values * _MICROS
            case "instant":
                found = values * 1_000_000 + self.numbers(column + 1) // 1000
            case "sql_timestamp":
                found = values // 1000 * 1_000_000 + self.numbers(column + 1) // 1000
            case "millis_nanos":
                found = values * _MICROS + self.numbers(column + 1) // 1000
            case "slot_millis_nanos":
                found = self._millis(column) * _MICROS + self.numbers(column - 1) // 1000
        return found

    def _millis(self, column: int) -> _Numbers:
        """Numbers of 8 bytes, the lowest first; 0 for null."""
        found = np.zeros(len(self.numbers(column)), np.int64)
        found[self.is_valid(column)] = self.bytes_of(column).view("<i8")
        return found

    def _wide(self, node: Node) -> tuple[_Numbers, _Numbers]:
        """Numbers of up to 16 bytes, the highest first, as 64 bits each: low, high; 0 for null.

        Raises:
            Rejected: a number of none, or of more.
        """
        lengths = self.lengths(node.column)
        there = self.is_valid(node.column)
        if ((lengths < 1) & there).any() or (lengths > 16).any():
            raise Rejected
        ends, data = self.numbers(node.column), self.bytes_of(node.column)
        made = np.zeros((len(lengths), 16), np.uint8)
        if len(data):
            negative = data[np.maximum(ends - lengths, 0).clip(max=len(data) - 1)] >= 0x80
            made[negative & there] = 0xFF
        for place in range(16):
            has = lengths > place
            made[has, place] = data[ends[has] - 1 - place]
        halves = made.view("<i8")
        return halves[:, 0], halves[:, 1]

    # -- checks ----------------------------------------------------------------------------------

    def check(self, node: Node) -> None:
        """Refuse a number that is none of its kind.

        Raises:
            Rejected: one is.
        """
        values = self.numbers(node.column)
        match node.form:
            case "flag":
                held = (values & ~1) == 0
            case "enum":
                held = (values >= 0) & (values < len(node.constants))
            case "place":
                held = values >= 0
            case "date":
                null = values == _LEAST
                self._forget(node.column, null)
                held = null | (np.abs(values) <= _MOST_MILLIS)
            case "instant" | "sql_timestamp":
                nanos = self.numbers(node.column + 1)
                null = values == _LEAST
                if node.form == "instant":
                    null &= nanos == -(1 << 31)
                self._forget(node.column, null)
                most = _MOST_SECONDS if node.form == "instant" else _MOST_MILLIS
                held = null | (np.abs(values) <= most) & (nanos >= 0) & (nanos < 1_000_000_000)
            case "millis":
                held = np.abs(values) <= _MOST_MILLIS
            case "millis_nanos" | "slot_millis_nanos":
                slot = node.form == "slot_millis_nanos"
                nanos = self.numbers(node.column + (-1 if slot else 1))
                millis = self._millis(node.column) if slot else values
                held = (np.abs(millis) <= _MOST_MILLIS) & (nanos >= 0) & (nanos < 1_000_000)
            case "decimal":
                held = np.abs(values) < node.constants[0]
            case "long_decimal":
                held = _below(*self._wide(node), int(node.constants[0]))
            case _:
                raise AssertionError(node.form)
        # The least number is its own magnitude.
        if not held.all() or (node.form not in ("flag", "enum") and self._least(node)):
            raise Rejected

    def _least(self, node: Node) -> bool:
        if self.columns[node.column, k.KIND] != k.NUMBER:
            return False
        return bool(((self.numbers(node.column) == _LEAST) & self.is_valid(node.column)).any())

    def _forget(self, column: int, null: _Numbers) -> None:
        if null.any():
            self.is_valid(column)[null] = False

    def check_keys(self, keys: Keys, key_groups: _Numbers, max_parallelism: int) -> None:
        """Refuse a key that is not of its key group.

        Raises:
            Rejected: one is.
        """
        if keys.prefix is not None:
            node, size = keys.prefix
            mask = 0x7F if size == 1 else 0x7FFF
            if ((self.numbers(node.column) ^ key_groups) & mask).any():
                raise Rejected
        if not keys.hashes:
            return
        code = np.zeros(len(key_groups), np.uint32)
        unknown: _Numbers | None = None
        for node in keys.hashes:
            values = self.numbers(node.column)
            if node.form == "hash":
                null = values < 0
                if null.any():
                    values = np.where(null, 0, values)
                    unknown = null if len(keys.hashes) == 1 else None
            code = code * 31 + _HASHES[node.form](values).astype(np.uint32)
        other = _group(code, max_parallelism) != key_groups
        if unknown is not None:
            other &= ~unknown
        if other.any():
            raise Rejected


def _offsets(ends: _Numbers) -> pa.Buffer:
    found = np.zeros(len(ends) + 1, np.int32)
    found[1:] = ends
    return pa.py_buffer(found)


def _fixed(type_: pa.DataType, mask: pa.Buffer | None, values: _Numbers) -> pa.Array:
    return pa.Array.from_buffers(type_, len(values), [mask, pa.py_buffer(values)])


def _validated(made: pa.Array) -> None:
    try:
        made.validate(full=True)
    except pa.ArrowInvalid as error:
        raise Rejected from error


def _below(low: _Numbers, high: _Numbers, most: int) -> _Numbers:
    """Whether the magnitude of numbers is below ``most``."""
    negative = high < 0
    low = np.where(negative, -low, low).view(np.uint64)
    high = np.where(negative, ~high + (low == 0), high)
    found: _Numbers = (high >= 0) & (
        (high < most >> 64) | (high == most >> 64) & (low < np.uint64(most & _LOW))
    )
    return found


# -- key groups ----------------------------------------------------------------------------------


def _group(code: _Numbers, max_parallelism: int) -> _Numbers:
    """MathUtils.murmurHash @ Flink 2.2.0, modulo."""
    code = code * np.uint32(0xCC9E2D51)
    code = (code << 15 | code >> 17) * np.uint32(0x1B873593)
    code = (code << 13 | code >> 19) * 5 + np.uint32(0xE6546B64)
    code ^= 4
    code ^= code >> 16
    code *= np.uint32(0x85EBCA6B)
    code ^= code >> 13
    code *= np.uint32(0xC2B2AE35)
    code ^= code >> 16
    # The least number is its own magnitude, and counts as 0.
    code = np.abs(code.view(np.int32)).view(np.uint32) & 0x7FFFFFFF
    if max_parallelism & max_parallelism - 1 == 0:
        return code & max_parallelism - 1
    return code % max_parallelism


def _double(values: _Numbers) -> _Numbers:
    return _long(np.where(np.isnan(values.view(np.float64)), 0x7FF8 << 48, values))


def _long(values: _Numbers) -> _Numbers:
    found: _Numbers = values ^ values >> 32
    return found


def _float(values: _Numbers) -> _Numbers:
    return np.where((values & 0x7FFFFFFF) > 0x7F800000, 0x7FC00000, values)


# By form: the hash code, of which the low 32 bits count.
_HASHES: dict[str, Callable[[_Numbers], _Numbers]] = {
    "hash": lambda values: values,
    "int": lambda values: values,
    "long": _long,
    "flag": lambda values: np.where(values != 0, 1231, 1237),
    "float": _float,
    "double": _double,
}
