"""Compare every entry of keyed state in the golden snapshots with Flink's restored state."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from decoder import DecodeError, ErrorKind
from decoder.keyed_state import KeyedState, read_keyed_states
from migrate.extensions.keyed_state.json_form import entry_json
from tests.golden.state.generate import STATE
from tests.golden.state.test_state_manifest import ENTRIES

# States that contain a user's class, and the class that the refusal lists. Flink can read these
# states because its classpath contains the class.
_NEED_THEIR_CLASS = {
    # Flink serializes a class that contains itself with Kryo.
    "tree": "testjobs.Things$Tree",
    # A serializer snapshot does not contain unregistered subclasses.
    "manager": "testjobs.Things$Manager",
}
# Snapshots in which all state is only in the changelog.
_LOGS = [entry for entry in ENTRIES if entry["name"].endswith("/changelog/retained")]
READ = [entry for entry in ENTRIES if entry not in _LOGS]


def lines(entries: Iterable[dict[str, Any]]) -> Counter[str]:
    """Count the entries as JSON, because they have no order."""
    return Counter(json.dumps(entry, sort_keys=True) for entry in entries)


def class_needed(expected: dict[str, Any]) -> str | None:
    named: str | None = expected.get("unreadable") or _NEED_THEIR_CLASS.get(expected["state"])
    return named


@pytest.mark.parametrize("entry", READ, ids=lambda entry: str(entry["name"]))
def test_every_keyed_entry_matches_state_restored_by_flink(entry: dict[str, Any]) -> None:
    found = read_keyed_states(STATE / entry["path"])
    assert not found.unread
    states = {(state.operator_id, state.name): state for state in found.states}
    operators = json.loads((STATE / entry["expected"]).read_text())
    expected = {
        (operator["operator_id"], state["state"]): state
        for operator in operators
        for state in operator["states"]
    }
    assert states.keys() == expected.keys()
    needed = Counter(of for (of, _), state in expected.items() if class_needed(state))
    several = {of for of, count in needed.items() if count > 1 and "/native" in entry["name"]}
    blocked = {of for (of, _), state in expected.items() if class_needed(state)}
    for (of, name), state in states.items():
        wanted = expected[of, name]
        assert state.kind.value == wanted["kind"], name
        named = class_needed(wanted)
        if named is not None:
            told = refusal(state)
            assert named in told or (of in several and "stored after" in told), name
        elif not entry["name"].endswith("/canonical") and of in blocked and state.reason:
            # In the heap backend's stream, this state is stored after an unreadable state.
            assert "stored after" in refusal(state), name
        else:
            found_lines = lines(entry_json(state, one) for one in state.entries())
            assert found_lines == lines(wanted["entries"]), name


def refusal(state: KeyedState) -> str:
    """Return the reason why a state cannot be read."""
    with pytest.raises(DecodeError) as refused:
        list(state.entries())
    assert refused.value.kind is ErrorKind.UNSUPPORTED
    return str(refused.value)


@pytest.mark.parametrize("entry", _LOGS, ids=lambda entry: str(entry["name"]))
def test_changelog_state_is_refused_with_reason(entry: dict[str, Any]) -> None:
    found = read_keyed_states(STATE / entry["path"])
    assert not found.states
    assert {error.error.kind for error in found.unread} == {ErrorKind.UNSUPPORTED}
    assert all("changelog" in error.error.problem for error in found.unread)


@pytest.mark.parametrize("name", ["1.20/rocksdb-rescaled-up", "2.2/file-merging"])
def test_keyed_state_is_read_completely_or_refused_if_subtask_file_is_missing(
    name: str, tmp_path: Path
) -> None:
    """Regression: The entries of the other subtasks were returned as the whole state."""
    (metadata,) = (STATE / name / "canonical").rglob("_metadata")
    operators = json.loads((STATE / name / "expected.json").read_text())
    expected = {
        (operator["operator_id"], state["state"]): len(state.get("entries", ()))
        for operator in operators
        for state in operator["states"]
    }
    files = [path.name for path in metadata.parent.iterdir() if path.name != "_metadata"]
    found: Counter[str] = Counter()
    for file in files:
        copy = shutil.copytree(metadata.parent, tmp_path / file)
        copy.joinpath(file).unlink()
        keyed = read_keyed_states(copy)
        found["unread"] += len(keyed.unread)
        for state in keyed.states:
            with suppress(DecodeError):
                entries = sum(1 for _ in state.entries())
                assert entries == expected[state.operator_id, state.name], state.name
                found["complete"] += 1
    # One file contains no keyed state, so the copy without it is complete.
    assert found["unread"] and found["complete"] == len(expected)
