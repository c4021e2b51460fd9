"""A test that computes without an end is given up; one that waits, as on a busy machine, is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_TESTS = """
import time
from tests.mutants import plugin
plugin._MOST_SECONDS = 0.2

def test_first():
    pass

def test_that_waits():
    time.sleep(0.5)

def test_that_computes():
    while True:
        try:
            sum(range(1000))
        except Exception:
            pass
"""

_COMPILED = """
from tests.mutants import plugin
plugin._MOST_SECONDS = 0.2

def test_that_hears_of_no_signal():
    sum(range(10**12))
"""


def _told(tmp_path: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_loop.py").write_text(tests)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.plugin", "test_loop.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_how_long_a_test_computes(tmp_path: Path) -> None:
    told = _told(tmp_path, _TESTS)
    assert "it has computed for 0 s" in told.stdout
    assert "1 failed, 2 passed" in told.stdout


def test_how_long_compiled_code_computes(tmp_path: Path) -> None:
    told = _told(tmp_path, _COMPILED)
    assert (told.returncode, told.stdout) == (-signal.SIGXCPU, "")
