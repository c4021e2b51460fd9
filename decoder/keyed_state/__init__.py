"""Keyed state, read without a JVM and without the job's classes: only what its snapshots tell.

The way of the bytes: handle -> stream -> head (serializer snapshots -> types) -> key groups ->
entries. ``read_keyed_states`` is the way in.
"""

from decoder.keyed_state.entries import Entry, KeyGroupLayout
from decoder.keyed_state.states import KeyedState, KeyedStates, Part, Unread, read_keyed_states
from decoder.keyed_state.stream_head import StateKind

__all__ = [
    "Entry",
    "KeyGroupLayout",
    "KeyedState",
    "KeyedStates",
    "Part",
    "StateKind",
    "Unread",
    "read_keyed_states",
]
