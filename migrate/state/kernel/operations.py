"""What a program is made of: the operations, and the columns that they fill.

An operation is itself, its column, how many bytes it needs, a, b, c, d, e. The kernel has it as
WIDTH numbers (``packed``): to get one takes longer than to split it. What is read is put into
columns: of each value a slot of 64 bits and a byte (0: it is null). The slot of a text is where it
ends in the column's bytes; that of a list, how many elements all lists have come to. Columns whose
values come together are a table: the entries, or the elements of a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# How a run ends: the bytes are used up; there is no room for the next entry; it is not accepted.
DONE, FULL, REFUSED = 0, 1, 2

# What a column holds, and its numbers in ``columns[column]``: kind, table, first slot, the table of
# a list's elements, first byte of its texts, how many bytes there is room for.
NUMBER, TEXT, LIST, STRUCT = 0, 1, 2, 3
KIND, TABLE, SLOT, CHILD, BYTE, BYTES = 0, 1, 2, 3, 4, 5

# Where the next run goes on: ``at``. The position; the state that is read (-1: none); how many of
# its entries are left.
POSITION, STATE, LEFT = 0, 1, 2
# ``starts[state]``: the first operation (-1: it has no program), the table of its entries.
START, ENTRIES = 0, 1

# Operations.
WIDTH = 4
END = 0  # of an entry; a: its table
KEY_END = 1  # the key's frame is used up, and the value's begins
VALUE_END = 2  # the frame is used up
INTEGER = 3  # big-endian, with its sign; a: bytes
STRING = 4  # Flink's; a: 1, its hash into the next column; b: 1, null is refused
SIZED = 5  # i32 n, n bytes
FLAG = 6  # a byte. a: last column; b: null; c: where to go on then; d: not null; e: null's padding
LIST_OF = 7  # i32 n. a: table; b: behind its elements
NEXT = 8  # behind an element. a: table; b: first operation of an element; c: 1, joined by commas
ROW = 9  # a binary row; a: bytes that every one has; b: 1, its hash into the next column
SLOT_INTEGER = 10  # a: null bit; b: byte, both from the row's start; c: bytes
SLOT_SIZED = 11  # a, b; c: bytes, if not the slot tells


def packed(operations: NDArray[Any], tables: NDArray[Any], slots: NDArray[Any]) -> NDArray[Any]:
    """Operations, one a row, with their columns' tables and first slots, as the kernel has them.

    A column and a table fit into 16 bits, a, b and c into 20: of columns there are a thousand at
    most, and all of these grow with their number.
    """
    op, column, needs, a, b, c, d, e = operations.T
    words = (
        op | needs << 8 | column << 16 | tables << 32,
        a | b << 20 | c << 40,
        slots,
        d | e << 8,
    )
    return np.column_stack(words).ravel()
