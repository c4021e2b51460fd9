"""Keyed state, read by its serializer snapshots, without a JVM or the job's classes.

A handle names a stream. The stream's head contains the serializer snapshots, which determine the
types of the states; key groups with the entries follow. Start at ``read_keyed_states``.
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
