r"""A reader for a single map of strings in an Avro file.

An object container file starts with ``Obj\x01``, a map of metadata (``avro.schema``, the schema as
JSON; ``avro.codec``), and a sync marker of 16 bytes. Blocks follow. A block consists of
the number of objects (a ``long``), their size in bytes (a ``long``), the objects, and the sync
marker.

A ``long`` is a zigzag varint. Strings and bytes start with their length. An array or a map is a
series of runs. Each run starts with a ``long`` number of items; a run of 0 items is the end. A
negative number -n means n items, and is followed by the size of the run in bytes. A union starts
with the index of its branch.

The schema in the file may be hostile, so this reader limits nesting and counts. fastavro 1.13.1
does not limit them. A 125-byte file with a record type that contains itself crashes the process
(SIGSEGV). Reading a 163-byte file with an array of 2**40 nulls takes forever.

Source: the Avro specification 1.12.0, object container files, binary encoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from decoder import DecodeError
from decoder.avro import types as avro_types
from decoder.avro.schema import avro_schema
from decoder.avro.types import AvroKind
from decoder.cursor import Cursor
from migrate.sinks.directory import UnreadableSink

_MAGIC = b"Obj\x01"
# The size of a sync marker in bytes.
_MARKER = 16
# The maximum nesting depth of the values to read; a record may contain records of the same type.
_DEEPEST = 64
_SIZES = {AvroKind.NULL: 0, AvroKind.BOOLEAN: 1, AvroKind.FLOAT: 4, AvroKind.DOUBLE: 8}
_METADATA = avro_types.AvroMap(avro_types.AvroScalar(AvroKind.BYTES))


def is_avro(content: bytes) -> bool:
    return content.startswith(_MAGIC)


def read_map(content: bytes, field: str, label: str) -> dict[str, str]:
    """Return the map in the last record's ``field``; empty if there is no record or field.

    Raises:
        UnreadableSink: the file is damaged or compressed, its schema does not describe a record, or
            the field is not a map.
    """
    try:
        entries = _last_record(Cursor(content, label, start=len(_MAGIC))).get(field) or {}
        if not isinstance(entries, dict):
            raise UnreadableSink(f"{label}: {field} is not a map")
        return {key: text.decode() for key, text in entries.items() if isinstance(text, bytes)}
    except DecodeError as error:
        raise UnreadableSink(str(error)) from error
    except UnicodeDecodeError as error:
        raise UnreadableSink(f"{label}: {error}") from error


def _last_record(cursor: Cursor) -> dict[str, Any]:
    reader = _Reader(cursor, _METADATA)
    metadata = reader.read_value(_METADATA)
    if metadata.get("avro.codec", b"null") != b"null":
        cursor.fail("compressed Avro files cannot be read", "avro.codec")
    schema = avro_schema(metadata.get("avro.schema", b"").decode(), cursor)
    if not isinstance(schema, avro_types.AvroRecord):
        cursor.fail("the schema is not a record", "avro.schema")
    reader = _Reader(cursor, schema)
    cursor.skip(_MARKER, "sync marker")
    record: dict[str, Any] = {}
    while cursor.remaining:
        records = reader.read_long("number of records")
        reader.read_long("size of a block")
        for _ in reader.checked_range(records):
            record = reader.read_value(schema)
        cursor.skip(_MARKER, "sync marker")
    return record


class _Reader:
    """A reader of values, with the named types in their schema."""

    def __init__(self, cursor: Cursor, schema: avro_types.AvroType) -> None:
        self._cursor = cursor
        self._named = dict(_named_types(schema))

    def read_value(self, type_: avro_types.AvroType, depth: int = 0) -> Any:
        """Read a value.

        Return a dict for a record or a map, bytes for bytes or a string, and None for any other
        value.
        """
        if depth > _DEEPEST:
            self._cursor.fail(f"values nested more than {_DEEPEST} deep", "value")
        match type_:
            case avro_types.AvroScalar(kind) if kind in _SIZES:
                self._cursor.skip(_SIZES[kind], kind.value)
            case avro_types.AvroScalar(AvroKind.BYTES | AvroKind.STRING):
                return self._cursor.raw(self.read_long("length"), "bytes")
            case avro_types.AvroScalar() | avro_types.AvroEnum():
                self.read_long("number")
            case avro_types.AvroFixed(_, size):
                self._cursor.skip(size, "fixed")
            case avro_types.AvroReference(name):
                return self.read_value(self._named[name], depth + 1)
            case avro_types.AvroUnion(branches):
                branch = self.read_long("branch of a union")
                if not 0 <= branch < len(branches):
                    self._cursor.fail(f"no branch {branch} in a union", "branch of a union")
                return self.read_value(branches[branch], depth + 1)
            case avro_types.AvroRecord(_, fields):
                return {name: self.read_value(field, depth + 1) for name, field in fields}
            case avro_types.AvroArray(element):
                for _ in self._run_items():
                    self.read_value(element, depth + 1)
            case avro_types.AvroMap(values):
                string = avro_types.AvroScalar(AvroKind.STRING)
                return {
                    self.read_value(string).decode(): self.read_value(values, depth + 1)
                    for _ in self._run_items()
                }
        return None

    def read_long(self, field: str) -> int:
        return self._cursor.zigzag(field, 64)

    def checked_range(self, count: int) -> range:
        # An item may have no bytes (null), so without this check, a wrong count could cause an
        # endless loop.
        if not 0 <= count <= self._cursor.remaining:
            self._cursor.fail("more items than there are bytes", "number of items")
        return range(count)

    def _run_items(self) -> Iterator[int]:
        while count := self.read_long("number of items"):
            if count < 0:
                self.read_long("size of a run")
            yield from self.checked_range(abs(count))


def _named_types(type_: avro_types.AvroType) -> Iterator[tuple[str, avro_types.AvroType]]:
    parts: Sequence[avro_types.AvroType] = ()
    match type_:
        case avro_types.AvroRecord(name, fields):
            yield name, type_
            parts = [field for _, field in fields]
        case avro_types.AvroEnum(name) | avro_types.AvroFixed(name):
            yield name, type_
        case avro_types.AvroUnion(branches):
            parts = branches
        case avro_types.AvroArray(part) | avro_types.AvroMap(part):
            parts = [part]
    for part in parts:
        yield from _named_types(part)
