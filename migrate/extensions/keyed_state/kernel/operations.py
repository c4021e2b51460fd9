"""The operations of a program, and the layout of the columns that they fill.

An operation consists of eight numbers: a code, a column, the minimum number of remaining input
bytes, and the arguments a, b, c, d, and e. For the kernel, ``pack_operations`` packs them into
WIDTH numbers, because shifts are faster than loads.

A column has a 64-bit slot and a validity byte (0 means null) for each value. As in Arrow, the slot
of a string contains the end of the string in the column's bytes. The slot of a list contains the
end of the list in the table of the elements. Columns with the same rows form a table. A row is an
entry, or an element of a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The result of a run: all entries were read, the columns are full, or an entry was refused.
DONE, FULL, REFUSED = 0, 1, 2

# The kinds of columns.
NUMBER, TEXT, LIST, STRUCT = 0, 1, 2, 3
# The indexes into ``columns[column]``: the kind of the column, its table, and its first slot; for a
# list column, the table of the elements; and for a text column, the first byte and the capacity in
# bytes.
KIND, TABLE, SLOT, CHILD, BYTE, BYTES = 0, 1, 2, 3, 4, 5

# The array ``at`` contains the start of the next run. The indexes into ``at``: the position, the
# number of the current state (-1 if there is none), and the number of this state's remaining
# entries.
POSITION, STATE, LEFT = 0, 1, 2
# The indexes into ``starts[state]``: the state's first operation (-1 if the state has no program),
# and the table of its entries.
START, ENTRIES = 0, 1

# The number of 64-bit numbers in a packed operation.
WIDTH = 4

# The codes of operations.
#
# The end of an entry. a: the table that contains the entry.
END = 0
# Check that the key ends where its length says; the value follows (canonical format).
KEY_END = 1
# Check that the value ends where its length says (canonical format).
VALUE_END = 2
# A signed big-endian integer. a: its size in bytes.
INTEGER = 3
# A string, in Flink's format. a = 1: write its hash to the next column; b = 1: refuse null.
STRING = 4
# i32 n, then n bytes.
SIZED = 5
# A byte that shows whether a value is null. a: the last column of the value; b: the byte for null;
# c: the next operation after null; d: the byte for a value; e: the number of bytes to skip after
# null.
FLAG = 6
# i32 n, then n elements. a: the table of the elements; b: the operation after the list.
LIST_OF = 7
# An element ends. a: the table of the elements; b: the first operation of an element; c = 1: the
# list has commas between its elements instead of a count.
NEXT = 8
# A binary row. a: its minimum size in bytes; b = 1: write its hash to the next column.
ROW = 9
# An integer in a field of the row. a, b: the offsets of its null bit and of its first byte from the
# start of the row; c: its size in bytes.
SLOT_INTEGER = 10
# The bytes to which a field of the row points, or up to seven bytes in the field itself. a, b: as
# in SLOT_INTEGER; c: the number of bytes if it is the same for every value (the bytes are then
# always outside the field); 0 if the field contains the number of bytes.
SLOT_SIZED = 11


def pack_operations(
    operations: NDArray[Any], tables: NDArray[Any], slots: NDArray[Any]
) -> NDArray[Any]:
    """Pack operations (one per row), and add the table and the first slot of their columns.

    A program has at most 1000 columns, so columns and tables fit into 16 bits, and each of a, b,
    and c fits into 20 bits.
    """
    op, column, needs, a, b, c, d, e = operations.T
    words = (
        op | needs << 8 | column << 16 | tables << 32,
        a | b << 20 | c << 40,
        slots,
        d | e << 8,
    )
    return np.column_stack(words).ravel()
