"""Read keyed state as tables: options, and the division of work into chunks."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from decoder.keyed_state import streams
from migrate.extensions.keyed_state import views
from migrate.extensions.keyed_state.views import (
    StateOptions,
    StateView,
    open_table,
    parse_state_options,
    read_chunk,
)
from migrate.model.errors import UsageError
from tests.golden.state.generate import STATE
from tests.golden.state.test_state_manifest import ENTRIES
from tests.support.keyed_checkpoint import MAX_PARALLELISM, write_totals
from tests.support.keyed_rows import expected_states

_BY_NAME = {entry["name"]: entry for entry in ENTRIES}


def test_option_names_are_case_insensitive() -> None:
    assert parse_state_options({"State": "x", "OPERATOR": "o"}) == (
        StateOptions(StateView.ENTRIES, "o", "x")
    )
    assert parse_state_options({"view": "TIMERS"}).view is StateView.TIMERS


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "the option `state` is required"),
        ({"state": "x", "view": "timers"}, "option state requires view=entries"),
        ({"key": "x", "view": "states"}, "option key requires view=entries"),
        ({"view": "rows"}, "must be one of entries, states, timers"),
        ({"states": "x"}, "unknown option states; the options are operator, state, view"),
        ({"state": "x", "allowExternalFiles": "yes"}, "allowExternalFiles is 'yes', but must be"),
    ],
)
def test_unknown_or_conflicting_state_options_are_refused(
    options: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        parse_state_options(options)


@pytest.mark.parametrize("most", [1, 3_000, 40_000, 1_000_000])
def test_chunks_of_state_contain_each_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(views, "_CHUNK_BYTES", most)
    chk = write_totals(tmp_path / "savepoint-1", 500)
    chunks = open_table(str(chk), StateOptions(state="total")).split()
    size = (chk / "totals").stat().st_size
    assert min(size / most / 2, 100) <= len(chunks) <= min(2 * size / most + 1, MAX_PARALLELISM)
    for chunk in chunks:
        assert sum(one.size for one in chunk.slices) <= most or len(chunk.slices) == 1
    values = [
        value
        for chunk in chunks
        for batch in read_chunk(pickle.loads(pickle.dumps(chunk)))
        for value in batch.column("value").to_pylist()
    ]
    assert sorted(values) == list(range(500))


def test_timer_keys_are_strings_if_operators_have_different_key_types() -> None:
    chk = str(STATE / _BY_NAME["2.2/sql-groups/canonical"]["path"])
    table = open_table(chk, StateOptions(StateView.TIMERS))
    assert [(column.name, column.type.ddl) for column in table.columns] == [
        *((name, "STRING") for name in ("operator_id", "uid", "name", "state")),
        ("key_group", "INT"),
        ("key", "STRING"),
        ("namespace", "STRING"),
        ("value", "BIGINT"),
    ]


def test_state_list_is_single_chunk() -> None:
    chk = str(STATE / _BY_NAME["2.2/kinds/canonical"]["path"])
    table = open_table(chk, StateOptions(StateView.STATES))
    (chunk,) = table.split()
    assert (chunk.slices, chunk.states) == ((), table.states)
    (batch,) = read_chunk(pickle.loads(pickle.dumps(chunk)))
    types = {column.name: column.type.ddl for column in table.columns}
    assert types.pop("ttl") == types.pop("readable") == "BOOLEAN"
    assert set(types.values()) == {"STRING"}
    rows = batch.to_pylist()
    assert [tuple(row.values()) for row in rows] == [tuple(state) for state in table.states]
    assert [row["state"] for row in rows] == [state.state for state in table.states] != []


def test_serialized_chunk_excludes_data_already_read(tmp_path: Path) -> None:
    chk = write_totals(tmp_path / "savepoint-1", 500)
    (chunk,) = open_table(str(chk), StateOptions(state="total")).split()
    assert sum(batch.num_rows for batch in read_chunk(chunk)) == 500
    assert len(pickle.dumps(chunk)) < (chk / "totals").stat().st_size // 8


def test_chunk_is_serialized_without_prefetched_data(tmp_path: Path) -> None:
    chk = write_totals(tmp_path / "savepoint-1", 20_000)
    assert (chk / "totals").stat().st_size > streams._MAX_WHOLE_BYTES
    (chunk,) = open_table(str(chk), StateOptions(state="total")).split()
    next(iter(read_chunk(chunk)))
    assert len(pickle.dumps(chunk)) < (chk / "totals").stat().st_size // 8


@pytest.mark.parametrize(
    "name", ["1.20/files/canonical", "2.2/kinds/native", "1.20/wide/retained", "2.2/rocksdb/native"]
)
def test_single_key_is_read_only_from_its_key_group(name: str) -> None:
    entry = _BY_NAME[name]
    for (operator, state), told in expected_states(entry).items():
        if told["kind"] == "timers":
            continue
        for one in told["entries"][:3]:
            options = StateOptions(operator=operator, state=state, key=str(one["key"]))
            chunks = open_table(str(STATE / entry["path"]), options).split()
            groups = [slice_.key_groups for chunk in chunks for slice_ in chunk.slices]
            assert groups == [range(one["key_group"], one["key_group"] + 1)]
            found = [
                row for chunk in chunks for batch in read_chunk(chunk) for row in batch.to_pylist()
            ]
            assert [row["key"] for row in found] == [
                other["key"] for other in told["entries"] if other["key"] == one["key"]
            ]


@pytest.mark.parametrize(
    ("name", "state", "key", "says"),
    [
        (
            "2.2/kinds/canonical",
            "value",
            "x",
            "is not a valid LONG, but the keys of state 'value' have this type",
        ),
        (
            "2.2/kinds/canonical",
            "value",
            str(1 << 63),
            "is not a valid LONG, but the keys of state 'value' have this type",
        ),
        ("2.3/sql-small/canonical", "accState", "x", "have a different type; filter"),
    ],
)
def test_key_with_wrong_type_is_usage_error(name: str, state: str, key: str, says: str) -> None:
    entry = _BY_NAME[name]
    with pytest.raises(UsageError, match=says):
        open_table(str(STATE / entry["path"]), StateOptions(state=state, key=key))


def test_missing_key_yields_no_rows() -> None:
    chk = str(STATE / _BY_NAME["2.2/kinds/canonical"]["path"])
    (chunk,) = open_table(chk, StateOptions(state="value", key="-9")).split()
    assert [batch.num_rows for batch in read_chunk(chunk) if batch.num_rows] == []
