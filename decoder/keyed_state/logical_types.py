"""The logical types of Flink SQL, read from the Java objects in a serializer snapshot.

A LogicalType has the fields ``isNullable`` and ``typeRoot``, an enum; its other fields depend on
``typeRoot``. A row's fields are in a Java list.

Source: org.apache.flink.table.types.logical.* @ Flink 2.2.0; java.util.{ArrayList, Arrays,
Collections, CollSer} @ JDK 17.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from decoder.cursor import Cursor
from decoder.errors import ErrorKind
from decoder.keyed_state import types
from decoder.metadata.java_stream import JavaArray, JavaEnum, JavaObject, JavaValue

# The maximum nesting depth, and the maximum number of types in one type. Through references, a
# few bytes could represent a tree of any size.
_MAX_DEPTH = 24
_MAX_TYPES = 10_000

# DecimalType, TimestampType @ 2.2.0
_MAX_PRECISION = 38
_MAX_TIME_PRECISION = 9

_SCALARS = {
    "CHAR": types.SqlKind.STRING,
    "VARCHAR": types.SqlKind.STRING,
    "BOOLEAN": types.SqlKind.BOOLEAN,
    "BINARY": types.SqlKind.BYTES,
    "VARBINARY": types.SqlKind.BYTES,
    "TINYINT": types.SqlKind.TINYINT,
    "SMALLINT": types.SqlKind.SMALLINT,
    "INTEGER": types.SqlKind.INT,
    "BIGINT": types.SqlKind.BIGINT,
    "FLOAT": types.SqlKind.FLOAT,
    "DOUBLE": types.SqlKind.DOUBLE,
    "DATE": types.SqlKind.DATE,
    "TIME_WITHOUT_TIME_ZONE": types.SqlKind.TIME,
    "INTERVAL_YEAR_MONTH": types.SqlKind.INTERVAL_MONTHS,
    "INTERVAL_DAY_TIME": types.SqlKind.INTERVAL_MILLIS,
    "NULL": types.SqlKind.NULL,
    "RAW": types.SqlKind.RAW,
}
_COUNT = types.SqlScalar(types.SqlKind.INT)  # the type of the counts in a MULTISET

_FIELD = "logical type"


def logical_type(value: JavaValue, cursor: Cursor) -> types.SqlType:
    """Convert a LogicalType; errors report the position of ``cursor``.

    Raises:
        DecodeError: the object is not a logical type, or the type's values have an unknown layout.
    """
    return _Converter(cursor).type(value, 0)


class _Converter:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._types = 0

    def type(self, value: JavaValue, depth: int) -> types.SqlType:
        self._types += 1
        if depth > _MAX_DEPTH or self._types > _MAX_TYPES:
            self._fail(f"more than {_MAX_DEPTH} nested types, or {_MAX_TYPES} types in all")
        fields = value.fields if isinstance(value, JavaObject) else {}
        root = fields.get("typeRoot")
        if not isinstance(root, JavaEnum):
            self._fail("not a logical type")
        name = root.constant
        if name in _SCALARS:
            return types.SqlScalar(_SCALARS[name])
        match name:
            case "DECIMAL":
                precision = self._number(fields, "precision", _MAX_PRECISION)
                return types.SqlDecimal(precision, self._number(fields, "scale", precision))
            case "TIMESTAMP_WITHOUT_TIME_ZONE" | "TIMESTAMP_WITH_LOCAL_TIME_ZONE":
                precision = self._number(fields, "precision", _MAX_TIME_PRECISION)
                return types.SqlTimestamp(precision, name == "TIMESTAMP_WITH_LOCAL_TIME_ZONE")
            case "ARRAY":
                return types.SqlArray(self.type(fields.get("elementType"), depth + 1))
            case "MULTISET":
                return types.SqlMap(self.type(fields.get("elementType"), depth + 1), _COUNT)
            case "MAP":
                return types.SqlMap(
                    self.type(fields.get("keyType"), depth + 1),
                    self.type(fields.get("valueType"), depth + 1),
                )
            case "ROW":
                return self._row(self._elements(fields.get("fields")), depth)
            case "STRUCTURED_TYPE":
                return self._row(self._attributes(value, depth), depth)
            case "DISTINCT_TYPE":
                return self.type(fields.get("sourceType"), depth + 1)
            case _:
                self._fail(f"the logical type {name} is not supported", ErrorKind.UNSUPPORTED)

    def _row(self, fields: Sequence[JavaValue], depth: int) -> types.SqlRow:
        """Convert RowField or StructuredAttribute objects, each with ``name`` and ``type``."""
        named = []
        for field in fields:
            parts = field.fields if isinstance(field, JavaObject) else {}
            name = parts.get("name")
            if not isinstance(name, str):
                self._fail("a field of a row without a name")
            named.append((name, self.type(parts.get("type"), depth + 1)))
        return types.SqlRow(tuple(named))

    def _attributes(self, value: JavaValue, depth: int) -> Sequence[JavaValue]:
        """Return the supertypes' attributes, then the type's own (StructuredType.getChildren)."""
        attributes: list[JavaValue] = []
        for _ in range(_MAX_DEPTH):
            if not isinstance(value, JavaObject):
                return attributes
            attributes = [*self._elements(value.fields.get("attributes")), *attributes]
            value = value.fields.get("superType")
        self._fail(f"a structured type with more than {_MAX_DEPTH} ancestors")

    def _elements(self, value: JavaValue) -> Sequence[JavaValue]:
        """Return the elements of a Java list.

        ArrayList and CollSer write their elements with their own ``writeObject`` method. The list
        from Arrays.asList has an array in the ``a`` field. The list from
        Collections.unmodifiableList has another list in the ``list`` field.
        """
        for _ in range(_MAX_DEPTH):
            if isinstance(value, JavaArray):
                return value.elements
            if not isinstance(value, JavaObject):
                break
            if value.written:
                return value.written
            inner = value.fields.get("list", value.fields.get("a"))
            if inner is None:
                return ()  # an empty list, or a list of an unknown class
            value = inner
        self._fail("not a list of fields")

    def _number(self, fields: dict[str, JavaValue], name: str, highest: int) -> int:
        value = fields.get(name)
        if not isinstance(value, int) or not 0 <= value <= highest:
            self._fail(f"the {name} of a type is not between 0 and {highest}: {value!r}")
        return value

    def _fail(self, problem: str, kind: ErrorKind = ErrorKind.CORRUPT) -> NoReturn:
        self._cursor.fail(problem, _FIELD, kind)
