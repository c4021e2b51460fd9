"""A savepoint of any size, with one operator that stores a number for each name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.checkpoints import RETAINED, write_checkpoint
from tests.support.encoder import FileHandle, KeyGroupsHandle, Operator, Subtask
from tests.support.encoder import keyed_values as of
from tests.support.encoder.keyed_state import Entry, KeyedState, encode_canonical, key_group_of

MAX_PARALLELISM = 128
OPERATOR = "0123456789abcdef0123456789abcdef"


def write_seen_instants(directory: Path, nanos: Sequence[int]) -> Path:
    """Write a canonical savepoint with the state `seen`: `true` for each Instant.

    ``nanos`` has the nanoseconds of each Instant since the epoch.
    """
    entries = []
    for seconds, nano in (divmod(number, 1_000_000_000) for number in nanos):
        hash_code = (seconds ^ seconds >> 32) + 51 * nano & 0xFFFFFFFF  # Instant.hashCode
        group = key_group_of(hash_code, MAX_PARALLELISM)
        entries.append(Entry(group, (seconds, nano), None, True))
    state = KeyedState("seen", "VALUE", of.VOID_NAMESPACE, of.BOOLEAN, tuple(entries))
    return _write(directory, of.INSTANT, state)


def write_totals(
    directory: Path, count: int, name: str = "total", *, version: int = 3, kind: str = RETAINED
) -> Path:
    """Write a canonical savepoint with one state, in the file `totals`.

    The state is called `name`. It has the value n for the key "name-" plus n in 60 digits, for each
    n below `count`.
    """
    keys = (f"name-{number:060}" for number in range(count))
    entries = tuple(
        Entry(key_group_of(key, MAX_PARALLELISM), key, None, number)
        for number, key in enumerate(keys)
    )
    state = KeyedState(name, "VALUE", of.VOID_NAMESPACE, of.LONG, entries)
    return _write(directory, of.STRING, state, version, kind)


def _write(
    directory: Path,
    key: of.Serializer,
    state: KeyedState,
    version: int = 3,
    kind: str = RETAINED,
) -> Path:
    data, offsets = encode_canonical(key, [state], range(MAX_PARALLELISM), MAX_PARALLELISM)
    handle = KeyGroupsHandle(
        0, offsets, FileHandle("file:/flink/savepoint/totals", len(data)), None, savepoint=True
    )
    subtask = Subtask(0, managed_keyed=handle)
    operator = Operator(bytes.fromhex(OPERATOR), 1, MAX_PARALLELISM, subtasks=(subtask,))
    written = write_checkpoint(directory, operator, version=version, kind=kind)
    (written / "totals").write_bytes(data)
    return written
