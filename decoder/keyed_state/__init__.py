"""Keyed state, read without a JVM or the job's classes, using the types in serializer snapshots.

A handle refers to a stream. The stream's head contains the serializer snapshots of the states. The
entries follow in key groups, or they are in separate RocksDB or ForSt files. Start at
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
