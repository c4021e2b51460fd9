"""Read keyed state of public jobs, or list it as unreadable with a reason.

The checkpoints are from the test jars of Apache Flink (tests/unit/field/README.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decoder.keyed_state import KeyedState, read_keyed_states
from tests.support.command import migrate
from tests.support.encoder.keyed_state import Entry, encode_canonical, encode_heap
from tests.support.encoder.keyed_state import KeyedState as Encoded
from tests.support.encoder.keyed_values import LONG, VOID_NAMESPACE
from tests.support.keyed_bytes import Handle, json_entries, read

_FIELD = Path(__file__).parents[2] / "field"


def _states(name: str) -> dict[str, KeyedState]:
    keyed = read_keyed_states(_FIELD / name)
    assert keyed.unread == ()
    return {state.name: state for state in keyed.states}


def _entries(name: str, operator: str, state: str) -> list[dict[str, Any]]:
    shown = migrate(
        *("state", _FIELD / name, "--operator", operator, "--state", state, "--format", "json")
    )
    assert shown.code == 0, shown.stderr
    return [json.loads(line) for line in shown.stdout.splitlines()]


def test_canonical_stream_with_only_key_group_0_is_not_mistaken_for_heap_layout() -> None:
    """Regression: The stream was read in the heap layout, so it was refused.

    The error was "state 10 of 1, or again". The value uses a serializer from a Flink test, so the
    state is listed as unreadable.
    """
    (state,) = _states("19-key-group-0-only/chk").values()
    assert state.name == "testState"
    assert state.reason is not None
    assert "TypeSerializerSnapshotMigrationITCase$TestSerializerSnapshot" in state.reason


@pytest.mark.parametrize("heap", [False, True], ids=["canonical", "heap"])
@pytest.mark.parametrize("count", [1, 3, 300])
@pytest.mark.parametrize("states", [1, 2])
def test_stream_with_only_key_group_0_is_read_in_both_layouts(
    heap: bool, count: int, states: int
) -> None:
    entries = tuple(Entry(0, key, None, key * 7) for key in range(count))
    encoded = [Encoded(f"state {n}", "VALUE", VOID_NAMESPACE, LONG, entries) for n in range(states)]
    if heap:
        stream, offsets = encode_heap(LONG, encoded, range(1))
    else:
        stream, offsets = encode_canonical(LONG, encoded, range(1), 1)
    keyed = read(Handle(stream, offsets, savepoint=False), max_parallelism=1)
    assert keyed.unread == ()
    for state in keyed.states:
        found = {entry["key"]: entry["value"] for entry in json_entries(state)}
        assert found == {key: key * 7 for key in range(count)}


@pytest.mark.parametrize("name", ["_delta_join_operator_async_wait_state_"])
def test_queue_of_delta_join_is_listed_as_unreadable(name: str) -> None:
    """Regression: The state was listed as readable, but reading its entries failed.

    The error was "not a record: 2", because the number 2 marks a watermark.
    """
    state = _states("14-delta-join/savepoint")[name]
    assert not state.readable
    assert state.reason is not None and "queue of an asynchronous join" in state.reason
    listed = migrate("state", _FIELD / "14-delta-join/savepoint", "--format", "json")
    (row,) = json.loads(listed.stdout)["states"]
    assert (row["readable"], row["reason"]) == (False, state.reason)


def test_cep_states_are_refused_with_class_name_and_other_states_are_read() -> None:
    """Regression: No state after ``nfaStateName`` was listed, although one of them is readable."""
    states = _states("15-not-known-serializers/nfaStateName")
    refused = {
        "nfaStateName": "NFAState",
        "sharedBuffer-events": "EventId",
        "sharedBuffer-entries-with-lockable-edges": "NodeId",
    }
    assert {name for name, state in states.items() if not state.readable} == refused.keys()
    for name, class_name in refused.items():
        assert str(states[name].reason).startswith(f"org.apache.flink.cep {class_name}: ")
    counts = _entries(
        "15-not-known-serializers/nfaStateName",
        "165829c9d160df2560df1893e9059ee5",
        "sharedBuffer-events-count",
    )
    assert {(row["key"]["f0"], row["value"]) for row in counts} == {("ACME", 1), ("BETA", 1)}


def test_states_after_sorted_input_of_process_table_function_are_listed() -> None:
    """Regression: Only 7 of 12 states were listed.

    The states of the sorted input are unreadable, and the decoder omitted all states after them.
    """
    name = "15-not-known-serializers/input-sort-buffer"
    states = _states(name)
    assert len(states) == 12
    refused = {name for name, state in states.items() if not state.readable}
    assert refused == {"input-sort-buffer-data-0", "input-sort-buffer-data-1"}
    assert all("SortedLongSerializer" in str(states[name].reason) for name in refused)
    operator = "afa3664e2d13439221e8d041382a4dc1"
    captured = _entries(name, operator, "capturedOrder")
    assert {row["key"]["f0"]: len(row["value"]["f1"]) for row in captured} == {"Bob": 4, "Alice": 1}
    timers = _entries(name, operator, "_timer_state/event_input-sort-buffer-0")
    assert [(row["key"]["f0"], row["value"]) for row in timers] == [("Bob", 99_999)]


# StatefulJobSavepointMigrationITCase.StatefulFlatMapper @ Flink: the elements are (i, i) for i < 4.
@pytest.mark.parametrize(
    ("state", "value"),
    [
        ("caseClassState", lambda i: {"f0": str(i), "f1": 2 * i}),
        ("caseClassWithNestingState", lambda i: {"f0": i, "f1": {"f0": str(i), "f1": 2 * i}}),
        ("collectionState", lambda i: [{"f0": str(i), "f1": 2 * i}]),
        ("enumOneState", lambda _: "THREE"),
    ],
)
def test_scala_case_classes_collections_and_enums_are_read(
    state: str, value: Callable[[int], Any]
) -> None:
    """Regression: The whole operator was refused because of "Flink's Scala API"."""
    shown = migrate("state", _FIELD / "20-scala", "--state", state, "--format", "json")
    assert shown.code == 0, shown.stderr
    entries = [json.loads(line) for line in shown.stdout.splitlines()]
    assert {entry["key"]: entry["value"] for entry in entries} == {i: value(i) for i in range(4)}


def test_scala_values_of_class_option_either_or_try_are_refused_with_class_name() -> None:
    states = _states("20-scala")
    refused = {name: str(s.reason).partition(":")[0] for name, s in states.items() if s.reason}
    assert refused == {
        "optionState": "scala.Option",
        "optionNoneState": "scala.Option",
        "eitherLeftState": "scala.util.Either",
        "eitherRightState": "scala.util.Either",
        "tryState": "scala.util.Try",
        "tryFailureState": "scala.util.Try",
    }
