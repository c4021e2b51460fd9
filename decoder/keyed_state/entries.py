"""The entries of a state, and the functions shared by the readers of all layouts."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any, NamedTuple, NoReturn

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state import types
from decoder.keyed_state.key_groups import KeyGroupOf, key_group_of
from decoder.keyed_state.stream_head import StateInfo, StateKind
from decoder.keyed_state.strings import ReplacedText
from decoder.keyed_state.values import Read, reader

_COMMA = 0x2C
# The maximum number of entries in a batch.
BATCH = 1024
# A batch also ends after about this many bytes.
BATCH_BYTES = 4 * 1024 * 1024


class KeyGroupLayout(Enum):
    """The layout of a key group's bytes; the ``heap`` and ``canonical`` modules describe them."""

    CANONICAL = "canonical"
    HEAP = "heap"


class Entry(NamedTuple):
    """A timer, an entry of a MAP, or (in all other kinds of state) the value of a key.

    Attributes:
        key_group: the key's key group.
        key: the key by which the stream is partitioned (keyBy).
        namespace: the window or another namespace; None if the state has no namespace.
        map_key: the key in a MAP.
        value: as described in ``types``; for a timer, its timestamp in epoch milliseconds.
        last_access: with TTL, the time of the last access in epoch milliseconds; for a LIST, a list
            with the time of each element. None if the state has no TTL, and for a MAP entry stored
            as null.
    """

    key_group: int
    key: Any
    namespace: Any
    map_key: Any
    value: Any
    last_access: Any


# Equivalent to ``Entry._make``, but takes half the time.
new_entry = partial(tuple.__new__, Entry)


def check_keys(info: StateInfo, batch: list[Entry], label: str) -> None:
    """Refuse keys, namespaces, and map keys in which U+FFFD replaces invalid text.

    Such keys are refused, because the replacement could make two different keys equal.
    """
    for index, name, type_ in (
        (1, "key", info.key),
        (2, "namespace", info.namespace),
        (3, "map key", info.map_key),
    ):
        if type_ is None or not _may_hold_text(type_):
            continue
        for entry in batch:
            if _has_replaced_text(entry[index]):
                raise DecodeError(
                    ErrorKind.UNSUPPORTED,
                    f"a {name} in key group {entry.key_group} has a string that is not valid "
                    "Unicode, such as half of a surrogate pair; such a string cannot be written "
                    "exactly, so different keys could become equal; remove such keys in Flink, "
                    "and take a new savepoint",
                    file=label,
                    field=f"state {info.name!r}",
                )


def _may_hold_text(type_: types.Type) -> bool:
    match type_:
        case types.Scalar(kind) | types.PrimitiveArray(kind):
            return kind in (types.Kind.STRING, types.Kind.STRING_VALUE, types.Kind.CHAR)
        case types.Sql(types.SqlScalar(kind)):
            return kind is types.SqlKind.STRING
        case types.Sql() | types.Avro() | types.Kryo() | types.Pojo():
            return True
        case _:
            return any(map(_may_hold_text, types.parts(type_)))


def _has_replaced_text(value: Any) -> bool:
    match value:
        case str():
            return isinstance(value, ReplacedText)
        case dict():
            return any(map(_has_replaced_text, value.values()))
        case list() | tuple():
            return any(map(_has_replaced_text, value))
        case _:
            return False


class Readers:
    """The functions that read the parts of one state's entries."""

    def __init__(self, info: StateInfo, max_parallelism: int) -> None:
        value = types.Ttl(info.value) if info.ttl else info.value
        self.info = info
        self.key = reader(info.key)
        self.namespace = reader(info.namespace)
        self.map_key: Read = reader(info.map_key) if info.map_key is not None else self.key
        self.value = reader(value)
        self.whole_value = reader(_whole_value_type(info, value))
        self.key_group_of: KeyGroupOf | None = key_group_of(info.key, max_parallelism)
        # Most states have only one value per key, without a namespace or a TTL. Read these states
        # with faster functions.
        self.simple = (
            info.kind in (StateKind.VALUE, StateKind.REDUCING, StateKind.AGGREGATING)
            and info.namespace == types.Scalar(types.Kind.VOID_NAMESPACE)
            and not info.ttl
        )

    def check_key_group(self, key_group: int, data: bytes, start: int, key: Any) -> None:
        """Refuse the key that starts at ``start`` if it does not belong to this key group."""
        if self.key_group_of is None:
            return
        actual = self.key_group_of(data, start, key)
        if actual is not None and actual != key_group:
            raise DecodeError(
                ErrorKind.CORRUPT,
                f"a key of key group {actual} is in key group {key_group}; either the key "
                "was decoded incorrectly, or the operator has a different max parallelism",
                field=f"state {self.info.name!r}",
            )


def _whole_value_type(info: StateInfo, value: types.Type) -> types.Type:
    """Return the type of a key's whole value in a heap backend, or the type of a timer."""
    match info.kind:
        case StateKind.LIST:
            return types.List(value)
        case StateKind.MAP if info.map_key is not None:
            return types.Map(info.map_key, value)
        case StateKind.TIMERS:
            return types.Timer(info.key, info.namespace)
        case _:
            return value


def split_ttl(readers: Readers, value: Any) -> tuple[Any, Any]:
    """Return (value, last access), as in ``Entry``, for a value that was read with ``readers``."""
    if not readers.info.ttl or value is None:
        return value, None
    if readers.info.kind is StateKind.LIST:
        return [element for _, element in value], [last_access for last_access, _ in value]
    return value[1], value[0]


def fail_truncated(label: str, state: str, byte_offset: int | None = None) -> NoReturn:
    """Raise DecodeError for bytes that end inside an entry."""
    raise DecodeError(
        ErrorKind.TRUNCATED,
        "the bytes end inside of an entry",
        file=label,
        field=f"state {state!r}",
        byte_offset=byte_offset,
    )


def too_large_entry(max_bytes: int, label: str) -> DecodeError:
    """Return the error for an entry that is larger than ``max_bytes``."""
    problem = f"an entry is larger than {max_bytes} bytes, the limit for one entry"
    return DecodeError(ErrorKind.TOO_LARGE, problem, file=label)


def with_location(
    error: DecodeError, label: str, state: str, byte_offset: int | None = None
) -> DecodeError:
    """Return the error with this byte offset; add the file and the field if they are missing."""
    return DecodeError(
        error.kind,
        error.problem,
        file=error.file or label,
        field=error.field or f"state {state!r}",
        byte_offset=byte_offset,
    )


def read_canonical_list(read: Read, data: bytes, position: int, end: int) -> list[Any]:
    """Read a LIST in canonical format, with elements joined by ``,``."""
    joined = []
    while True:
        element, position = read(data, position)
        joined.append(element)
        if position >= end:
            if position > end:
                raise IndexError
            return joined
        if data[position] != _COMMA:
            raise DecodeError(
                ErrorKind.CORRUPT, "the elements of a list are not separated by a comma"
            )
        position += 1
