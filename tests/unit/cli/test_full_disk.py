"""Errors on a full disk contain the file's name, and no file remains.

A file limit of zero bytes (``RLIMIT_FSIZE``) fails in the same calls as a full disk. These are
write() and fsync(), and their errors contain no name. /dev/full is a stdout on a full disk.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkpoints import splits, write_source

pytestmark = pytest.mark.slow  # each test starts a process

_ROOT = Path(__file__).parents[3]


def _run(
    folder: Path, *arguments: str, stdout: int = subprocess.PIPE, full: bool = True
) -> subprocess.CompletedProcess[str]:
    def no_byte() -> None:
        if full:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    return subprocess.run(
        [sys.executable, "-m", "migrate", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        preexec_fn=no_byte,
    )


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    return tmp_path


@pytest.mark.parametrize("option", ["--plan-out", "--checkpoint-dir"], ids=["plan", "seed"])
def test_full_disk_error_reports_plan_or_seed_path_and_leaves_no_file(
    here: Path, option: str
) -> None:
    """The documented exit code for every file that cannot be written is 6."""
    done = _run(here, "to-spark", "chk-7", option, "new")
    assert (done.returncode, done.stdout) == (6, "")
    last = done.stderr.splitlines()[-1]
    assert "new" in last and "File too large" in last
    assert [path.name for path in here.iterdir()] == ["chk-7"]


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_error_on_full_disk_contains_path_of_scan_output_and_no_file_remains(
    here: Path, table_format: str
) -> None:
    done = _run(here, "scan", "chk-7", "--output", "new", "--format", table_format)
    assert (done.returncode, done.stdout) == (6, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"migrate: {here / 'new'}: ")
    assert line.endswith("File too large")
    assert [path.name for path in here.iterdir()] == ["chk-7"]


def test_error_on_full_disk_contains_path_of_rollback_file_and_no_file_remains(
    tmp_path: Path,
) -> None:
    """The test calls the function with which `commit-group` writes its rollback file."""
    code = (
        "import resource\nfrom pathlib import Path\n"
        "from migrate.storage.new_file import write_new\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try:\n    write_new(Path('rollback.json'), 'text')\n"
        "except OSError as error:\n    print(error.filename)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
    )
    assert done.stdout == "rollback.json\n", done.stderr
    assert not list(tmp_path.iterdir())


def test_error_on_full_disk_contains_path_of_cut_over_lock(here: Path) -> None:
    """Regression: The message was "the system: No space left on device", without the path."""
    (here / "orders.yaml").write_text(
        "version: 1\nflink: {savepoint: chk-7}\nkafka: {bootstrap-servers: '127.0.0.1:1'}\n"
        "target: {checkpoint-dir: query}\n"
    )
    done = _run(here, "cut-over", "orders.yaml", "--execute", "--yes")
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr == f"migrate: {here / 'orders.cut-over/lock'}: File too large\n"
    assert not (here / "query").exists()


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_to_spark_exits_with_5_if_seed_is_written_but_stdout_is_full(
    here: Path, quiet: list[str]
) -> None:
    command = ("to-spark", "chk-7", "--checkpoint-dir", "seed", *quiet)
    done = _run_with_full_stdout(here, *command)
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1] == (
        "migrate: stdout: No space left on device; the checkpoint location seed is complete"
    )
    assert (here / "seed/sources/0/0").read_bytes() == b'\0v1\n{"t":{"0":3,"1":4}}'


def test_to_spark_exits_with_5_if_query_is_written_but_stdout_is_full(here: Path) -> None:
    """Regression: The exit code was 6, and a second run refused the query file that exists."""
    command = ("to-spark", "chk-7", "--format", "python", "--query-file", "query.py")
    done = _run_with_full_stdout(here, *command)
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1] == (
        "migrate: stdout: No space left on device; the query query.py is complete"
    )
    assert (here / "query.py").read_text().endswith("\n")


# Commands that write nothing but their result. A group needs a broker (tests/integration).
_RESULTS_ALONE = (
    ("inspect", "chk-7"),
    ("to-spark", "chk-7"),
    ("verify", "chk-7", "spark:seed"),
    ("diff", "chk-7", "spark:seed"),
)


@pytest.mark.parametrize("command", _RESULTS_ALONE, ids=lambda command: command[0])
def test_command_exits_with_6_if_stdout_is_full_and_nothing_else_is_written(
    here: Path, command: tuple[str, ...]
) -> None:
    assert _run(here, "to-spark", "chk-7", "--checkpoint-dir", "seed", full=False).returncode == 0
    done = _run_with_full_stdout(here, *command)
    assert done.returncode == 6
    assert done.stderr.splitlines()[-1] == "migrate: stdout: No space left on device"


@pytest.mark.parametrize(
    "command", [*_RESULTS_ALONE, ("commit-group", "chk-7", "--group", "g")], ids=lambda c: c[0]
)
def test_command_exits_with_2_if_stdout_is_closed(here: Path, command: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "migrate", *command],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
    )
    assert done.returncode == 2
    assert done.stderr == (
        "migrate: stdout is closed; migrate could not print a result; nothing was done\n"
    )


def _run_with_full_stdout(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        return _run(folder, *command, stdout=full, full=False)
    finally:
        os.close(full)
