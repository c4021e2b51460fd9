"""Keyed state, read without a JVM or the job's classes: serializer snapshots describe its types.

A handle refers to a stream. The stream's head contains the serializer snapshots of the states. The
entries follow in key groups, or are in separate files of RocksDB or ForSt. Start at
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
