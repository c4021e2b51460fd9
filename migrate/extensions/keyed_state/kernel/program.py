"""The program that the kernel executes.

The *kernel* is the compiled decoder of keyed state. The kernel executes the program's operations
and fills columns with numbers. A *node* describes a value and the columns that contain it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

# The forms whose values ``Buffers.check`` must check after the kernel has read them. There are two
# reasons: corrupt bytes can decode to values that Flink never writes, and some values do not fit
# the Arrow type.
CHECKS = {
    "flag",
    "enum",
    "date",
    "instant",
    "sql_timestamp",
    "millis",
    "millis_nanos",
    "slot_millis_nanos",
    "decimal",
    "long_decimal",
    "pointer",
}
# The maximum depth of nested lists, and the maximum number of columns.
MAX_LISTS = 16
MAX_COLUMNS = 1000


class CannotCompile(Exception):
    """The kernel cannot read one of the state's types, or the format of a subtask's part."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value, and the columns that contain it.

    Attributes:
        form: the interpretation of the numbers in the columns (see ``Buffers.array``).
        column: the first column of the value; for ``slot_millis_nanos``, the second column.
        table: the table of the columns.
        parts: the fields of a struct, the element of a list, or the key and value of a map.
        constants: the constants of an enum, or the limit of a decimal's magnitude.
    """

    form: str
    column: int
    table: int
    parts: tuple[Node, ...] = ()
    constants: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Keys:
    """The nodes for checking the key groups of keys (``Buffers.check_keys``).

    Attributes:
        table: the table of the keys.
        prefix: the node of the key-group prefix of each key, and the size of the prefix in bytes;
            None if the keys have no such prefix.
        hashes: the nodes from which the hash of a key is computed; empty if the hash is unknown.
    """

    table: int
    prefix: tuple[Node, int] | None
    hashes: tuple[Node, ...]


@dataclass(slots=True)
class Program:
    """A program for the kernel, and the nodes of the values that the program reads.

    Attributes:
        starts, ops: see ``operations``.
        columns: for each column, its kind, its table, and, for a list, the table of its elements.
        nodes: the node of each column of the state, by the column's name.
        checks: the nodes to check (``Buffers.check``).
        keys: the keys of each state that the program reads.
        map_entries: for a MAP in the heap backend's format, the node of the list whose elements are
            the entries.
        list_elements: for a LIST in the heap backend's format, the node of the list. A row with an
            empty list is not an entry.
    """

    starts: list[list[int]]
    ops: list[list[int]] = field(default_factory=list)
    columns: list[list[int]] = field(default_factory=list)
    table_count: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    checks: list[Node] = field(default_factory=list)
    keys: list[Keys] = field(default_factory=list)
    map_entries: Node | None = None
    list_elements: Node | None = None

    def copy(self) -> Program:
        """Return a copy; additions to the copy do not change this program."""
        starts, ops, columns = [*self.starts], [*self.ops], [*self.columns]
        checks, keys = [*self.checks], [*self.keys]
        return replace(self, starts=starts, ops=ops, columns=columns, checks=checks, keys=keys)
