"""Define serializers of keys, namespaces, and values that write values and their own snapshots.

`write_snapshot` writes the same bytes as `TypeSerializerSnapshot.writeVersionedSnapshot`, and
`write` the same bytes as `TypeSerializer.serialize` (flink-core and flink-runtime 1.20.3). Values
have Python types: None, bool, int, float, str, bytes, tuple, list, dict.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.support.encoder.data_output import DataOutput

_TYPE_UTILS = "org.apache.flink.api.common.typeutils.base."
_JAVA_TYPE_UTILS = "org.apache.flink.api.java.typeutils.runtime."
_SIMPLE_VERSION = 3
_COMPOSITE_VERSION = 3
_COMPOSITE_MAGIC = 911108
_NESTED_MAGIC = 1333245
_OPTIONAL_MAP_MAGIC = 0x4F2C69A3D70


class Serializer(Protocol):
    """A serializer of a type.

    `length` is Flink's `getLength()`: -1 if values differ in length.
    """

    @property
    def length(self) -> int: ...
    def write_snapshot(self, out: DataOutput) -> None: ...
    def write(self, out: DataOutput, value: Any) -> None: ...


def _text(out: DataOutput, value: str | None) -> None:
    """Write like `StringValue.writeString`: the number of UTF-16 units plus 1, and the units."""
    if value is None:
        out.raw(b"\0")
        return
    units = struct.unpack(
        f">{len(value.encode('utf-16-be', 'surrogatepass')) // 2}H",
        value.encode("utf-16-be", "surrogatepass"),
    )
    for number in (len(units) + 1, *units):
        while number >= 0x80:
            out.raw(bytes((number & 0x7F | 0x80,)))
            number >>= 7
        out.raw(bytes((number,)))


def _f64(out: DataOutput, value: float) -> None:
    out.raw(struct.pack(">d", value))


def _f32(out: DataOutput, value: float) -> None:
    out.raw(struct.pack(">f", value))


def _char(out: DataOutput, value: str) -> None:
    out.raw(value.encode("utf-16-be", "surrogatepass"))


def _big_integer(out: DataOutput, value: int) -> None:
    """Write like `BigIntSerializer`: 1, 2, 3 for 0, 1, 10; else the length + 4, and the bytes."""
    special = {0: 1, 1: 2, 10: 3}
    if value in special:
        out.i32(special[value])
        return
    # One more bit for the sign, as in BigInteger.toByteArray.
    bits = (~value if value < 0 else value).bit_length() + 1
    data = value.to_bytes((bits + 7) // 8, "big", signed=True)
    out.i32(len(data) + 4)
    out.raw(data)


def _longs(out: DataOutput, value: Sequence[int]) -> None:
    out.counted(value, out.i64)


@dataclass(frozen=True, slots=True)
class Simple:
    """A type whose snapshot contains only its class: `SimpleTypeSerializerSnapshot`."""

    snapshot: str
    length: int
    encode: Callable[[DataOutput, Any], None]

    def write_snapshot(self, out: DataOutput) -> None:
        out.utf(self.snapshot)
        out.i32(_SIMPLE_VERSION)

    def write(self, out: DataOutput, value: Any) -> None:
        self.encode(out, value)


def _base(name: str, length: int, encode: Callable[[DataOutput, Any], None]) -> Simple:
    serializer = f"{_TYPE_UTILS}{name}Serializer"
    return Simple(f"{serializer}${name}SerializerSnapshot", length, encode)


def _instant(out: DataOutput, value: tuple[int, int]) -> None:
    """Write seconds since the epoch, and nanoseconds."""
    out.i64(value[0])
    out.i32(value[1])


def _window(out: DataOutput, value: Mapping[str, int]) -> None:
    out.i64(value["start"])
    out.i64(value["end"])


LONG = _base("Long", 8, DataOutput.i64)
INT = _base("Int", 4, DataOutput.i32)
SHORT = _base("Short", 2, DataOutput.i16)
BYTE = _base("Byte", 1, DataOutput.i8)
BOOLEAN = _base("Boolean", 1, DataOutput.boolean)
DOUBLE = _base("Double", 8, _f64)
FLOAT = _base("Float", 4, _f32)
CHAR = _base("Char", 2, _char)
STRING = _base("String", -1, _text)
INSTANT = _base("Instant", 12, _instant)
BIG_INTEGER = _base("BigInt", -1, _big_integer)
BYTES = Simple(
    f"{_TYPE_UTILS}array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot",
    -1,
    DataOutput.sized,
)
LONGS = Simple(
    f"{_TYPE_UTILS}array.LongPrimitiveArraySerializer$LongPrimitiveArraySerializerSnapshot",
    -1,
    _longs,
)
# Flink's `getLength()` returns 0, although the serializer writes one byte.
VOID_NAMESPACE = Simple(
    "org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot",
    0,
    lambda out, _: out.i8(0),
)
TIME_WINDOW = Simple(
    "org.apache.flink.streaming.api.windowing.windows.TimeWindow$Serializer"
    "$TimeWindowSerializerSnapshot",
    16,
    _window,
)


def _composite(
    out: DataOutput,
    snapshot: str,
    outer_version: int,
    nested: Sequence[Serializer],
    outer: Callable[[], None] = lambda: None,
) -> None:
    """Write like `CompositeTypeSerializerSnapshot` and `NestedSerializersSnapshotDelegate`."""
    out.utf(snapshot)
    out.i32(_COMPOSITE_VERSION)
    out.i32(_COMPOSITE_MAGIC)
    out.i32(outer_version)
    outer()
    out.i32(_NESTED_MAGIC)
    out.i32(1)
    out.counted(nested, lambda serializer: serializer.write_snapshot(out))


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple of 1 to 25 fields; only a string field can be null."""

    fields: tuple[Serializer, ...]

    @property
    def length(self) -> int:
        lengths = [field.length for field in self.fields]
        return -1 if min(lengths) < 0 else sum(lengths)

    def write_snapshot(self, out: DataOutput) -> None:
        tuple_class = f"org.apache.flink.api.java.tuple.Tuple{len(self.fields)}"
        snapshot = f"{_JAVA_TYPE_UTILS}TupleSerializerSnapshot"
        _composite(out, snapshot, 2, self.fields, lambda: out.utf(tuple_class))

    def write(self, out: DataOutput, value: Sequence[Any]) -> None:
        for field, item in zip(self.fields, value, strict=True):
            field.write(out, item)


@dataclass(frozen=True, slots=True)
class RowOf:
    """A row of kind +I; any field can be null."""

    fields: tuple[Serializer, ...]
    length: int = -1

    def write_snapshot(self, out: DataOutput) -> None:
        snapshot = f"{_JAVA_TYPE_UTILS}RowSerializer$RowSerializerSnapshot"
        _composite(out, snapshot, 4, self.fields, lambda: out.boolean(True))

    def write(self, out: DataOutput, value: Sequence[Any]) -> None:
        bits = [False, False, *(item is None for item in value)]
        for start in range(0, len(bits), 8):
            part = bits[start : start + 8]
            out.raw(bytes((sum(bit << 7 - index for index, bit in enumerate(part)),)))
        for field, item in zip(self.fields, value, strict=True):
            if item is not None:
                field.write(out, item)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list without nulls."""

    element: Serializer
    length: int = -1

    def write_snapshot(self, out: DataOutput) -> None:
        _composite(out, f"{_TYPE_UTILS}ListSerializerSnapshot", 1, (self.element,))

    def write(self, out: DataOutput, value: Sequence[Any]) -> None:
        out.counted(value, lambda item: self.element.write(out, item))


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map with nullable values."""

    key: Serializer
    value: Serializer
    length: int = -1

    def write_snapshot(self, out: DataOutput) -> None:
        _composite(out, f"{_TYPE_UTILS}MapSerializerSnapshot", 1, (self.key, self.value))

    def write(self, out: DataOutput, value: Mapping[Any, Any]) -> None:
        out.i32(len(value))
        for key, item in value.items():
            self.key.write(out, key)
            self.write_value(out, item)

    def write_value(self, out: DataOutput, item: Any) -> None:
        out.boolean(item is None)
        if item is not None:
            self.value.write(out, item)


@dataclass(frozen=True, slots=True)
class NullableOf:
    """A nullable value; `padding` is the length to which nulls are padded, or 0."""

    of: Serializer
    padding: int = 0

    @property
    def length(self) -> int:
        return 1 + self.padding if self.padding else -1

    def write_snapshot(self, out: DataOutput) -> None:
        snapshot = f"{_JAVA_TYPE_UTILS}NullableSerializer$NullableSerializerSnapshot"
        _composite(out, snapshot, 2, (self.of,), lambda: out.i32(self.padding))

    def write(self, out: DataOutput, value: Any) -> None:
        out.boolean(value is None)
        if value is None:
            out.raw(bytes(self.padding))
        else:
            self.of.write(out, value)


@dataclass(frozen=True, slots=True)
class Pojo:
    """A POJO without subclasses or inherited fields."""

    class_name: str
    fields: tuple[tuple[str, Serializer], ...]
    length: int = -1

    def write_snapshot(self, out: DataOutput) -> None:
        out.utf(f"{_JAVA_TYPE_UTILS}PojoSerializerSnapshot")
        out.i32(2)
        out.utf(self.class_name)
        out.i64(_OPTIONAL_MAP_MAGIC)
        out.i32(len(self.fields))
        for name, serializer in self.fields:
            key, value = DataOutput(), DataOutput()
            key.utf(self.class_name)
            key.utf(name)
            serializer.write_snapshot(value)
            out.utf(name)
            for frame in (key, value):
                out.boolean(True)
                out.sized(frame.to_bytes())
        for _ in ("registered subclasses", "other subclasses"):
            out.i64(_OPTIONAL_MAP_MAGIC)
            out.i32(0)

    def write(self, out: DataOutput, value: Mapping[str, Any] | None) -> None:
        out.i8(1 if value is None else 2)
        if value is not None:
            for name, serializer in self.fields:
                out.boolean(value[name] is None)
                if value[name] is not None:
                    serializer.write(out, value[name])
