"""The operations of a program, and the layout of the columns that they fill.

An operation is a list: its code, its column, the number of bytes that it needs, a, b, c, d, e. The
kernel has it packed as WIDTH numbers, as loading a number takes longer than splitting one.

A value of a column is a slot of 64 bits and a byte (0: null). The slot of a text is its end in the
column's bytes; the slot of a list is the number of elements of all lists up to it. Columns with the
same rows are a table: the entries, or the elements of a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The status of a run: all bytes are read; the columns are full; an entry is refused.
DONE, FULL, REFUSED = 0, 1, 2

# The kinds of columns, and the indexes of ``columns[column]``: kind, table, first slot, the table
# of a list's elements, first byte of its texts, capacity for texts in bytes.
NUMBER, TEXT, LIST, STRUCT = 0, 1, 2, 3
KIND, TABLE, SLOT, CHILD, BYTE, BYTES = 0, 1, 2, 3, 4, 5

# The indexes of ``at``, where the next run starts: the position, the current state (-1: none), the
# number of its entries that are left.
POSITION, STATE, LEFT = 0, 1, 2
# The indexes of ``starts[state]``: the first operation (-1: no program), the entries' table.
START, ENTRIES = 0, 1

# Operations.
WIDTH = 4
END = 0  # an entry ends; a: its table
KEY_END = 1  # the key's frame ends, the value's begins
VALUE_END = 2  # the value's frame ends
INTEGER = 3  # big-endian, with its sign; a: bytes
STRING = 4  # Flink's; a: 1, write its hash into the next column; b: 1, refuse null
SIZED = 5  # i32 n, n bytes
FLAG = 6  # a byte. a: last column; b: null; c: where to jump then; d: not null; e: null's padding
LIST_OF = 7  # i32 n. a: table; b: the operation behind its elements
NEXT = 8  # an element ends. a: table; b: first operation of an element; c: 1, separated by commas
ROW = 9  # a binary row; a: its least size; b: 1, write its hash into the next column
SLOT_INTEGER = 10  # a: null bit; b: byte, both from the row's start; c: size
SLOT_SIZED = 11  # a, b; c: size, or 0 if the slot has it


def pack_operations(
    operations: NDArray[Any], tables: NDArray[Any], slots: NDArray[Any]
) -> NDArray[Any]:
    """Pack operations, one a row, with the tables and first slots of their columns.

    A column and a table fit into 16 bits, a, b and c into 20: they grow with the number of columns,
    which is a thousand at most.
    """
    op, column, needs, a, b, c, d, e = operations.T
    words = (
        op | needs << 8 | column << 16 | tables << 32,
        a | b << 20 | c << 40,
        slots,
        d | e << 8,
    )
    return np.column_stack(words).ravel()
