"""Decode the encoder's keyed state: every entry of every state.

The encoder shares no code with the decoder, and tests/integration/test_keyed_encoder.py has Flink
restore its bytes.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decoder.keyed_state import read_keyed_states
from migrate.extensions.keyed_state.arrow import record_batches
from migrate.extensions.keyed_state.json_form import entry_json
from tests.support.compare_readers import compare_readers
from tests.support.keyed_rows import assert_same_rows
from tests.support.strategies.keyed import KeyedCheckpoint, keyed_checkpoints


@pytest.mark.parametrize("examples", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_decoded_keyed_entries_match_encoded_entries(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        drawn: KeyedCheckpoint = data.draw(keyed_checkpoints())
        with tempfile.TemporaryDirectory() as directory:
            pointer = drawn.store(Path(directory) / "chk-1")
            found = read_keyed_states(pointer)
            assert not found.unread
            told = {
                state.name: Counter(
                    json.dumps(entry_json(state, entry), sort_keys=True)
                    for entry in state.entries()
                )
                for state in found.states
            }
            tables = {
                state.name: pa.Table.from_batches(record_batches(state)) for state in found.states
            }
            for state in found.states:
                compare_readers(state)
        for name, lines in drawn.rows.items():
            assert_same_rows(tables[name], lines)
        assert told == {
            name: Counter(json.dumps(line, sort_keys=True) for line in lines)
            for name, lines in drawn.rows.items()
        }

    holds()


@pytest.mark.parametrize("examples", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_compiled_kernel_and_plain_python_reader_agree_on_damaged_state(examples: int) -> None:
    """Whichever byte is changed, both readers return the same rows or the same error."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        drawn: KeyedCheckpoint = data.draw(keyed_checkpoints())
        damaged = drawn.damaged(data.draw(st.integers(0, 1 << 20)), data.draw(st.integers(0, 255)))
        with tempfile.TemporaryDirectory() as directory:
            for state in read_keyed_states(damaged.store(Path(directory) / "chk-1")).states:
                if state.readable:
                    compare_readers(state)

    holds()
