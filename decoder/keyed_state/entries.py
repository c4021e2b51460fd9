"""What one state holds, entry by entry, whatever the layout it came in."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any, NamedTuple, NoReturn

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.key_groups import KeyGroupOf, key_group_of
from decoder.keyed_state.stream_head import StateInfo, StateKind
from decoder.keyed_state.strings import ReplacedText
from decoder.keyed_state.types import (
    Avro,
    Kind,
    Kryo,
    List,
    Map,
    Pojo,
    PrimitiveArray,
    Scalar,
    Sql,
    SqlKind,
    SqlScalar,
    Timer,
    Ttl,
    Type,
    parts,
)
from decoder.keyed_state.values import Read, reader

_COMMA = 0x2C
# How many entries are handed on at once, and of about how many bytes, whichever is less.
BATCH = 1024
BATCH_BYTES = 4 * 1024 * 1024


class KeyGroupLayout(Enum):
    """How the bytes of a key group are laid out: see the modules of these names."""

    CANONICAL = "canonical"
    HEAP = "heap"


class Entry(NamedTuple):
    """One entry: of a MAP one for each of its keys, of timers one for each timer.

    Attributes:
        key_group: of the key.
        key: the key of the stream's record.
        namespace: the window, or what else the state is kept under; None where there is none.
        map_key: of a MAP, its key.
        value: what is kept; of timers the timestamp in epoch milliseconds. Of which types, and in
            what form, ``types`` tells.
        last_access: with TTL, when it was last used, in epoch milliseconds; of a LIST one time for
            each element. None without TTL.
    """

    key_group: int
    key: Any
    namespace: Any
    map_key: Any
    value: Any
    last_access: Any


# An entry of a tuple: as ``Entry._make``, in half its time.
new_entry = partial(tuple.__new__, Entry)


def check_keys(info: StateInfo, batch: list[Entry], what: str) -> None:
    """Raise DecodeError where text of a key, namespace or map key is no Unicode.

    It was read as U+FFFD: two keys would become one.
    """
    for place, name, type_ in (
        (1, "key", info.key),
        (2, "namespace", info.namespace),
        (3, "map key", info.map_key),
    ):
        if type_ is None or not _may_hold_text(type_):
            continue
        for entry in batch:
            if _replaced(entry[place]):
                raise DecodeError(
                    ErrorKind.UNSUPPORTED,
                    f"a {name} in key group {entry.key_group} has text that is not valid Unicode, "
                    "such as half of a surrogate pair. It cannot be written exactly, and two keys "
                    "could become one: remove such keys in Flink, and take another savepoint",
                    file=what,
                    field=f"state {info.name!r}",
                )


def _may_hold_text(type_: Type) -> bool:
    match type_:
        case Scalar(kind) | PrimitiveArray(kind):
            return kind in (Kind.STRING, Kind.STRING_VALUE, Kind.CHAR)
        case Sql(SqlScalar(kind)):
            return kind is SqlKind.STRING
        case Sql() | Avro() | Kryo() | Pojo():
            return True
        case _:
            return any(map(_may_hold_text, parts(type_)))


def _replaced(value: Any) -> bool:
    match value:
        case str():
            return isinstance(value, ReplacedText)
        case dict():
            return any(map(_replaced, value.values()))
        case list() | tuple():
            return any(map(_replaced, value))
        case _:
            return False


class Readers:
    """The functions that read one state's parts."""

    def __init__(self, info: StateInfo, max_parallelism: int) -> None:
        value = Ttl(info.value) if info.ttl else info.value
        self.info = info
        self.key = reader(info.key)
        self.namespace = reader(info.namespace)
        self.map_key: Read = reader(info.map_key) if info.map_key is not None else self.key
        self.value = reader(value)
        self.whole_value = reader(_whole(info, value))
        self.group_of: KeyGroupOf | None = key_group_of(info.key, max_parallelism)
        # One value under a key and nothing else, as most states are: read by a loop of its own.
        self.simple = (
            info.kind in (StateKind.VALUE, StateKind.REDUCING, StateKind.AGGREGATING)
            and info.namespace == Scalar(Kind.VOID_NAMESPACE)
            and not info.ttl
        )

    def check(self, key_group: int, data: bytes, start: int, key: Any) -> None:
        """Refuse a key, which stands at ``start``, whose own key group is another one."""
        if self.group_of is None:
            return
        own = self.group_of(data, start, key)
        if own is not None and own != key_group:
            raise DecodeError(
                ErrorKind.CORRUPT,
                f"a key of key group {own} lies in key group {key_group}: it is not read right, or "
                "the operator's max parallelism is another one",
                field=f"state {self.info.name!r}",
            )


def _whole(info: StateInfo, value: Type) -> Type:
    """The type of what is kept under a key and namespace."""
    match info.kind:
        case StateKind.LIST:
            return List(value)
        case StateKind.MAP if info.map_key is not None:
            return Map(info.map_key, value)
        case StateKind.TIMERS:
            return Timer(info.key, info.namespace)
        case _:
            return value


def split_ttl(readers: Readers, value: Any) -> tuple[Any, Any]:
    """(value, last access) of what a state's own serializer read."""
    if not readers.info.ttl or value is None:
        return value, None
    if readers.info.kind is StateKind.LIST:
        return [one[1] for one in value], [one[0] for one in value]
    return value[1], value[0]


def torn(what: str, state: str, byte_offset: int | None = None) -> NoReturn:
    """Raise for bytes that end inside of a value."""
    raise DecodeError(
        ErrorKind.TRUNCATED,
        "the bytes end inside of an entry",
        file=what,
        field=f"state {state!r}",
        byte_offset=byte_offset,
    )


def located(
    error: DecodeError, what: str, state: str, byte_offset: int | None = None
) -> DecodeError:
    """The same error, told where."""
    return DecodeError(
        error.kind,
        error.problem,
        file=error.file or what,
        field=error.field or f"state {state!r}",
        byte_offset=byte_offset,
    )


def elements(read: Read, data: bytes, position: int, end: int) -> list[Any]:
    """The elements of a LIST as they are joined in canonical form: ``,`` between them."""
    found = []
    while True:
        element, position = read(data, position)
        found.append(element)
        if position >= end:
            if position > end:
                raise IndexError
            return found
        if data[position] != _COMMA:
            raise DecodeError(ErrorKind.CORRUPT, "the elements of a list are not joined by a comma")
        position += 1
