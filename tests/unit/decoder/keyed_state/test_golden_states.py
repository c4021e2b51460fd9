"""Keyed state in golden checkpoints that were made for other purposes.

Beam's Kafka reader and SQL's deduplication store this state. The tests check the key group of each
entry rather than its content.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from decoder import DecodeError, ErrorKind
from decoder.keyed_state import KeyedState, StateKind, read_keyed_states
from decoder.keyed_state.types import Sql, SqlRow
from tests.fuzz.corpus import seeds
from tests.fuzz.targets import TARGETS
from tests.support.memory_files import MemoryFiles

GOLDEN = Path(__file__).parents[3] / "golden"
WITH_STATE = sorted(
    path
    for path in (p.parent for p in GOLDEN.rglob("_metadata"))
    if not {"synthetic", "state"} & set(path.relative_to(GOLDEN).parts)
    and read_keyed_states(path).states
)


def _state(name: str) -> tuple[Path, KeyedState]:
    return next(
        (path, state)
        for path in WITH_STATE
        for state in read_keyed_states(path).states
        if state.name == name
    )


def test_every_entry_is_in_key_group_of_its_key() -> None:
    assert WITH_STATE
    for path in WITH_STATE:
        for state in read_keyed_states(path).states:
            assert state.readable, (path, state.reason)
            for entry in state.entries():
                assert 0 <= entry.key_group < state.max_parallelism


def test_rows_of_sql_deduplication_are_read_with_sql_types() -> None:
    _, state = _state("deduplicate-state")
    assert (state.kind, state.ttl) == (StateKind.VALUE, False)
    assert isinstance(state.key, Sql)
    assert isinstance(state.key.type, SqlRow)
    entries = list(state.entries())
    assert entries
    assert all(entry.value["f0"] is not None for entry in entries)


def test_key_in_wrong_key_group_is_refused() -> None:
    path, state = _state("deduplicate-state")
    entry = next(state.entries())
    files = MemoryFiles.of(path)
    (name, data) = next(
        (name, data) for name, data in files.files.items() if name.endswith("_metadata")
    )
    key = str(entry.key["f0"]).encode()
    changed = bytes((key[0] ^ 1,)) + key[1:]
    assert data.count(key) >= 1
    files.files[name] = data.replace(key, changed)
    (damaged,) = (s for s in read_keyed_states(path, files).states if s.name == "deduplicate-state")
    with pytest.raises(DecodeError, match="is in key group") as refused:
        list(damaged.entries())
    assert refused.value.kind is ErrorKind.CORRUPT


def test_rows_of_incremental_rocksdb_checkpoint_are_read() -> None:
    found = [
        [tuple(entry) for entry in state.entries()]
        for path in sorted(GOLDEN.glob("*/rocksdb-incremental/*/chk-*"))
        for state in read_keyed_states(path).states
    ]
    assert found
    for entries in found:
        assert [(entry[1], entry[4]["f0"]) for entry in entries] == [
            (name, name) for name in ("orders:0", "orders:1")
        ]


def test_state_of_changelog_backend_is_refused() -> None:
    paths = sorted(GOLDEN.glob("*/changelog/*/chk-*"))
    assert paths
    for path in paths:
        found = read_keyed_states(path)
        assert found.states == ()
        (unread,) = found.unread
        assert unread.error.kind is ErrorKind.UNSUPPORTED
        assert "changelog" in unread.error.problem


@pytest.mark.slow
@pytest.mark.parametrize("target", ["keyed-head", "keyed-stream", "binary-row", "avro", "kryo"])
def test_truncated_or_changed_keyed_state_raises_only_decode_error(target: str) -> None:
    random = Random(target)
    every = seeds()[target]
    for seed in random.sample(every, min(60, len(every))):
        for _ in range(100):
            damaged = bytearray(seed[: random.randrange(len(seed)) or None])
            for _ in range(random.randrange(3)):
                damaged[random.randrange(len(damaged))] = random.choice((0, 1, 127, 128, 255))
            with suppress(DecodeError):
                TARGETS[target].parse(bytes(damaged))
