"""Read damaged checkpoints, and accept only a decoded result or a DecodeError.

The damage is every strict prefix of the files of one golden checkpoint per scenario, samples of
prefixes of all golden checkpoints, and flipped bytes. The memory is bounded. `make fuzz` continues
with more random damage.
"""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from decoder import DecodeError, read_checkpoint
from migrate.inputs.flink.extract import extract
from tests.support.golden import ENTRIES, GOLDEN, ONE_OF_EACH
from tests.support.memory_files import MemoryFiles

SEED = 20261121

# The memory limit for reading, in addition to the files. The Python objects for each handle are
# larger than its bytes.
_MEMORY_PER_BYTE = 60
_MEMORY_FLOOR = 1 << 20


# A test of all prefixes reads a file once for each of its bytes. In a large file, a few changed
# bytes may all be undetectable.
_SMALL = 16 << 10


def _checkpoints(sample: int, thorough: int) -> list[Any]:
    """Return small golden checkpoints with a sample of damage, and one per scenario with more."""
    cases = []
    for entry in ENTRIES:
        name, path = entry["name"], GOLDEN / str(entry["path"])
        if (path / "_metadata").stat().st_size > _SMALL:
            continue
        marks = () if name in ONE_OF_EACH else (pytest.mark.slow,)
        cases.append(pytest.param(path, sample, id=name, marks=marks))
        if name in ONE_OF_EACH:
            cases.append(
                pytest.param(path, thorough, id=f"{name}-thorough", marks=pytest.mark.slow)
            )
    return cases


def _files(pointer: Path) -> MemoryFiles:
    """Return the checkpoint's own files and the shared files of its job."""
    job = pointer.parent if pointer.name.startswith("chk-") else pointer
    return MemoryFiles.of(job)


@pytest.mark.parametrize(("pointer", "prefixes"), _checkpoints(4, _SMALL))
def test_checkpoint_is_refused_if_any_of_its_files_is_truncated(
    pointer: Path, prefixes: int
) -> None:
    """Every file is truncated at many positions."""
    files = _files(pointer)
    complete = read_checkpoint(str(pointer), files)
    used = _used_files(pointer, files)
    assert str(pointer / "_metadata") in used
    for path in used:
        whole = files.files[path]
        for size in range(0, len(whole), max(1, len(whole) // prefixes)):
            files.files[path] = whole[:size]
            try:
                decoded = read_checkpoint(str(pointer), files)
            except DecodeError:
                continue
            # Only a merged file can be truncated unnoticed, because its end belongs to other
            # operators.
            assert "/taskowned/" in path or "/shared/" in path
            assert decoded == complete
        files.files[path] = whole


def _used_files(pointer: Path, files: MemoryFiles) -> list[str]:
    """Return the files that decoding requires, because it fails without each of them."""
    needed = []
    for path in list(files.files):
        without = MemoryFiles({name: data for name, data in files.files.items() if name != path})
        try:
            read_checkpoint(str(pointer), without)
        except DecodeError:
            needed.append(path)
    return needed


@pytest.mark.parametrize(("pointer", "flips"), _checkpoints(30, 300))
def test_checkpoint_with_changed_bytes_decodes_or_raises_decode_error_in_bounded_memory(
    pointer: Path, flips: int
) -> None:
    """Up to four bytes of one file are changed at random."""
    choice = random.Random(SEED)
    files = _files(pointer)
    size = sum(map(len, files.files.values()))
    outcomes = {"decoded": 0, "refused": 0}
    tracemalloc.start()
    try:
        for _ in range(flips):
            damaged = _flip(files, choice)
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            try:
                extract(read_checkpoint(str(pointer), damaged))
                outcomes["decoded"] += 1
            except DecodeError:
                outcomes["refused"] += 1
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < _MEMORY_FLOOR + _MEMORY_PER_BYTE * size
    finally:
        tracemalloc.stop()
    # Some damage is detected. Other damage is equal to bytes that Flink could write.
    assert outcomes["decoded"] > 0
    assert outcomes["refused"] > 0


def _flip(files: MemoryFiles, choice: random.Random) -> MemoryFiles:
    """Set one to four bytes of one file to values that are likely to cause errors."""
    path = choice.choice(sorted(files.files))
    data = bytearray(files.files[path])
    for _ in range(choice.randint(1, 4)):
        place = choice.randrange(len(data))
        data[place] = choice.choice((0, 1, 0x7F, 0x80, 0xFF, choice.randrange(256)))
    return MemoryFiles({**files.files, path: bytes(data)})
