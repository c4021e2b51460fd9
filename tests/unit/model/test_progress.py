"""Long stages show their progress as lines in a log file or a notebook, each line once."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import redirect_stderr

import pytest

from migrate.cli import terminal
from migrate.model import log as stages
from migrate.model import progress
from migrate.model.log import StageWatcher, timed
from migrate.model.progress import ProgressLines, progress_lines

_INTERVAL = 0.05


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL", _INTERVAL)


@pytest.fixture
def no_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a program that has not imported the command line."""
    watchers: list[StageWatcher] = []
    monkeypatch.setattr(stages, "watchers", watchers)
    monkeypatch.setattr(progress, "watchers", watchers)


def _wait_for(lines: list[str] | io.StringIO, text: str) -> None:
    deadline = time.monotonic() + 30
    while text not in (lines.getvalue() if isinstance(lines, io.StringIO) else "\n".join(lines)):
        assert time.monotonic() < deadline, lines
        time.sleep(_INTERVAL / 5)


@pytest.fixture
def lines(fast: None, no_watchers: None) -> Iterator[list[str]]:
    written: list[str] = []
    watcher = ProgressLines(written.append)
    stages.watchers.append(watcher)
    yield written
    stages.watchers.remove(watcher)


def test_long_stage_writes_progress_lines_with_last_observation(lines: list[str]) -> None:
    with timed("waiting for the first batch") as stage:
        _wait_for(lines, "    ... waiting for the first batch: 0 s")
        stage.seen("batch 3 has started")
        _wait_for(lines, "    ... waiting for the first batch: 0 s; batch 3 has started")


def test_progress_of_inner_stage_is_shown_until_that_stage_ends(lines: list[str]) -> None:
    with timed("outer"):
        with timed("inner"):
            _wait_for(lines, "inner")
        lines.clear()
        _wait_for(lines, "outer")
        assert not [line for line in lines if "inner" in line]


@pytest.fixture
def slow_lines(no_watchers: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Like ``lines``, but with an interval that is long even on a busy machine."""
    monkeypatch.setattr(progress, "INTERVAL", 0.5)
    written: list[str] = []
    watcher = ProgressLines(written.append)
    stages.watchers.append(watcher)
    yield written
    stages.watchers.remove(watcher)


def test_short_stages_in_a_row_write_progress_lines(slow_lines: list[str]) -> None:
    """Regression: A series of stages of nine seconds each wrote no progress line."""
    for number in range(12):
        with timed(f"stage {number}"):
            time.sleep(0.1)
    assert slow_lines


def test_stage_after_long_break_starts_new_progress_interval(slow_lines: list[str]) -> None:
    for _ in range(2):
        with timed("short"):
            time.sleep(0.01)
        time.sleep(0.6)
    assert slow_lines == []


def test_short_or_finished_stage_writes_no_progress_lines(lines: list[str]) -> None:
    with timed("short"):
        pass
    time.sleep(3 * _INTERVAL)
    assert lines == []


def test_control_characters_in_progress_line_are_escaped(lines: list[str]) -> None:
    with timed("waiting") as stage:
        stage.seen("\x1b[2Jbatch")
        _wait_for(lines, "\\x1b[2Jbatch")


def test_nested_library_calls_write_each_progress_line_to_stderr_once(
    fast: None, no_watchers: None
) -> None:
    @progress_lines()
    def prime() -> None:
        with progress_lines(), timed("priming"):
            _wait_for(stderr, "priming")

    stderr = io.StringIO()
    with redirect_stderr(stderr):
        prime()
    assert stages.watchers == []
    written = stderr.getvalue().splitlines()
    assert len(written) == len(set(written)) or len(written) < 3


def test_command_without_terminal_writes_progress_lines(fast: None) -> None:
    stderr = io.StringIO()
    with redirect_stderr(stderr):
        busy = terminal.BusyLine()
        busy.begin("reading s3://user:secret@bucket/chk-1")
        busy.seen("7 of 9 files")
        _wait_for(stderr, "7 of 9 files")
        busy.end()
    assert "    ... reading s3://" in stderr.getvalue()
    assert "secret" not in stderr.getvalue()


def test_quiet_command_writes_no_progress_lines(
    fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "lowest_level", terminal.QUIET)
    stderr = io.StringIO()
    with redirect_stderr(stderr):
        busy = terminal.BusyLine()
        busy.begin("reading chk-1")
        busy.seen("7 of 9 files")
        time.sleep(3 * _INTERVAL)
        busy.end()
    assert stderr.getvalue() == ""
