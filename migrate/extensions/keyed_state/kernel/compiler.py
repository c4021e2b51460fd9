"""Compile the types of a keyed state into a program for the kernel.

If the types of a state cannot be compiled, the plain reader (``decoder.keyed_state``) reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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
from migrate.extensions.keyed_state.kernel import operations
from migrate.extensions.keyed_state.kernel.program import (
    CHECKS,
    MAX_COLUMNS,
    MAX_LISTS,
    CannotCompile,
    Keys,
    Node,
    Program,
)
from migrate.extensions.keyed_state.type_mapping import column_type
from migrate.model.column_types import PairsOf


def compile_program(
    states: Sequence[StateInfo], number: int, max_parallelism: int, heap: bool
) -> Program:
    """Return the program that reads ``states[number]``.

    ``heap`` is True if the entries are in the heap backend's format instead of the canonical
    format.

    Raises:
        CannotCompile: the kernel cannot read the types of this state.
    """
    program = Program([[-1, 0] for _ in states])
    compiler = _Compiler(program, states[number], max_parallelism)
    compiler.add_entry(number, heap)
    program.nodes = compiler.nodes
    program.map_entries, program.list_elements = compiler.map_entries, compiler.list_elements
    # In the heap backend's format, the states can be in any order, so the kernel must also read
    # past the entries of the other states.
    for other, info in enumerate(states if heap else ()):
        if other != number and info.reason is None:
            attempt = program.copy()
            with suppress(CannotCompile):
                _Compiler(attempt, info, max_parallelism).add_entry(other, heap)
                program = attempt
    return program


class _Compiler:
    """A compiler for one state, which adds the state's operations and columns to a program.

    Attributes:
        nodes, map_entries, list_elements: as in ``Program``, for this state.
    """

    def __init__(self, program: Program, info: StateInfo, max_parallelism: int) -> None:
        self.nodes: dict[str, Node] = {}
        self.map_entries: Node | None = None
        self.list_elements: Node | None = None
        self._program = program
        self._info = info
        self._max_parallelism = max_parallelism
        self._table = self._add_table()
        self._in_hashed_key = False
        self._key_hashes: list[Node] = []
        self._depth = 0

    # -- entries ---------------------------------------------------------------------------------

    def add_entry(self, number: int, heap: bool) -> None:
        """Add the operations that read an entry of the state with this number."""
        self._program.starts[number] = [len(self._program.ops), self._table]
        prefix = None
        if heap:
            self._add_heap_entry()
        else:
            size = prefix_bytes(self._max_parallelism)
            prefix = (self._add_number("long", size), size)
            self._add_canonical_entry()
        self._add_op(operations.END, a=self._table)
        self._program.keys.append(Keys(self._table, prefix, tuple(self._key_hashes)))

    def _add_canonical_entry(self) -> None:
        """Add an entry in the canonical format: a key and a value, each preceded by its length."""
        info, nodes = self._info, self.nodes
        if not (has_fixed_length(info.key) or has_fixed_length(info.namespace)):
            raise CannotCompile("lengths after key and namespace")
        if info.kind is StateKind.TIMERS:
            nodes["value"] = self._add_number("timer", 8)
        self._add_key_and_namespace()
        if info.map_key is not None:
            nodes["map_key"] = self._add_value(info.map_key)
        first = self._add_op(operations.KEY_END) + 1
        match info.kind:
            case StateKind.TIMERS:
                return
            case StateKind.MAP:
                self._add_map_value(has_length=True)
                return
            case StateKind.LIST:
                with self._add_elements() as (column, table):
                    self._add_value_with_access()
                    self._add_op(operations.NEXT, column, a=table, b=first, c=1)
                self._put_into_list(column)
            case _:
                self._add_value_with_access()
        self._add_op(operations.VALUE_END)

    def _add_heap_entry(self) -> None:
        """Add an entry in the heap backend's format (without lengths)."""
        info, nodes = self._info, self.nodes
        if info.kind is StateKind.TIMERS:
            nodes["value"] = self._add_number("timer", 8)
            self._add_key_and_namespace()
            return
        nodes["namespace"] = self._add_value(info.namespace)
        nodes["key"] = self._add_key()
        match info.kind:
            case StateKind.MAP:
                assert info.map_key is not None
                with self._add_list_of() as column:
                    nodes["map_key"] = self._add_value(info.map_key)
                    self._add_map_value()
                self.map_entries = self._make_node("list", column)
            case StateKind.LIST:
                with self._add_list_of() as column:
                    self._add_value_with_access()
                self._put_into_list(column)
                self.list_elements = nodes["value"]
            case _:
                self._add_value_with_access()

    def _add_key_and_namespace(self) -> None:
        self.nodes["key"] = self._add_key()
        self.nodes["namespace"] = self._add_value(self._info.namespace)

    def _add_key(self) -> Node:
        self._in_hashed_key = key_group_of(self._info.key, self._max_parallelism) is not None
        node = self._add_value(self._info.key)
        self._in_hashed_key = False
        return node

    def _add_value_with_access(self) -> None:
        """Add a value. If the state has a TTL, first add the time of the last access."""
        if self._info.ttl:
            self.nodes["last_access"] = self._add_number("long", 8)
        self.nodes["value"] = self._add_value(self._info.value)

    def _add_map_value(self, has_length: bool = False) -> None:
        """Add a null flag and a value.

        Args:
            has_length: True in the canonical format, which stores the length of the value. The
                program then checks this length, unless the value is null.
        """
        with self._add_nullable():
            self._add_value_with_access()
            if has_length:
                self._add_op(operations.VALUE_END)

    def _put_into_list(self, column: int) -> None:
        """Wrap the nodes ``value`` and ``last_access`` in list nodes."""
        nodes = self.nodes
        for name in ("value", "last_access"):
            if name in nodes:
                nodes[name] = self._make_node("list", column, (nodes[name],))

    # -- operations and columns ------------------------------------------------------------------

    def _add_op(
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
        """Add an operation and return its index; for the arguments, see ``operations``."""
        self._program.ops.append([op, column, needs, a, b, c, d, e])
        return len(self._program.ops) - 1

    def _add_table(self) -> int:
        self._program.table_count += 1
        return self._program.table_count - 1

    def _add_column(self, kind: int, child: int = 0) -> int:
        if len(self._program.columns) == MAX_COLUMNS:
            raise CannotCompile("very many columns")
        self._program.columns.append([kind, self._table, child])
        return len(self._program.columns) - 1

    def _make_node(
        self,
        form: str,
        column: int,
        parts: tuple[Node, ...] = (),
        constants: tuple[str | int, ...] = (),
    ) -> Node:
        node = Node(form, column, self._table, parts, constants)
        if form in CHECKS:
            self._program.checks.append(node)
        return node

    def _add_number(self, form: str, *sizes: int, constants: tuple[str | int, ...] = ()) -> Node:
        """Add a number that consists of big-endian integers, and a column for each integer."""
        first = len(self._program.columns)
        for size in sizes:
            self._add_op(
                operations.INTEGER, self._add_column(operations.NUMBER), needs=size, a=size
            )
        return self._make_node(form, first, constants=constants)

    def _maybe_add_hash(self) -> bool:
        """If the key's hash is needed, add a column for the hashes of the previous column.

        Return whether a column was added.
        """
        if not self._in_hashed_key:
            return False
        self._key_hashes.append(self._make_node("hash", self._add_column(operations.NUMBER)))
        return True

    @contextmanager
    def _add_nullable(
        self, null_byte: int = 1, value_byte: int = 0, padding: int = 0
    ) -> Iterator[None]:
        """Add a null flag for the value that the ``with`` block adds.

        For a null, the kernel skips the block's operations and sets the block's columns to null.
        For the arguments, see ``operations.FLAG``.
        """
        columns, ops = self._program.columns, self._program.ops
        flag = self._add_op(
            operations.FLAG, len(columns), needs=1, b=null_byte, d=value_byte, e=padding
        )
        yield
        ops[flag][3] = len(columns) - 1
        ops[flag][5] = len(ops)

    @contextmanager
    def _add_elements(self) -> Iterator[tuple[int, int]]:
        """Add a list's column, and a table for the columns that the ``with`` block adds.

        Yields:
            The column and the table.
        """
        table, elements = self._table, self._add_table()
        column = self._add_column(operations.LIST, elements)
        self._table = elements
        yield column, elements
        self._table = table

    @contextmanager
    def _add_list_of(self) -> Iterator[int]:
        """Add a list whose elements the ``with`` block adds; yield the list's column."""
        self._depth += 1
        if self._depth > MAX_LISTS:
            raise CannotCompile("lists in lists")
        with self._add_elements() as (column, table):
            begin = self._add_op(operations.LIST_OF, column, needs=4, a=table)
            yield column
            self._add_op(operations.NEXT, column, a=table, b=begin + 1)
            self._program.ops[begin][4] = len(self._program.ops)
        self._depth -= 1

    # -- values ----------------------------------------------------------------------------------

    def _add_value(self, type_: types.Type, not_null: bool = False) -> Node:
        """Add a value; ``not_null`` is for map keys, because Arrow does not allow null keys."""
        match type_:
            case types.Scalar(kind, mutable=False):
                return self._add_scalar(kind, not_null)
            case types.PrimitiveArray(Kind.BYTE):
                return self._add_sized("bytes")
            case types.PrimitiveArray(element):
                return self._add_list(types.Scalar(element))
            case types.JavaEnum(_, constants):
                return self._add_number("enum", 4, constants=constants)
            case types.Struct(_, fields) if fields:
                if self._in_hashed_key and type_ is not self._info.key:
                    raise CannotCompile("a tuple in a key's tuple")
                column = self._add_column(operations.STRUCT)
                return self._make_node(
                    "struct", column, tuple(self._add_value(part) for _, part in fields)
                )
            case types.List(element):
                return self._add_list(element)
            case types.NullableList(element, null):
                return self._add_list(element, null)
            case types.Map(key, value, null_keys=False) if not isinstance(
                column_type(type_), PairsOf
            ):
                return self._add_map(key, value)
            case types.Nullable(inner, padding) if not not_null and not self._in_hashed_key:
                with self._add_nullable(padding=padding):
                    return self._add_value(inner)
            case types.Pojo() if not not_null and not (type_.registered or type_.subclasses):
                return self._add_pojo(type_)
            case types.Sql(sql):
                return self._add_sql(sql)
            case _:
                raise CannotCompile(type(type_).__name__)

    def _add_scalar(self, kind: Kind, not_null: bool) -> Node:
        if kind is Kind.STRING:
            column = self._add_column(operations.TEXT)
            self._add_op(operations.STRING, column, needs=1, a=self._maybe_add_hash(), b=not_null)
            return self._make_node("text", column)
        if kind in (Kind.VOID_NAMESPACE, Kind.GLOBAL_WINDOW):
            return self._add_number("nothing", 1)
        if kind in (Kind.TIME_WINDOW, Kind.COUNT_WINDOW):
            column = self._add_column(operations.STRUCT)
            count = 2 if kind is Kind.TIME_WINDOW else 1
            return self._make_node(
                "struct", column, tuple(self._add_number("long", 8) for _ in range(count))
            )
        if kind not in _SIZES or (kind in _NULLABLE and (not_null or self._in_hashed_key)):
            raise CannotCompile(kind.name)
        node = self._add_number(*_SIZES[kind])
        if self._in_hashed_key:
            self._key_hashes.append(node)
        return node

    def _add_sized(self, form: str, constants: tuple[int, ...] = ()) -> Node:
        column = self._add_column(operations.TEXT)
        self._add_op(operations.SIZED, column, needs=4)
        return self._make_node(form, column, constants=constants)

    def _add_list(self, element: types.Type, null: int | None = None) -> Node:
        with self._add_list_of() as column:
            if null is None:
                part = self._add_value(element)
            else:
                with self._add_nullable(null, 1 - null):
                    part = self._add_value(element)
        return self._make_node("list", column, (part,))

    def _add_map(self, key: types.Type, value: types.Type) -> Node:
        with self._add_list_of() as column:
            key_node = self._add_value(key, not_null=True)
            with self._add_nullable():
                value_node = self._add_value(value)
        return self._make_node("map", column, (key_node, value_node))

    def _add_pojo(self, type_: types.Pojo) -> Node:
        parts = []
        with self._add_nullable(value_byte=2):
            column = self._add_column(operations.STRUCT)
            for name, part in type_.fields:
                with self._add_nullable():
                    node = self._add_value(part)
                if not name.startswith(types.MISSING_FIELD):
                    parts.append(node)
        if not parts or len({name for name, _ in type_.fields}) < len(type_.fields):
            raise CannotCompile("a POJO without fields, or with two of one name")
        return self._make_node("struct", column, tuple(parts))

    # -- SQL -------------------------------------------------------------------------------------

    def _add_sql(self, type_: types.SqlType) -> Node:
        match type_:
            case types.SqlRow(fields) if fields:
                return self._add_row(fields)
            case types.SqlScalar(SqlKind.STRING):
                return self._add_sized("utf8")
            case types.SqlScalar(SqlKind.RAW):
                return self._add_sized("bytes")
            case types.SqlDecimal(precision) if precision <= MAX_COMPACT_DECIMAL:
                return self._add_number("decimal", 8, constants=(10**precision,))
            case types.SqlDecimal(precision):
                return self._add_sized("long_decimal", (10**precision,))
            case types.SqlTimestamp(precision) if precision <= MAX_COMPACT_TIMESTAMP:
                return self._add_number("millis", 8)
            case types.SqlTimestamp():
                return self._add_number("millis_nanos", 8, 4)
            case _:
                raise CannotCompile(type(type_).__name__)

    def _add_row(self, fields: Sequence[tuple[str, types.SqlType]]) -> Node:
        column = self._add_column(operations.STRUCT)
        width = (len(fields) + 8 + 63) // 64 * 8
        fixed = width + 8 * len(fields)
        self._add_op(operations.ROW, column, needs=4, a=fixed, b=self._maybe_add_hash())
        parts = tuple(
            self._add_slot(part, 8 + index, width + 8 * index)
            for index, (_, part) in enumerate(fields)
        )
        return self._make_node("struct", column, parts)

    def _add_slot(self, type_: types.SqlType, bit: int, byte: int) -> Node:
        match type_:
            case types.SqlScalar(SqlKind.STRING):
                return self._add_slot_sized("utf8", bit, byte)
            case types.SqlScalar(SqlKind.BYTES | SqlKind.RAW):
                return self._add_slot_sized("bytes", bit, byte)
            case types.SqlScalar(kind) if kind in _SLOTS:
                size, form = _SLOTS[kind]
                return self._add_slot_integer(form, bit, byte, size)
            case types.SqlDecimal(precision) if precision <= MAX_COMPACT_DECIMAL:
                return self._add_slot_integer("decimal", bit, byte, 8, (10**precision,))
            case types.SqlDecimal(precision):
                # Even if such a decimal has only a few bytes, the bytes are never in the slot. The
                # slot contains a pointer to the bytes.
                self._add_slot_integer("pointer", bit, byte, 8)
                return self._add_slot_sized("long_decimal", bit, byte, (10**precision,))
            case types.SqlTimestamp(precision) if precision <= MAX_COMPACT_TIMESTAMP:
                return self._add_slot_integer("millis", bit, byte, 8)
            case types.SqlTimestamp():
                self._add_slot_integer("int", bit, byte, 4)
                return self._add_slot_sized("slot_millis_nanos", bit, byte, size=8)
            case _:
                raise CannotCompile(type(type_).__name__)

    def _add_slot_integer(
        self, form: str, bit: int, byte: int, size: int, constants: tuple[int, ...] = ()
    ) -> Node:
        column = self._add_column(operations.NUMBER)
        self._add_op(operations.SLOT_INTEGER, column, a=bit, b=byte, c=size)
        return self._make_node(form, column, constants=constants)

    def _add_slot_sized(
        self, form: str, bit: int, byte: int, constants: tuple[int, ...] = (), size: int = 0
    ) -> Node:
        column = self._add_column(operations.TEXT)
        self._add_op(operations.SLOT_SIZED, column, a=bit, b=byte, c=size)
        return self._make_node(form, column, constants=constants)


# For each kind of number, its form and the sizes in bytes of its big-endian integers.
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
_NULLABLE = {Kind.DATE, Kind.SQL_DATE, Kind.SQL_TIME, Kind.SQL_TIMESTAMP, Kind.INSTANT}
# For each kind of number in a slot of a binary row, its size in bytes and its form.
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
