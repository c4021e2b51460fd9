"""Make checkpoints with keyed state of one operator from valid or invalid bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from decoder.keyed_state import KeyedState, KeyedStates, read_keyed_states
from migrate.extensions.keyed_state.json_form import entry_json
from tests.support.encoder import (
    ByteStreamHandle,
    KeyGroupsHandle,
    Metadata,
    Operator,
    Subtask,
    encode_metadata,
)
from tests.support.encoder.data_output import DataOutput
from tests.support.encoder.keyed_state import Entry, encode_canonical, encode_heap, key_group_of
from tests.support.encoder.keyed_state import KeyedState as Encoded
from tests.support.encoder.keyed_values import LONG, VOID_NAMESPACE, Serializer
from tests.support.memory_files import MemoryFiles

POINTER = "/flink/checkpoints/chk-1/_metadata"
OPERATOR = bytes(range(16))
MAX_PARALLELISM = 128
_END_OF_KEY_GROUP = b"\xff\xff"
_LAST_OF_STATE = 0x80
_PROPERTIES = Path(__file__).parents[1] / "golden" / "synthetic" / "properties.json"


@dataclass(frozen=True, slots=True)
class BytesSerializer:
    """A serializer whose snapshot consists of the given bytes, and whose values are bytes."""

    snapshot: bytes
    length: int = -1

    def write_snapshot(self, out: DataOutput) -> None:
        out.raw(self.snapshot)

    def write(self, out: DataOutput, value: bytes) -> None:
        out.raw(value)


@dataclass(frozen=True, slots=True)
class Handle:
    """The keyed state of a subtask, as a stream and the offset of each key group in it."""

    stream: bytes
    offsets: tuple[int, ...]
    first: int = 0
    savepoint: bool = True
    raw_keyed: bool = False


def read(
    *handles: Handle, max_parallelism: int = MAX_PARALLELISM, flink: str = "1.20"
) -> KeyedStates:
    """Read the keyed states of an operator; ``flink`` determines the version of Kryo."""
    files = MemoryFiles({POINTER: metadata(*handles, max_parallelism=max_parallelism, flink=flink)})
    return read_keyed_states(POINTER, files)


def metadata(
    *handles: Handle, max_parallelism: int = MAX_PARALLELISM, flink: str = "1.20"
) -> bytes:
    subtasks = []
    for index, handle in enumerate(handles):
        inline = ByteStreamHandle("inline", handle.stream)
        handle_id = None if handle.savepoint else "handle"
        encoded = KeyGroupsHandle(handle.first, handle.offsets, inline, handle_id, handle.savepoint)
        subtasks.append(
            Subtask(index, raw_keyed=encoded)
            if handle.raw_keyed
            else Subtask(index, managed_keyed=encoded)
        )
    operator = Operator(OPERATOR, len(handles), max_parallelism, subtasks=tuple(subtasks))
    if flink.startswith("1."):
        return encode_metadata(Metadata(1, (operator,)), 3)
    named = replace(operator, name="operator", uid="operator")
    return encode_metadata(Metadata(1, (named,)), 5, _properties())


@cache
def _properties() -> bytes:
    (made,) = (
        kinds["kinds"] for kinds in json.loads(_PROPERTIES.read_text()) if kinds["flink"] == "2.2.0"
    )
    return bytes.fromhex(next(iter(made.values()))["hex"])


def handle_of_states(
    states: Sequence[Encoded], *, heap: bool = False, key: Serializer = LONG
) -> Handle:
    """Return a handle with all key groups of some states."""
    if heap:
        stream, offsets = encode_heap(key, states, range(MAX_PARALLELISM))
    else:
        stream, offsets = encode_canonical(key, states, range(MAX_PARALLELISM), MAX_PARALLELISM)
    return Handle(stream, offsets, savepoint=not heap)


def handle_of_value(
    snapshot: bytes, value: bytes, *, heap: bool = False, name: str = "state"
) -> Handle:
    """Return a handle with one value state that has ``value`` for the key 1."""
    group = key_group_of(1, MAX_PARALLELISM)
    entry = Entry(group, 1, None, value)
    return handle_of_states(
        [Encoded(name, "VALUE", VOID_NAMESPACE, BytesSerializer(snapshot), (entry,))], heap=heap
    )


def canonical_group(*entries: tuple[int, bytes, bytes]) -> bytes:
    """Encode a key group in canonical form; each entry is (state number, key, value)."""
    out = DataOutput()
    numbers = [number for number, _, _ in entries]
    out.raw(numbers[0].to_bytes(2, "big"))
    for (number, key, value), following in zip(entries, [*numbers[1:], -1], strict=True):
        last = following != number
        out.sized(bytes((key[0] | _LAST_OF_STATE,)) + key[1:] if last else key)
        out.sized(value)
        if following < 0:
            out.raw(_END_OF_KEY_GROUP)
        elif last:
            out.raw(following.to_bytes(2, "big"))
    return out.to_bytes()


def only(states: KeyedStates) -> KeyedState:
    """Return the only state; raise its error if it could not be read."""
    for unread in states.unread:
        raise unread.error
    (state,) = states.states
    return state


def json_entries(state: KeyedState) -> list[dict[str, Any]]:
    """Return the entries of a state as JSON objects."""
    return [entry_json(state, entry) for entry in state.entries()]
