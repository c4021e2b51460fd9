"""The head of a keyed state stream, with its states and their types.

The head: ``i32 version`` (6), ``bool compressed``, the key serializer's *proxy*, ``i16 n`` x state.
A state: ``UTF name, i32 kind`` (0 key-value, 1 operator, 2 broadcast, 3 priority queue, 4 key-value
in the asynchronous API), ``i32 n`` x {``UTF option, UTF value``}, ``i32 n`` x {``UTF role``,
proxy}. A proxy is ``i32 2`` and a snapshot. A state's number in the data is its index in the head.

In the asynchronous API (State V2, Flink 2.x on ForSt), VALUE_SERIALIZER is the serializer of the
elements of a LIST or the values of a MAP. USER_KEY_SERIALIZER is the serializer of the keys of a
MAP.

Source: KeyedBackendSerializationProxy (version 6), StateMetaInfoSnapshotReadersWriters (7),
TypeSerializerSnapshotSerializationUtil (2) @ Flink 1.15.4, 1.20.3, 2.2.0;
runtime.state.v2.RegisteredKeyAndUserKeyValueStateBackendMetaInfo @ Flink 2.2.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state import types
from decoder.keyed_state.snapshots import read_snapshot

_VERSIONS = (6,)  # Flink 1.8 and later
_PROXY_VERSIONS = (2,)
# StateMetaInfoSnapshot.BackendStateType
_KEY_VALUE, _PRIORITY_QUEUE, _KEY_VALUE_V2 = 0, 3, 4
# The queues of asynchronous joins in SQL contain watermarks and other elements between the records
# (TableKeyedAsyncWaitOperator, StreamingDeltaJoinOperator @ Flink 2.2.0, 2.3.0).
_QUEUES = frozenset({"_keyed_async_wait_operator_state_", "_delta_join_operator_async_wait_state_"})
# StateMetaInfoSnapshot.CommonOptionsKeys, CommonSerializerKeys
_KIND_OPTION = "KEYED_STATE_TYPE"
_NAMESPACE, _VALUE = "NAMESPACE_SERIALIZER", "VALUE_SERIALIZER"
_USER_KEY = "USER_KEY_SERIALIZER"


class StateKind(Enum):
    """The kinds in StateDescriptor.Type, and a priority queue of timers."""

    VALUE = "value"
    LIST = "list"
    MAP = "map"
    REDUCING = "reducing"
    AGGREGATING = "aggregating"  # the value is the accumulator
    TIMERS = "timers"


@dataclass(frozen=True, slots=True)
class StateInfo:
    """A state in a stream.

    Attributes:
        key: the type of the state's keys.
        map_key: the type of the map keys in a MAP; None for other kinds, and for a MAP with an
            unknown serializer.
        value: the type of the values, without the time that TTL adds; for a LIST, the type of the
            elements; for timers, the type of the timestamp.
        ttl: True if the time of the last access is stored with each value (for a LIST, with each
            element; for a MAP, with each entry).
        reason: the reason that the state cannot be read, or None.
    """

    name: str
    kind: StateKind
    key: types.Type
    namespace: types.Type
    map_key: types.Type | None
    value: types.Type
    ttl: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a stream.

    Attributes:
        compressed: True if the data is compressed.
        states: the states; the index of a state is its number in the data.
        error: the reason that the states after ``states`` could not be read; None if ``states`` is
            complete.
        end: the byte offset at which the head ends; None if a state has an unknown serializer.
    """

    compressed: bool
    states: tuple[StateInfo, ...]
    error: DecodeError | None
    end: int | None


def read_head(cursor: Cursor, kryo_version: int) -> Head:
    """Read a head, up to the first unknown serializer, if any.

    ``kryo_version``: see ``snapshots.read_snapshot``.

    Raises:
        DecodeError: the head is truncated or corrupt, or it has an unknown version or an unknown
            key serializer.
    """
    cursor.version("keyed state", _VERSIONS)
    compressed = cursor.boolean("compressed")
    key = _read_proxy(cursor, kryo_version)
    count = cursor.i16("number of states")
    if count < 0:
        cursor.fail(f"a count cannot be negative: {count}", "number of states", back=2)
    states: list[StateInfo] = []
    for _ in range(count):
        state, unread = _read_state(cursor, key, kryo_version)
        states.append(state)
        if unread is not None:
            last = len(states) == count
            return Head(compressed, tuple(states), None if last else unread, None)
    if len({state.name for state in states}) != len(states):
        cursor.fail("two states have the same name", "states")
    return Head(compressed, tuple(states), None, cursor.byte_offset)


def _read_proxy(cursor: Cursor, kryo_version: int) -> types.Type:
    cursor.version("serializer's snapshot", _PROXY_VERSIONS)
    return read_snapshot(cursor, kryo_version)


def _read_state(
    cursor: Cursor, key: types.Type, kryo_version: int
) -> tuple[StateInfo, DecodeError | None]:
    """Read a state; also return the reason that the rest of the head is unreadable, or None."""
    name = cursor.utf("state name")
    backend_kind = cursor.i32(f"kind of state {name!r}")
    if backend_kind not in (_KEY_VALUE, _PRIORITY_QUEUE, _KEY_VALUE_V2):
        cursor.fail(f"not a kind of keyed state: {backend_kind}", f"kind of state {name!r}", back=4)
    field = f"options of state {name!r}"
    options = {cursor.utf(field): cursor.utf(field) for _ in range(cursor.count(field))}
    serializers: dict[str, types.Type] = {}
    field = f"serializers of state {name!r}"
    unread = None
    for _ in range(cursor.count(field)):
        role = cursor.utf(field)
        try:
            serializers[role] = _read_proxy(cursor, kryo_version)
        except DecodeError as error:
            if error.kind is not ErrorKind.UNSUPPORTED:
                raise
            unread = error
            break
    missing = types.Unreadable("", unread.problem if unread else "it has no serializer")
    value = serializers.get(_VALUE, missing)
    namespace = serializers.get(_NAMESPACE, missing)
    if backend_kind == _PRIORITY_QUEUE:
        return _queue_info(name, value), unread
    kind_name = options.get(_KIND_OPTION, "")
    if backend_kind == _KEY_VALUE_V2:
        if kind_name == StateKind.LIST.name:
            value = types.List(value)
        elif kind_name == StateKind.MAP.name:
            missing_key = types.Unreadable("", "it has no serializer for the map's keys")
            value = types.Map(serializers.get(_USER_KEY, missing if unread else missing_key), value)
    return _key_value_info(cursor, name, kind_name, key, namespace, value), unread


def timers_info(name: str, timer: types.Timer) -> StateInfo:
    """Return the StateInfo of a state that contains timers."""
    reason = _first_reason(timer.key, timer.namespace)
    timestamp = types.Scalar(types.Kind.LONG)
    return StateInfo(
        name, StateKind.TIMERS, timer.key, timer.namespace, None, timestamp, False, reason
    )


def _queue_info(name: str, value: types.Type) -> StateInfo:
    if isinstance(value, types.Timer):
        return timers_info(name, value)
    timestamp = types.Scalar(types.Kind.LONG)
    reason = "a priority queue whose elements are not timers"
    if isinstance(value, types.Unreadable):
        reason = value.reason
    return StateInfo(name, StateKind.TIMERS, value, value, None, timestamp, False, reason)


def _key_value_info(
    cursor: Cursor,
    name: str,
    kind_name: str,
    key: types.Type,
    namespace: types.Type,
    value: types.Type,
) -> StateInfo:
    if kind_name not in StateKind.__members__ or kind_name == StateKind.TIMERS.name:
        reason = f"a state of the kind {kind_name!r} is not supported"
        return StateInfo(name, StateKind.VALUE, key, namespace, None, value, False, reason)
    kind = StateKind[kind_name]
    map_key: types.Type | None = None
    if kind is StateKind.LIST and isinstance(value, types.List):
        value = value.element
    elif kind is StateKind.MAP and isinstance(value, types.Map):
        map_key, value = value.key, value.value
    elif kind in (StateKind.LIST, StateKind.MAP) and not isinstance(value, types.Unreadable):
        cursor.fail(
            f"the serializer of a {kind.value} state is not a serializer for a {kind.value}",
            f"state {name!r}",
        )
    ttl = isinstance(value, types.Ttl)
    if isinstance(value, types.Ttl):
        value = value.type
    unreadable = _first_reason(key, namespace, map_key, value)
    if name in _QUEUES and unreadable is None:
        unreadable = (
            "the queue of an asynchronous join contains watermarks and other elements "
            "between its records"
        )
    return StateInfo(name, kind, key, namespace, map_key, value, ttl, unreadable)


def _first_reason(*parts: types.Type | None) -> str | None:
    """Return why the first unreadable type cannot be read, or None if all types can be read."""
    for type_ in parts:
        part = types.unreadable(type_) if type_ is not None else None
        if part is not None:
            reason = f"{part.class_name}: {part.reason}" if part.class_name else part.reason
            return f"{reason} (field {part.field!r})" if part.field else reason
    return None
