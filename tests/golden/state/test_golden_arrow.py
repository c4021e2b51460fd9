"""Read keyed state of the golden snapshots with ``read_state`` and compare it with Flink.

The types of the columns are fixed before the first row.
"""

from __future__ import annotations

import pickle
import re
from typing import Any

import pyarrow as pa
import pytest

import migrate
from decoder.keyed_state import read_keyed_states
from migrate.extensions.keyed_state.arrow import DoesNotFit, part_batches
from migrate.extensions.keyed_state.type_mapping import columns
from migrate.model.column_types import arrow_schema
from migrate.storage.files import Files
from tests.golden.state.generate import STATE
from tests.golden.state.test_golden_keyed_state import READ, class_needed
from tests.support.keyed_rows import assert_same_rows, expected_states

pytestmark = pytest.mark.slow

# The columns are the same in every snapshot form. The next test covers the other forms.
_CANONICAL = [entry for entry in READ if entry["name"].endswith("/canonical")]


@pytest.mark.parametrize("entry", _CANONICAL, ids=lambda entry: str(entry["name"]))
def test_arrow_batches_match_state_restored_by_flink(entry: dict[str, Any]) -> None:
    expected = expected_states(entry)
    readable = [
        state for state in read_keyed_states(STATE / entry["path"]).states if state.readable
    ]
    assert readable
    for state in readable:
        wanted = expected[state.operator_id, state.name]
        if class_needed(wanted) is not None:
            continue
        batches = list(
            migrate.read_state(
                STATE / entry["path"],
                operator=state.operator_id,
                state=state.name,
                truncate_keys=True,
            )
        )
        schema = arrow_schema(columns(state))
        assert all(batch.schema.equals(schema) for batch in batches), state.name
        assert_same_rows(pa.Table.from_batches(batches, schema), wanted["entries"])


@pytest.mark.parametrize(
    "entry",
    [entry for entry in READ if entry["name"].startswith("2.2/")],
    ids=lambda entry: str(entry["name"]),
)
def test_state_read_from_pickled_parts_is_complete(entry: dict[str, Any]) -> None:
    """The test divides the state into its smallest parts.

    It pickles the parts and reads them as Spark's executors do.
    """
    found = read_keyed_states(STATE / entry["path"], Files())
    for state in found.states:
        wanted = expected_states(entry)[state.operator_id, state.name]
        if not state.readable or class_needed(wanted) is not None:
            continue
        batches: list[pa.RecordBatch] = []
        for part in state.parts:
            assert list(part.batches()) is not None  # the cache that this fills is not pickled
            shares = part.key_group_ranges(1)
            assert [len(share) for share, _ in shares] == [1] * len(shares) or len(shares) == 1
            for share, size in shares:
                assert size > 0
                sent = pickle.loads(pickle.dumps(part))
                batches += part_batches(state, sent, share, columns(state, truncate_keys=True))
        assert_same_rows(
            pa.Table.from_batches(batches, arrow_schema(columns(state))), wanted["entries"]
        )


# A date and time that microseconds cannot represent, in the format of java.time.
_NANOS = re.compile(r"T[\d:]{8}\.\d{6}(?!000)\d{3}(Z|$)")


@pytest.mark.parametrize("reader", ["kernel", "plain"])
@pytest.mark.parametrize(
    "name", ["2.2/keys/canonical", "2.2/keys/native", "2.2/types/canonical", "1.20/keys/canonical"]
)
def test_keys_with_nanoseconds_are_refused(
    name: str, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: Keys were truncated to microseconds, so 129 keys silently became 46.

    Only values may be truncated.
    """
    if reader == "plain":
        monkeypatch.setattr("migrate.extensions.keyed_state.arrow.find_spec", lambda _: None)
        monkeypatch.setattr("migrate.extensions.keyed_state.arrow.check_arrow", lambda: None)
    (entry,) = [entry for entry in READ if entry["name"] == name]
    refused = []
    for state in read_keyed_states(STATE / entry["path"]).states:
        wanted = expected_states(entry)[state.operator_id, state.name]
        if not state.readable or class_needed(wanted) is not None:
            continue
        keys = [
            str(row.get(column))
            for row in wanted["entries"]
            for column in ("key", "map_key", "namespace")
        ]
        arguments: dict[str, Any] = {"operator": state.operator_id, "state": state.name}
        if any(_NANOS.search(key) for key in keys):
            refused.append((state.operator_name, state.name))
            with pytest.raises(
                DoesNotFit, match="different keys could become equal; set truncateKeys"
            ):
                list(migrate.read_state(STATE / entry["path"], **arguments))
        else:
            assert list(migrate.read_state(STATE / entry["path"], **arguments))
    # The keys are of type Instant, LocalDateTime, and java.sql.Timestamp.
    assert len(refused) >= 6 or "types" in name, refused
