r"""A reader of one map of strings from an Avro file.

An object container file begins with ``Obj\x01``, a map of metadata (``avro.schema``, the schema as
JSON; ``avro.codec``), and a sync marker of 16 bytes. Then come blocks. A block consists of a
``long`` number of objects, a ``long`` size in bytes, the objects, and the sync marker.

A ``long`` is a zigzag varint. Strings and bytes begin with their length. An array or a map is a
series of runs; each run begins with a ``long`` number of items, and a run of 0 items is the last. A
negative number -n means n items; the size of the run in bytes follows it. A union begins with the
index of its branch.

The schema in the file may be hostile, so this reader limits nesting and counts. fastavro 1.13.1
does not: a file of 125 bytes with a record type that contains itself ends the process (SIGSEGV),
and a file of 163 bytes with an array of 2**40 nulls is read for ever.

Source: the Avro specification 1.12.0, object container files, binary encoding.
"""

from __future__ import annotations

from typing import Any

from migrate.sinks.directory import UnreadableSink, parse

_MAGIC = b"Obj\x01"
_MARKER = 16
_LONGEST_VARINT = 10
# The deepest nesting of a schema that is read.
_DEEPEST = 32
_FIXED_SIZE = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_TEXTS: dict[str, object] = {"type": "map", "values": "bytes"}


class _Damaged(Exception):
    """The bytes do not match the schema, or the schema is invalid."""


def is_avro(content: bytes) -> bool:
    return content.startswith(_MAGIC)


def read_map(content: bytes, field: str, what: str) -> dict[str, str]:
    """Read a field of the last record in a file; the field is a map of strings, or null.

    Raises:
        UnreadableSink: the file is damaged or compressed, or does not contain records.
    """
    try:
        return _Reader(content, len(_MAGIC)).file(field, what)
    except (_Damaged, UnicodeDecodeError) as error:
        raise UnreadableSink(f"{what}: {error}") from error


class _Reader:
    """The content of a file, a position in it, and the named types of its schema."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self._at = at
        self._named: dict[str, dict[str, Any]] = {}

    def file(self, field: str, what: str) -> dict[str, str]:
        metadata = self._value(_TEXTS, 0, keep=True)
        if metadata.get("avro.codec", b"null") != b"null":
            raise _Damaged("a compressed file is not read here")
        schema = parse(metadata.get("avro.schema", b""), what)
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise _Damaged("no file of records")
        self._take(_MARKER)
        last: dict[str, str] = {}
        while self._at < len(self._content):
            records, _ = self._long(), self._long()
            self._check_count(records)
            for _ in range(records):
                last = self._field(schema, field)
            self._take(_MARKER)
        return last

    def _field(self, schema: dict[str, Any], name: str) -> dict[str, str]:
        texts: dict[str, str] = {}
        for field in _list(schema.get("fields")):
            value = self._value(_of(field, "type"), 0, keep=_of(field, "name") == name)
            if value is not None:
                texts = {key: text.decode() for key, text in value.items()}
        return texts

    def _value(self, schema: Any, depth: int, keep: bool = False) -> Any:
        """Read a value; return it only if it is text or a map of texts, and ``keep`` is set."""
        if depth > _DEEPEST:
            raise _Damaged("a schema nested too deeply")
        if isinstance(schema, list):
            branch = self._long()
            if not 0 <= branch < len(schema):
                raise _Damaged("no such branch of a union")
            return self._value(schema[branch], depth + 1, keep)
        if isinstance(schema, str):
            if schema in self._named:
                return self._value(self._named[schema], depth + 1, keep)
            schema = {"type": schema}
        kind = _of(schema, "type")
        if isinstance(kind, list | dict):
            return self._value(kind, depth + 1, keep)
        if kind in ("record", "enum", "fixed"):
            self._name(schema)
        if kind in ("int", "long", "enum"):
            self._long()
        elif kind in ("bytes", "string"):
            content = self._take(self._long())
            return content if keep else None
        elif kind == "fixed":
            self._take(_of(schema, "size"))
        elif kind == "record":
            for field in _list(schema.get("fields")):
                self._value(_of(field, "type"), depth + 1)
        elif kind == "array":
            for _ in self._runs():
                self._value(_of(schema, "items"), depth + 1)
        elif kind == "map":
            return self._map(_of(schema, "values"), depth, keep)
        elif kind in _FIXED_SIZE:
            self._take(_FIXED_SIZE[kind])
        else:
            raise _Damaged("a type that is not known")
        return None

    def _map(self, values: Any, depth: int, keep: bool) -> dict[str, bytes] | None:
        entries: dict[str, bytes] = {}
        for _ in self._runs():
            key = self._take(self._long())
            value = self._value(values, depth + 1, keep)
            if isinstance(value, bytes):
                entries[key.decode()] = value
        return entries if keep else None

    def _runs(self) -> Any:
        while count := self._long():
            if count < 0:
                count = -count
                self._long()
            self._check_count(count)
            yield from range(count)

    def _check_count(self, count: int) -> None:
        # Items may have no bytes (null), so a wrong count could loop for ever.
        if not 0 <= count <= len(self._content) - self._at:
            raise _Damaged("more items than there are bytes")

    def _name(self, schema: dict[str, Any]) -> None:
        name = str(schema.get("name", ""))
        self._named[name] = schema
        if namespace := schema.get("namespace"):
            self._named[f"{namespace}.{name}"] = schema

    def _long(self) -> int:
        value = 0
        for place in range(_LONGEST_VARINT):
            (byte,) = self._take(1)
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise _Damaged("a number without an end")

    def _take(self, size: Any) -> bytes:
        if type(size) is not int or not 0 <= size <= len(self._content) - self._at:
            raise _Damaged(f"it ends too early, at byte {self._at}")
        taken = self._content[self._at : self._at + size]
        self._at += size
        return taken


def _of(schema: Any, name: str) -> Any:
    if not isinstance(schema, dict) or name not in schema:
        raise _Damaged(f"a schema without {name}")
    return schema[name]


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _Damaged("a record without fields")
    return value
