"""The operations of a program, and the layout of the columns that they fill.

An operation is a list of its code, its column, the number of bytes that must be left for it, and
its arguments a, b, c, d and e. For the kernel, an operation is packed into WIDTH numbers, because
loading a number takes longer than splitting it.

Each value of a column has a slot of 64 bits, and a byte that is 0 if the value is null. The slot of
a text is the end of the text in the column's bytes. The slot of a list is the number of elements of
this list and of all lists before it. Columns with the same rows form a table. The rows of a table
are the entries, or the elements of a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The status of a run: all bytes were read; the columns are full; an entry was refused.
DONE, FULL, REFUSED = 0, 1, 2

# The kinds of columns, and the indexes of ``columns[column]``: kind, table, first slot, the table
# of a list's elements, first byte of its texts, capacity for texts in bytes.
NUMBER, TEXT, LIST, STRUCT = 0, 1, 2, 3
KIND, TABLE, SLOT, CHILD, BYTE, BYTES = 0, 1, 2, 3, 4, 5

# The indexes of ``at``, which says where the next run starts: the position, the number of the
# current state (-1: none), the number of entries that this state has left.
POSITION, STATE, LEFT = 0, 1, 2
# The indexes of ``starts[state]``: the first operation (-1: no program), the table of the entries.
START, ENTRIES = 0, 1

# The number of 64-bit numbers in a packed operation.
WIDTH = 4

# The codes of operations.
#
# An entry ends. a: the table of the entries.
END = 0
# The frame of the key ends, and the frame of the value begins.
KEY_END = 1
# The frame of the value ends.
VALUE_END = 2
# A signed big-endian integer. a: its size in bytes.
INTEGER = 3
# A string as Flink writes it. a = 1: write its hash into the next column; b = 1: refuse null.
STRING = 4
# i32 n, then n bytes.
SIZED = 5
# A byte that says whether a value is null. a: the last column of the value; b: the byte for null;
# c: the operation to continue with after null; d: the byte for a value; e: how many bytes to skip
# after null.
FLAG = 6
# i32 n, then n elements. a: the table of the elements; b: the operation after the list.
LIST_OF = 7
# An element ends. a: the table of the elements; b: the first operation of an element; c = 1: the
# list has no count, its elements are separated by commas.
NEXT = 8
# A binary row. a: its least size in bytes; b = 1: write its hash into the next column.
ROW = 9
# An integer in a slot of the row. a: the number of its null bit; b: its byte; both count from the
# start of the row; c: its size in bytes.
SLOT_INTEGER = 10
# Bytes to which a slot of the row refers. a, b: as for SLOT_INTEGER; c: the number of bytes, or 0
# if the slot holds it.
SLOT_SIZED = 11


def pack_operations(
    operations: NDArray[Any], tables: NDArray[Any], slots: NDArray[Any]
) -> NDArray[Any]:
    """Pack operations, one in each row, with the tables and first slots of their columns.

    A column or a table fits into 16 bits, and each of a, b and c into 20 bits: these numbers grow
    with the number of columns, which is at most 1000.
    """
    op, column, needs, a, b, c, d, e = operations.T
    words = (
        op | needs << 8 | column << 16 | tables << 32,
        a | b << 20 | c << 40,
        slots,
        d | e << 8,
    )
    return np.column_stack(words).ravel()
