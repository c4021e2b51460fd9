"""Read states in RocksDB's own files, and refuse damaged files.

RocksDB itself writes the files in the layout of Flink's backend.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from struct import pack

import pytest

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state import KeyedState, read_keyed_states
from tests.support.encoder import (
    ByteStreamHandle,
    FileHandle,
    IncrementalHandle,
    Metadata,
    Operator,
    Subtask,
    encode_metadata,
)
from tests.support.encoder.keyed_state import KeyedState as Encoded
from tests.support.encoder.keyed_state import encode_head, key_group_of
from tests.support.encoder.keyed_values import BYTES, LONG, VOID_NAMESPACE, Serializer
from tests.support.keyed_bytes import OPERATOR, POINTER, json_entries
from tests.support.memory_files import MemoryFiles
from tests.support.rocksdb_files import write_rocksdb

_KEYS = (1, 2, 3)
_MAX_PARALLELISM = 128
_DIRECTORY = "/flink/checkpoints/chk-1"


def _row(key: int) -> bytes:
    group = key_group_of(key, _MAX_PARALLELISM)
    return bytes((group,)) + pack(">q", key) + b"\0"


def _database(directory: Path, rows: dict[bytes, bytes], family: str = "count") -> dict[str, bytes]:
    """Return RocksDB's files of a column family by name."""
    files = write_rocksdb(directory, family, rows.items())
    return {file.name: file.read_bytes() for file in files}


def _state(
    files: dict[str, bytes],
    first: int = 0,
    groups: int = _MAX_PARALLELISM,
    value: Serializer = LONG,
) -> KeyedState:
    head = encode_head(LONG, [Encoded("count", "VALUE", VOID_NAMESPACE, value, ())])
    private = tuple(
        (name, FileHandle(f"file:{_DIRECTORY}/{name}", len(data))) for name, data in files.items()
    )
    handle = IncrementalHandle(
        1, "backend", first, groups, None, ByteStreamHandle("head", head), (), private, None
    )
    operator = Operator(OPERATOR, 1, _MAX_PARALLELISM, subtasks=(Subtask(0, managed_keyed=handle),))
    data = encode_metadata(Metadata(1, (operator,)), 3)
    stored = {f"{_DIRECTORY}/{name}": data for name, data in files.items()}
    (state,) = read_keyed_states(POINTER, MemoryFiles({POINTER: data, **stored})).states
    return state


def _fails(state: KeyedState) -> DecodeError:
    with pytest.raises(DecodeError) as refused:
        json_entries(state)
    return refused.value


def test_rows_of_rocksdb_column_family_are_read_per_key_group(tmp_path: Path) -> None:
    files = _database(tmp_path / "db", {_row(key): pack(">q", 10 * key) for key in _KEYS})
    found = json_entries(_state(files))
    assert sorted((line["key"], line["value"]) for line in found) == [(1, 10), (2, 20), (3, 30)]
    # The files can contain rows in key groups of other subtasks.
    group = key_group_of(2, _MAX_PARALLELISM)
    assert [line["key"] for line in json_entries(_state(files, group, 1))] == [2]


@pytest.mark.slow
def test_many_rows_of_key_group_are_read_in_batches(tmp_path: Path) -> None:
    """Together, the batches contain every row."""
    group = key_group_of(1, _MAX_PARALLELISM)
    keys = [key for key in range(400_000) if key_group_of(key, _MAX_PARALLELISM) == group][:2100]
    files = _database(tmp_path / "db", {_row(key): pack(">q", key) for key in keys})
    state = _state(files)
    values = sorted(line["value"] for line in json_entries(state))
    complete = values == keys
    assert complete
    (part,) = state.parts
    sizes = [len(batch) for batch in part.batches([group])]
    assert 1 < len(sizes) < 4
    assert part.key_group_ranges(1) == [(range(_MAX_PARALLELISM), sum(map(len, files.values())))]


@pytest.mark.slow
def test_large_rocksdb_file_is_copied_in_parts(tmp_path: Path) -> None:
    value = Random(1).randbytes(17 * 1024 * 1024)
    files = _database(tmp_path / "db", {_row(1): pack(">i", len(value)) + value})
    assert max(map(len, files.values())) > len(value)
    state = _state(files, value=BYTES)
    (entry,) = state.entries()
    same = entry.value == value
    assert same


@pytest.mark.slow
def test_damaged_rocksdb_rows_are_refused(tmp_path: Path) -> None:
    where = "operator 000102030405060708090a0b0c0d0e0f subtask 0 keyed state key group "
    group = key_group_of(1, _MAX_PARALLELISM)
    for name, row, kind, problem in (
        ("short", {_row(1): b"\0"}, ErrorKind.TRUNCATED, "the bytes end inside of an entry"),
        ("cut", {_row(1)[:5]: bytes(8)}, ErrorKind.TRUNCATED, "the bytes end inside of an entry"),
        ("long", {_row(1): bytes(9)}, ErrorKind.CORRUPT, "1 bytes are left over after a value"),
    ):
        error = _fails(_state(_database(tmp_path / name, row)))
        assert (error.kind, error.problem) == (kind, problem)
        assert (error.file, error.field) == (f"{where}{group}", "state 'count'")


def test_unexpected_rocksdb_files_and_column_families_are_refused(tmp_path: Path) -> None:
    files = _database(tmp_path / "db", {_row(1): bytes(8)}, family="other")
    error = _fails(_state(files))
    assert (error.kind, error.problem) == (
        ErrorKind.CORRUPT,
        "RocksDB has no column family 'count'",
    )
    for name in ("../escape.sst", "x.sst", "CURRENT.sh", "LOCK"):
        error = _fails(_state({**files, name: b""}))
        assert (error.kind, error.problem) == (
            ErrorKind.CORRUPT,
            f"{name!r} is not a RocksDB file",
        )


@pytest.mark.slow
def test_damaged_rocksdb_database_is_refused(tmp_path: Path) -> None:
    files = _database(tmp_path / "db", {_row(key): bytes(8) for key in _KEYS})
    manifest = next(name for name in files if name.startswith("MANIFEST"))
    error = _fails(_state({**files, manifest: b"?" * 40}))
    assert error.kind is ErrorKind.CORRUPT
    assert error.problem.startswith("RocksDB cannot open the copied files: ")
    table = next(name for name in files if name.endswith(".sst"))
    damaged = bytearray(files[table])
    damaged[: len(damaged) // 4] = b"?" * (len(damaged) // 4)
    error = _fails(_state({**files, table: bytes(damaged)}))
    assert error.kind is ErrorKind.CORRUPT
    assert error.problem.startswith("RocksDB cannot ")
