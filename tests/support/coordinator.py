"""Decode the coordinator state of a KafkaSource or a DynamicKafkaSource."""

from __future__ import annotations

from decoder.kafka.dynamic import DynamicEnumeratorState, read_dynamic_enumerator
from decoder.kafka.enumerator import EnumeratorState, open_coordinator_state, read_enumerator


def read_coordinator_state(data: bytes, what: str) -> EnumeratorState:
    """Decode a KafkaSource's enumerator state; raises DecodeError."""
    version, body = open_coordinator_state(data, what)
    return read_enumerator(body, version)


def read_dynamic_coordinator_state(data: bytes, what: str) -> DynamicEnumeratorState:
    """Decode a DynamicKafkaSource's enumerator state; raises DecodeError."""
    version, body = open_coordinator_state(data, what)
    return read_dynamic_enumerator(body, version)
