"""Refuse pipes, devices, and sparse files of many GiB.

For every way to pass a file, the command neither waits for the file nor fills the memory.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from decoder.storage import read_file
from tests.support.checkpoints import splits, write_source
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory

_ROOT = Path(__file__).parents[3]
_MEMORY = 3 << 30
_SPARSE = 64 << 30

# Runs each command of a list and prints its result.
_RUNS = """
import json, sys
from tests.support.command import migrate
for command in json.load(sys.stdin):
    result = migrate(*command)
    print(json.dumps([result.code, result.stdout, result.stderr]), flush=True)
"""


def _run(commands: list[list[str]], folder: Path) -> list[tuple[int, str, str]]:
    """Return the results of commands in a process with limits for memory and time."""
    limited = (resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    done = subprocess.Popen(
        [sys.executable, "-c", _RUNS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        preexec_fn=lambda: resource.setrlimit(*limited),
    )
    try:
        told, _ = done.communicate(json.dumps(commands), timeout=60)
    except subprocess.TimeoutExpired:
        done.kill()
        told, _ = done.communicate()
    return [tuple(json.loads(line)) for line in told.splitlines()]


def _commands(odd: str) -> list[list[str]]:
    """Return a command for each way to pass a file, and for each file in a directory."""
    tls = ["to-spark", "chk-7", "-b", "127.0.0.1:1", "-X", "security.protocol=SSL", "-X"]
    return [
        ["to-spark", "--plan", odd],
        ["verify", f"plan:{odd}", "spark:query"],
        ["rollback", odd],
        ["diff", "chk-7", f"json:{odd}"],
        ["diff", "chk-7", f"csv:{odd}"],
        ["to-spark", "chk-7", "--kafka-config", odd],
        [*tls, f"ssl.ca.location={odd}"],
        [*tls, f"ssl.key.location={odd}"],
        [*tls, f"ssl.truststore.location={odd}"],
        [*tls, f"ssl.keystore.location={odd}"],
        ["inspect", odd],
        ["inspect", "in/checkpoint"],
        ["diff", "chk-7", "spark:in/offsets"],
        ["diff", "chk-7", "spark:in/commits"],
        ["verify", "chk-7", "spark:in/sources"],
        ["to-spark", "chk-7", "--sink", "in/delta"],
    ]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    spark_directory(tmp_path / "query", {"sources/0/0": SEED})
    return tmp_path


def _put(odd: str) -> None:
    """Replace each file that is opened by its name in a directory with a link."""
    files = {"sources/0/0": SEED, "offsets/0": batch('{"t":{"0":9}}'), "commits/0": COMMIT}
    for name in ("offsets/0", "commits/0", "sources/0/0"):
        directory = spark_directory(Path("in", name.split("/")[0]), files)
        (directory / name).unlink()
        (directory / name).symlink_to(odd)
    for path in ("in/checkpoint/_metadata", f"in/delta/_delta_log/{0:020}.json"):
        Path(path).parent.mkdir(parents=True)
        Path(path).symlink_to(odd)


def test_file_is_read_up_to_size_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_file(file, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes") as caught:
        read_file(file, 4)
    assert caught.value.filename == str(file)
    # stat reports the size 0 for this file, although it has content.
    assert read_file("/proc/self/stat").startswith(str(os.getpid()).encode())
    with pytest.raises(OSError, match="larger than 8 bytes"):
        read_file("/proc/self/stat", 8)
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
def test_special_files_and_huge_sparse_files_are_refused_without_waiting(
    here: Path, kind: str
) -> None:
    odd = here / "odd"
    match kind:
        case "pipe":
            os.mkfifo(odd)
        case "device":
            odd.symlink_to("/dev/zero")
        case "sparse":
            odd.touch()
            os.truncate(odd, _SPARSE)
    _put(str(odd))
    commands = _commands(str(odd))
    results = _run(commands, here)
    for command, (code, stdout, stderr) in zip(commands, results, strict=False):
        assert code in (2, 3, 4, 6), (command, stderr)
        assert stdout == ""
        assert any(name in stderr for name in ("odd", "in/", ".location")), (command, stderr)
    assert len(results) == len(commands), f"the end was {commands[len(results)]}"
