"""Keyed state, read without a JVM and the job's classes: its serializer snapshots suffice.

A handle names a stream. The stream's head contains the serializer snapshots, from which the types
of the states are made; key groups with the entries follow the head. Start at ``read_keyed_states``.
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
