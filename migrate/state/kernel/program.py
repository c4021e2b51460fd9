"""A state's types as a program for the kernel, and what comes out of it.

Only shapes that the kernel knows have one; ``Unknown`` says of the others that they have none. The
plain reader (``decoder.keyed_state``) reads those.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from decoder.keyed_state import StateKind, types
from decoder.keyed_state.canonical import prefix_bytes
from decoder.keyed_state.key_groups import key_group_of
from decoder.keyed_state.stream_head import StateInfo
from decoder.keyed_state.types import Kind, SqlKind
from decoder.keyed_state.value_sizes import (
    MAX_COMPACT_DECIMAL,
    MAX_COMPACT_TIMESTAMP,
    has_fixed_length,
)
from migrate.state.column_types import PairsOf
from migrate.state.kernel import operations as k
from migrate.state.type_mapping import column_type

# The forms of values of which not all that fit into their bytes are ones that Flink writes, or that
# fit into their column.
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
    "place",
}


# How deep lists may be in one another, and how many columns there may be.
MOST_LISTS = 16
_MOST_COLUMNS = 1000


class Unknown(Exception):
    """A shape that the kernel does not know."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value, by the columns that it is read into.

    Attributes:
        form: what its slots mean: a name of ``arrays``.
        column: the first of its columns.
        table: the table that they are in.
        parts: of a struct its fields, of a list its element, of a map key and value.
        constants: of an enum; the number that a decimal's magnitude is below.
    """

    form: str
    column: int
    table: int
    parts: tuple[Node, ...] = ()
    constants: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Keys:
    """
    Attributes:
        table: that they are in.
        prefix: the key group as it stands before a key, and of how many bytes; None: it does not.
        hashes: the parts of a key, from which its hash is computed; none: it is not known.
    """

    table: int
    prefix: tuple[Node, int] | None
    hashes: tuple[Node, ...]


@dataclass(slots=True)
class Program:
    """
    Attributes:
        starts, ops: as the kernel has them.
        columns: of each its kind, its table and, of a list, the table of its elements.
        tables: how many there are.
        nodes: by the name of a column of the state, what is in it.
        checks: what is read only to be held against something.
        keys: of each state that is read, what tells its keys' key groups.
        elements: of a MAP in the heap backend's form, the list of what are entries.
        not_empty: of a LIST in that form, its list: an empty one is no entry.
    """

    starts: list[list[int]]
    ops: list[list[int]] = field(default_factory=list)
    columns: list[list[int]] = field(default_factory=list)
    tables: int = 1
    nodes: dict[str, Node] = field(default_factory=dict)
    checks: list[Node] = field(default_factory=list)
    keys: list[Keys] = field(default_factory=list)
    elements: Node | None = None
    not_empty: Node | None = None


def program_of(
    states: Sequence[StateInfo], number: int, max_parallelism: int, heap: bool
) -> Program:
    """The program that reads the state of that number.

    Raises:
        Unknown: there is none.
    """
    made = Program([[-1, 0] for _ in states])
    _Compiler(made, states[number], max_parallelism, 0).state(number, heap)
    # The heap backend's states have no order: the others may lie before it.
    for other, info in enumerate(states if heap else ()):
        if other != number and info.reason is None:
            beside = replace(
                made,
                starts=list(made.starts),
                ops=list(made.ops),
                columns=list(made.columns),
                checks=list(made.checks),
                keys=list(made.keys),
                tables=made.tables + 1,
                nodes={},
            )
            with suppress(Unknown):
                _Compiler(beside, info, max_parallelism, made.tables).state(other, heap)
                whole = (made.nodes, made.elements, made.not_empty)
                made = beside
                made.nodes, made.elements, made.not_empty = whole
    return made


class _Compiler:
    def __init__(self, made: Program, info: StateInfo, max_parallelism: int, table: int) -> None:
        self._made = made
        self._info = info
        self._max_parallelism = max_parallelism
        self._table = table
        self._hashes: list[Node] | None = None
        self._key_hashes: list[Node] = []
        self._depth = 0

    # -- an entry --------------------------------------------------------------------------------

    def state(self, number: int, heap: bool) -> None:
        self._made.starts[number] = [len(self._made.ops), self._table]
        prefix = None
        if heap:
            self._heap()
        else:
            size = prefix_bytes(self._max_parallelism)
            prefix = (self._integer(self._table, size), size)
            self._canonical()
        self._op(k.END, a=self._table)
        self._made.keys.append(Keys(self._table, prefix, tuple(self._key_hashes)))

    def _canonical(self) -> None:
        info, nodes = self._info, self._made.nodes
        if not (has_fixed_length(info.key) or has_fixed_length(info.namespace)):
            raise Unknown("lengths behind key and namespace")
        if info.kind is StateKind.TIMERS:
            nodes["value"] = self._timer()
            self._key_and_namespace()
            self._op(k.KEY_END)
            return
        self._key_and_namespace()
        if info.kind is StateKind.MAP:
            assert info.map_key is not None
            nodes["map_key"] = self._value(info.map_key, self._table)
        self._op(k.KEY_END)
        if info.kind is StateKind.MAP:
            self._map_value(self._table, ends=True)
            return
        if info.kind is StateKind.LIST:
            column, table = self._list_column(self._table)
            first = len(self._made.ops)
            self._elements_of_list(column, table)
            self._op(k.NEXT, column, a=table, b=first, c=1)
        else:
            self._with_access(self._table)
        self._op(k.VALUE_END)

    def _heap(self) -> None:
        info, nodes = self._info, self._made.nodes
        if info.kind is StateKind.TIMERS:
            nodes["value"] = self._timer()
            self._key_and_namespace()
            return
        nodes["namespace"] = self._value(info.namespace, self._table)
        nodes["key"] = self._key()
        match info.kind:
            case StateKind.MAP:
                assert info.map_key is not None
                column, table = self._list_column(self._table)
                with_elements = self._begin_list(column, table)
                nodes["map_key"] = self._value(info.map_key, table)
                self._map_value(table)
                self._end_list(with_elements, column, table)
                self._made.elements = Node("list", column, self._table)
            case StateKind.LIST:
                column, table = self._list_column(self._table)
                with_elements = self._begin_list(column, table)
                self._elements_of_list(column, table)
                self._end_list(with_elements, column, table)
                self._made.not_empty = nodes["value"]
            case _:
                self._with_access(self._table)

    def _key_and_namespace(self) -> None:
        self._made.nodes["key"] = self._key()
        self._made.nodes["namespace"] = self._value(self._info.namespace, self._table)

    def _key(self) -> Node:
        if key_group_of(self._info.key, self._max_parallelism) is None:
            return self._value(self._info.key, self._table)
        self._hashes = self._key_hashes
        node = self._value(self._info.key, self._table)
        self._hashes = None
        return node

    def _timer(self) -> Node:
        return self._integer(self._table, 8, "timer")

    def _with_access(self, table: int) -> None:
        """A value, with TTL after the time of its last access."""
        if self._info.ttl:
            self._made.nodes["last_access"] = self._integer(table, 8)
        self._made.nodes["value"] = self._value(self._info.value, table)

    def _map_value(self, table: int, ends: bool = False) -> None:
        """Behind a flag; a null may have anything behind it in canonical form."""
        flag = self._op(k.FLAG, len(self._made.columns), needs=1, b=1)
        self._with_access(table)
        if ends:
            self._op(k.VALUE_END)
        self._jump_at_null(flag)

    def _elements_of_list(self, column: int, table: int) -> None:
        self._with_access(table)
        for name in ("value", "last_access"):
            if name in self._made.nodes:
                element = self._made.nodes[name]
                self._made.nodes[name] = Node("list", column, self._table, (element,))

    # -- operations and columns ------------------------------------------------------------------

    def _op(
        self,
        op: int,
        column: int = 0,
        *,
        needs: int = 0,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        d: int = 0,
        e: int = 0,
    ) -> int:
        self._made.ops.append([op, column, needs, a, b, c, d, e])
        return len(self._made.ops) - 1

    def _column(self, kind: int, table: int, child: int = 0) -> int:
        if len(self._made.columns) == _MOST_COLUMNS:
            raise Unknown("very many columns")
        self._made.columns.append([kind, table, child])
        return len(self._made.columns) - 1

    def _integer(self, table: int, size: int, form: str = "long") -> Node:
        column = self._column(k.NUMBER, table)
        self._op(k.INTEGER, column, needs=size, a=size)
        return Node(form, column, table)

    def _jump_at_null(self, flag: int) -> None:
        """To here; null is in all columns that came since the operation ``flag``."""
        self._made.ops[flag][3] = len(self._made.columns) - 1
        self._made.ops[flag][5] = len(self._made.ops)

    def _list_column(self, table: int) -> tuple[int, int]:
        """A list's column, and the table of its elements."""
        elements = self._made.tables
        self._made.tables += 1
        return self._column(k.LIST, table, elements), elements

    def _begin_list(self, column: int, table: int) -> int:
        self._depth += 1
        if self._depth > MOST_LISTS:
            raise Unknown("lists in lists")
        return self._op(k.LIST_OF, column, needs=4, a=table)

    def _end_list(self, begin: int, column: int, table: int) -> None:
        self._op(k.NEXT, column, a=table, b=begin + 1)
        self._made.ops[begin][4] = len(self._made.ops)
        self._depth -= 1

    # -- values ----------------------------------------------------------------------------------

    def _value(self, type_: types.Type, table: int, not_null: bool = False) -> Node:
        """``not_null``: as a map's key, which Arrow's may not be."""
        match type_:
            case types.Scalar(kind, mutable=False):
                return self._scalar(kind, table, not_null)
            case types.PrimitiveArray(Kind.BYTE):
                return self._sized(table, "bytes")
            case types.PrimitiveArray(element):
                return self._list(types.Scalar(element), table)
            case types.JavaEnum(_, constants):
                node = self._integer(table, 4)
                return self._checked(Node("enum", node.column, table, constants=constants))
            case types.Struct(_, fields) if fields:
                if self._hashes is not None and type_ is not self._info.key:
                    raise Unknown("a tuple in a key's tuple")
                column = self._column(k.STRUCT, table)
                parts = tuple(self._value(part, table) for _, part in fields)
                return Node("struct", column, table, parts)
            case types.List(element):
                return self._list(element, table)
            case types.NullableList(element, null):
                return self._list(element, table, null)
            case types.Map(key, value, null_keys=False) if not isinstance(
                column_type(type_), PairsOf
            ):
                return self._map(key, value, table)
            case types.Nullable(inner, padding) if not not_null and self._hashes is None:
                flag = self._op(k.FLAG, len(self._made.columns), needs=1, b=1, e=padding)
                node = self._value(inner, table)
                self._jump_at_null(flag)
                return node
            case types.Pojo() if not not_null and not (type_.registered or type_.subclasses):
                return self._pojo(type_, table)
            case types.Sql(sql):
                return self._sql(sql, table)
            case _:
                raise Unknown(type(type_).__name__)

    def _scalar(self, kind: Kind, table: int, not_null: bool) -> Node:
        if kind is Kind.STRING:
            hashed = self._hashes is not None
            column = self._column(k.TEXT, table)
            if self._hashes is not None:
                self._hashes.append(Node("hash", self._column(k.NUMBER, table), table))
            self._op(k.STRING, column, needs=1, a=hashed, b=not_null)
            return Node("text", column, table)
        if kind in (Kind.VOID_NAMESPACE, Kind.GLOBAL_WINDOW):
            return self._integer(table, 1, "nothing")
        if kind in (Kind.TIME_WINDOW, Kind.COUNT_WINDOW):
            column = self._column(k.STRUCT, table)
            count = 2 if kind is Kind.TIME_WINDOW else 1
            return Node(
                "struct", column, table, tuple(self._integer(table, 8) for _ in range(count))
            )
        if kind not in _SIZES or (kind in _MAY_BE_NULL and (not_null or self._hashes is not None)):
            raise Unknown(kind.name)
        form, *sizes = _SIZES[kind]
        node, *_ = [self._integer(table, size, form) for size in sizes]
        if self._hashes is not None:
            self._hashes.append(node)
        return self._checked(node)

    def _sized(self, table: int, form: str, constants: tuple[int, ...] = ()) -> Node:
        column = self._column(k.TEXT, table)
        self._op(k.SIZED, column, needs=4)
        return self._checked(Node(form, column, table, constants=constants))

    def _list(self, element: types.Type, table: int, null: int | None = None) -> Node:
        column, elements = self._list_column(table)
        begin = self._begin_list(column, elements)
        if null is None:
            part = self._value(element, elements)
        else:
            flag = self._op(k.FLAG, len(self._made.columns), needs=1, b=null, d=1 - null)
            part = self._value(element, elements)
            self._jump_at_null(flag)
        self._end_list(begin, column, elements)
        return Node("list", column, table, (part,))

    def _map(self, key: types.Type, value: types.Type, table: int) -> Node:
        column, elements = self._list_column(table)
        begin = self._begin_list(column, elements)
        name = self._value(key, elements, not_null=True)
        flag = self._op(k.FLAG, len(self._made.columns), needs=1, b=1)
        part = self._value(value, elements)
        self._jump_at_null(flag)
        self._end_list(begin, column, elements)
        return Node("map", column, table, (name, part))

    def _pojo(self, type_: types.Pojo, table: int) -> Node:
        whole = self._op(k.FLAG, len(self._made.columns), needs=1, b=1, d=2)
        column = self._column(k.STRUCT, table)
        parts = []
        for name, part in type_.fields:
            flag = self._op(k.FLAG, len(self._made.columns), needs=1, b=1)
            node = self._value(part, table)
            self._jump_at_null(flag)
            if not name.startswith(types.MISSING_FIELD):
                parts.append(node)
        if not parts or len({name for name, _ in type_.fields}) < len(type_.fields):
            raise Unknown("a POJO without fields, or with two of one name")
        self._jump_at_null(whole)
        return Node("struct", column, table, tuple(parts))

    # -- SQL -------------------------------------------------------------------------------------

    def _sql(self, type_: types.SqlType, table: int) -> Node:
        match type_:
            case types.SqlRow(fields) if fields:
                return self._row(fields, table)
            case types.SqlScalar(SqlKind.STRING):
                return self._sized(table, "utf8")
            case types.SqlScalar(SqlKind.RAW):
                return self._sized(table, "bytes")
            case types.SqlDecimal(precision) if precision <= MAX_COMPACT_DECIMAL:
                node = self._integer(table, 8)
                return self._checked(Node("decimal", node.column, table, (), (10**precision,)))
            case types.SqlDecimal(precision):
                return self._sized(table, "long_decimal", (10**precision,))
            case types.SqlTimestamp(precision) if precision <= MAX_COMPACT_TIMESTAMP:
                return self._checked(self._integer(table, 8, "millis"))
            case types.SqlTimestamp():
                node, _ = (self._integer(table, size, "millis_nanos") for size in (8, 4))
                return self._checked(node)
            case _:
                raise Unknown(type(type_).__name__)

    def _row(self, fields: Sequence[tuple[str, types.SqlType]], table: int) -> Node:
        column = self._column(k.STRUCT, table)
        if self._hashes is not None:
            self._hashes.append(Node("hash", self._column(k.NUMBER, table), table))
        width = (len(fields) + 8 + 63) // 64 * 8
        fixed = width + 8 * len(fields)
        self._op(k.ROW, column, needs=4, a=fixed, b=self._hashes is not None)
        parts = tuple(
            self._slot(part, 8 + place, width + 8 * place, table)
            for place, (_, part) in enumerate(fields)
        )
        return Node("struct", column, table, parts)

    def _slot(self, type_: types.SqlType, bit: int, byte: int, table: int) -> Node:
        match type_:
            case types.SqlScalar(SqlKind.STRING):
                return self._slot_sized("utf8", bit, byte, table)
            case types.SqlScalar(SqlKind.BYTES | SqlKind.RAW):
                return self._slot_sized("bytes", bit, byte, table)
            case types.SqlScalar(kind) if kind in _SLOTS:
                size, form = _SLOTS[kind]
                return self._slot_integer(form, bit, byte, size, table)
            case types.SqlDecimal(precision) if precision <= MAX_COMPACT_DECIMAL:
                node = self._slot_integer("long", bit, byte, 8, table)
                return self._checked(Node("decimal", node.column, table, (), (10**precision,)))
            case types.SqlDecimal(precision):
                # What the slot points at, also where it is short: never in the slot.
                self._slot_integer("place", bit, byte, 8, table)
                return self._slot_sized("long_decimal", bit, byte, table, (10**precision,))
            case types.SqlTimestamp(precision) if precision <= MAX_COMPACT_TIMESTAMP:
                return self._slot_integer("millis", bit, byte, 8, table)
            case types.SqlTimestamp():
                self._slot_integer("int", bit, byte, 4, table)
                return self._slot_sized("slot_millis_nanos", bit, byte, table, size=8)
            case _:
                raise Unknown(type(type_).__name__)

    def _slot_integer(self, form: str, bit: int, byte: int, size: int, table: int) -> Node:
        column = self._column(k.NUMBER, table)
        self._op(k.SLOT_INTEGER, column, a=bit, b=byte, c=size)
        return self._checked(Node(form, column, table))

    def _slot_sized(
        self,
        form: str,
        bit: int,
        byte: int,
        table: int,
        constants: tuple[int, ...] = (),
        size: int = 0,
    ) -> Node:
        column = self._column(k.TEXT, table)
        self._op(k.SLOT_SIZED, column, a=bit, b=byte, c=size)
        return self._checked(Node(form, column, table, constants=constants))

    def _checked(self, node: Node) -> Node:
        if node.form in CHECKS:
            self._made.checks.append(node)
        return node


# Of numbers in big-endian form: what they are, and how many bytes; of two columns both.
_SIZES: dict[Kind, tuple[Any, ...]] = {
    Kind.BOOLEAN: ("flag", 1),
    Kind.BYTE: ("int", 1),
    Kind.SHORT: ("int", 2),
    Kind.INT: ("int", 4),
    Kind.LONG: ("long", 8),
    Kind.FLOAT: ("float", 4),
    Kind.DOUBLE: ("double", 8),
    Kind.DATE: ("date", 8),
    Kind.SQL_DATE: ("date", 8),
    Kind.SQL_TIME: ("date", 8),
    Kind.SQL_TIMESTAMP: ("sql_timestamp", 8, 4),
    Kind.INSTANT: ("instant", 8, 4),
}
_MAY_BE_NULL = {Kind.DATE, Kind.SQL_DATE, Kind.SQL_TIME, Kind.SQL_TIMESTAMP, Kind.INSTANT}
# Of those in the slot of a binary row.
_SLOTS = {
    SqlKind.BOOLEAN: (1, "truth"),
    SqlKind.TINYINT: (1, "int"),
    SqlKind.SMALLINT: (2, "int"),
    SqlKind.INT: (4, "int"),
    SqlKind.BIGINT: (8, "long"),
    SqlKind.FLOAT: (4, "float"),
    SqlKind.DOUBLE: (8, "double"),
    SqlKind.DATE: (4, "int"),
    SqlKind.INTERVAL_MONTHS: (4, "int"),
    SqlKind.INTERVAL_MILLIS: (8, "long"),
}
