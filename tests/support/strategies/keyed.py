"""Checkpoints with a few keyed states of generated types, keys and namespaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from hypothesis import strategies as st

from tests.support.encoder import (
    ByteStreamHandle,
    KeyGroupsHandle,
    Metadata,
    Operator,
    Subtask,
    encode_metadata,
)
from tests.support.encoder import keyed_values as of
from tests.support.encoder.keyed_state import (
    Entry,
    KeyedState,
    Kind,
    encode_canonical,
    encode_heap,
    key_group_of,
)
from tests.support.strategies.primitives import blobs, ints, longs, texts

# Every release of Flink since 1.15 reads this version, and the version needs no properties.
_METADATA_VERSION = 3
_OPERATOR = bytes(range(16))
# A POJO class in the Java programs of the tests.
_ADDRESS = of.Pojo("testjobs.Things$Address", (("number", of.INT), ("street", of.STRING)))


@dataclass(frozen=True, slots=True)
class Type:
    """A serializer, a strategy for its values, and a function that converts a value to JSON."""

    serializer: of.Serializer
    values: st.SearchStrategy[Any]
    to_json: Callable[[Any], Any] = lambda value: value


_finite = st.floats(allow_nan=False, allow_infinity=False)
_SCALARS = (
    Type(of.LONG, longs),
    Type(of.INT, ints),
    Type(of.SHORT, st.integers(-(2**15), 2**15 - 1)),
    Type(of.BYTE, st.integers(-128, 127)),
    Type(of.BOOLEAN, st.booleans()),
    Type(of.DOUBLE, _finite),
    Type(of.FLOAT, st.floats(allow_nan=False, allow_infinity=False, width=32)),
    Type(of.CHAR, st.sampled_from("aé€,")),
    Type(of.STRING, texts),
    Type(of.BIG_INTEGER, st.integers(-(2**90), 2**90) | st.sampled_from((0, 1, 10)), str),
    Type(of.BYTES, blobs, bytes.hex),
    Type(of.LONGS, st.lists(longs, max_size=3)),
    Type(
        _ADDRESS,
        st.fixed_dictionaries({"number": ints | st.none(), "street": texts | st.none()}),
    ),
)
scalars = st.sampled_from(_SCALARS)


def _fields(types: list[Type], nullable: bool) -> Type:
    nothing = st.none() if nullable else st.nothing()
    serializers = tuple(each.serializer for each in types)
    return Type(
        of.RowOf(serializers) if nullable else of.TupleOf(serializers),
        st.tuples(*(each.values | nothing for each in types)),
        lambda row: {
            f"f{index}": None if item is None else each.to_json(item)
            for index, (each, item) in enumerate(zip(types, row, strict=True))
        },
    )


def _list(item: Type) -> Type:
    """Return a type of lists without nulls, as in list states (HeapListState#add @ 2.2.0)."""
    return Type(
        of.ListOf(item.serializer),
        st.lists(item.values.filter(lambda each: each is not None), max_size=3),
        lambda items: [item.to_json(each) for each in items],
    )


def _map(value: Type) -> Type:
    return Type(
        of.MapOf(of.STRING, value.serializer),
        st.dictionaries(texts, value.values | st.none(), max_size=3),
        lambda items: {
            key: None if each is None else value.to_json(each) for key, each in items.items()
        },
    )


def _nullable(value: Type) -> Type:
    padding = max(value.serializer.length, 0)
    return Type(
        of.NullableOf(value.serializer, padding),
        value.values | st.none(),
        lambda each: None if each is None else value.to_json(each),
    )


types: st.SearchStrategy[Type] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.builds(_fields, st.lists(inner, min_size=1, max_size=9), st.booleans()),
        inner.map(_list),
        inner.map(_map),
        scalars.map(_nullable),
    ),
    max_leaves=6,
)

_kinds: st.SearchStrategy[Kind] = st.sampled_from(get_args(Kind))
_KEYS = (Type(of.LONG, longs), Type(of.STRING, texts))
_window = st.fixed_dictionaries({"start": longs, "end": longs})
_NAMESPACES = (
    Type(of.VOID_NAMESPACE, st.none()),
    Type(of.TIME_WINDOW, _window),
    Type(of.STRING, texts),
)


@dataclass(frozen=True, slots=True)
class KeyedCheckpoint:
    """A checkpoint of one operator, and the JSON rows of each of its states."""

    metadata: Metadata
    rows: dict[str, list[dict[str, Any]]]

    def damaged(self, at: int, byte: int) -> KeyedCheckpoint:
        """Return a copy in which one byte of the key groups is replaced."""
        (operator,) = self.metadata.operators
        (subtask,) = operator.subtasks
        handle = subtask.managed_keyed
        assert isinstance(handle, KeyGroupsHandle) and isinstance(handle.delegate, ByteStreamHandle)
        data = handle.delegate.data
        start = min((offset for offset in handle.offsets if offset), default=len(data) - 1)
        place = start + at % (len(data) - start)
        delegate = replace(handle.delegate, data=data[:place] + bytes((byte,)) + data[place + 1 :])
        subtask = replace(subtask, managed_keyed=replace(handle, delegate=delegate))
        operator = replace(operator, subtasks=(subtask,))
        return KeyedCheckpoint(replace(self.metadata, operators=(operator,)), {})

    def store(self, directory: Path) -> Path:
        directory.mkdir(parents=True)
        (directory / "_metadata").write_bytes(encode_metadata(self.metadata, _METADATA_VERSION))
        return directory


@st.composite
def keyed_checkpoints(draw: st.DrawFn) -> KeyedCheckpoint:
    """Draw a canonical or heap snapshot with one to four states, in one subtask."""
    key = draw(st.sampled_from(_KEYS))
    max_parallelism = draw(st.sampled_from((1, 7, 128, 129, 300)))
    states: list[KeyedState] = []
    rows: dict[str, list[dict[str, Any]]] = {}
    for number in range(draw(st.integers(1, 4))):
        kind = draw(_kinds)
        inner = draw(types)
        value = _list(inner) if kind == "LIST" else _map(inner) if kind == "MAP" else inner
        namespace = draw(st.sampled_from(_NAMESPACES))
        places = draw(
            st.lists(
                st.tuples(key.values, namespace.values), max_size=4, unique_by=lambda it: str(it)
            )
        )
        # Flink does not store empty lists and maps.
        values = value.values.filter(bool) if kind in ("LIST", "MAP") else value.values
        entries = tuple(
            Entry(key_group_of(at, max_parallelism), at, under, draw(values))
            for at, under in places
        )
        name = f"{kind.lower()} {number}"
        states.append(KeyedState(name, kind, namespace.serializer, value.serializer, entries))
        rows[name] = [line for entry in entries for line in _lines(kind, namespace, value, entry)]
    canonical = draw(st.booleans())
    key_groups = range(max_parallelism)
    if canonical:
        stream, offsets = encode_canonical(key.serializer, states, key_groups, max_parallelism)
    else:
        stream, offsets = encode_heap(key.serializer, states, key_groups)
    inline = ByteStreamHandle("inline", stream)
    handle = KeyGroupsHandle(0, offsets, inline, None if canonical else "handle", canonical)
    subtask = Subtask(0, managed_keyed=handle)
    operator = Operator(_OPERATOR, 1, max_parallelism, subtasks=(subtask,))
    return KeyedCheckpoint(Metadata(1, (operator,)), rows)


def _lines(kind: str, namespace: Type, value: Type, entry: Entry) -> list[dict[str, Any]]:
    head = {"key_group": entry.key_group, "key": entry.key}
    if entry.namespace is not None:
        head["namespace"] = namespace.to_json(entry.namespace)
    form = value.to_json(entry.value)
    if kind != "MAP":
        return [head | {"value": form}]
    return [head | {"map_key": key, "value": item} for key, item in form.items()]
