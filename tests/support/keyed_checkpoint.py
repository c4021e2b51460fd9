"""A savepoint of any size, with one operator that stores a number for each name."""

from __future__ import annotations

from pathlib import Path

from tests.support.checkpoints import RETAINED, write_checkpoint
from tests.support.encoder import FileHandle, KeyGroupsHandle, Operator, Subtask
from tests.support.encoder import keyed_values as of
from tests.support.encoder.keyed_state import Entry, KeyedState, encode_canonical, key_group_of

MAX_PARALLELISM = 128
OPERATOR = "0123456789abcdef0123456789abcdef"


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
    data, offsets = encode_canonical(of.STRING, [state], range(MAX_PARALLELISM), MAX_PARALLELISM)
    handle = KeyGroupsHandle(
        0, offsets, FileHandle("file:/flink/savepoint/totals", len(data)), None, savepoint=True
    )
    subtask = Subtask(0, managed_keyed=handle)
    operator = Operator(bytes.fromhex(OPERATOR), 1, MAX_PARALLELISM, subtasks=(subtask,))
    written = write_checkpoint(directory, operator, version=version, kind=kind)
    (written / "totals").write_bytes(data)
    return written
