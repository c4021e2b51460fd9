"""Keyed state, read from its serializer snapshots alone, without a JVM and the job's classes.

From handle to stream, head (serializer snapshots to types), key groups and entries. Start at
``read_keyed_states``.
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
