"""Parse the JSON of an Avro schema into the classes of ``decoder.avro.types``.

A schema can refer to a named type (record, enum, or fixed) only within or after the type's
definition. Logical types are ignored, except for those in ``_LOGICAL`` and for decimal on a fixed.

Source: Apache Avro 1.11 specification (1.12 for nanoseconds); org.apache.avro.Schema @ 1.11.3.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from decoder.avro import types as avro_types
from decoder.cursor import Cursor

# The maximum nesting depth of a schema; the Python stack allows more.
_MAX_DEPTH = 32
_PRIMITIVES = {kind.value: kind for kind in avro_types.AvroKind}
_LOGICAL = {
    ("int", "date"),
    ("int", "time-millis"),
    ("long", "time-micros"),
    ("long", "timestamp-millis"),
    ("long", "timestamp-micros"),
    ("long", "timestamp-nanos"),
    ("long", "local-timestamp-millis"),
    ("long", "local-timestamp-micros"),
    ("long", "local-timestamp-nanos"),
    ("bytes", "decimal"),
}
_MAX_SCALE = 1 << 16

_FIELD = "Avro schema"


def avro_schema(text: str, cursor: Cursor) -> avro_types.AvroType:
    """Parse a schema from its JSON; errors report the position of ``cursor``.

    Raises:
        DecodeError: the string is not an Avro schema.
    """
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        cursor.fail("not an Avro schema: invalid JSON", _FIELD)
    return _Parser(cursor).type(parsed, "", 0)


class _Parser:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._named: set[str] = set()

    def type(self, schema: Any, namespace: str, depth: int) -> avro_types.AvroType:
        if depth > _MAX_DEPTH:
            self._fail(f"types nested more than {_MAX_DEPTH} deep")
        if isinstance(schema, list):
            if not schema:
                self._fail("a union without branches")
            return avro_types.AvroUnion(
                tuple(self.type(branch, namespace, depth + 1) for branch in schema)
            )
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if not isinstance(schema, dict):
            self._fail("a type must be a name, an object, or a list")
        kind = schema.get("type")
        match kind:
            case "record" | "error":
                return self._record(schema, namespace, depth)
            case "enum":
                name = self._define(schema, namespace)
                symbols = schema.get("symbols")
                if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
                    self._fail("the symbols of an enum are not names")
                return avro_types.AvroEnum(name, tuple(symbols))
            case "fixed":
                return self._fixed(schema, namespace)
            case "array":
                return avro_types.AvroArray(self.type(schema.get("items"), namespace, depth + 1))
            case "map":
                return avro_types.AvroMap(self.type(schema.get("values"), namespace, depth + 1))
            case str() if kind in _PRIMITIVES:
                return self._primitive(kind, schema)
            case _:
                return self.type(kind, namespace, depth + 1)

    def _by_name(self, name: str, namespace: str) -> avro_types.AvroType:
        if name in _PRIMITIVES:
            return avro_types.AvroScalar(_PRIMITIVES[name])
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self._named:
            self._fail(f"no type has the name {name!r}")
        return avro_types.AvroReference(full)

    def _primitive(self, kind: str, schema: dict[str, Any]) -> avro_types.AvroScalar:
        logical = schema.get("logicalType")
        if not isinstance(logical, str) or (kind, logical) not in _LOGICAL:
            return avro_types.AvroScalar(_PRIMITIVES[kind])
        return avro_types.AvroScalar(
            _PRIMITIVES[kind], logical, self._scale(schema), _precision(schema)
        )

    def _record(self, schema: dict[str, Any], namespace: str, depth: int) -> avro_types.AvroRecord:
        name = self._define(schema, namespace)
        inner = name.rpartition(".")[0]
        fields = schema.get("fields")
        if not isinstance(fields, list):
            self._fail("a record without fields")
        named = []
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                self._fail("a field without a name")
            named.append((field["name"], self.type(field.get("type"), inner, depth + 1)))
        return avro_types.AvroRecord(name, tuple(named))

    def _fixed(self, schema: dict[str, Any], namespace: str) -> avro_types.AvroFixed:
        name = self._define(schema, namespace)
        size = schema.get("size")
        if not isinstance(size, int) or size < 0:
            self._fail("a fixed without a size")
        decimal = schema.get("logicalType") == "decimal"
        if not decimal:
            return avro_types.AvroFixed(name, size)
        return avro_types.AvroFixed(name, size, self._scale(schema), _precision(schema))

    def _define(self, schema: dict[str, Any], namespace: str) -> str:
        name, own = schema.get("name"), schema.get("namespace", namespace)
        if not isinstance(name, str) or not isinstance(own, str):
            self._fail("a type without a name")
        full = name if "." in name or not own else f"{own}.{name}"
        self._named.add(full)
        return full

    def _scale(self, schema: dict[str, Any]) -> int:
        scale = schema.get("scale", 0)
        if not isinstance(scale, int) or not 0 <= scale <= _MAX_SCALE:
            self._fail("the scale of a decimal is out of range")
        return scale

    def _fail(self, problem: str) -> NoReturn:
        self._cursor.fail(f"not an Avro schema: {problem}", _FIELD)


def _precision(schema: dict[str, Any]) -> int | None:
    precision = schema.get("precision")
    return precision if isinstance(precision, int) else None
