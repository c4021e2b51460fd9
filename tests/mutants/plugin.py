"""pytest's part: which test runs which lines, and running some tests in a certain order.

With ``MUTANTS_RECORD=FILE``, under coverage, each line is noted with the test that ran it, and the
tests that passed are written to the file: see ``Record``. With ``MUTANTS_TESTS=FILE`` the tests
named there run, in that order, and no others. With ``MUTANTS_SERVE=READ,WRITE``, two descriptors,
the tests are collected, and what is asked over these is answered.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import pytest

from tests.mutants.forks import serve

# How long a test may compute before its fault is taken for one that makes a loop without an end: in
# seconds of the processor, as the clock of a busy machine says nothing.
_MOST_SECONDS = 60.0
# Compiled code hears of no signal: with as many seconds more the process is ended.
_HARD = resource.getrlimit(resource.RLIMIT_CPU)[1]
_RECORD = os.environ.get("MUTANTS_RECORD")
_TESTS = os.environ.get("MUTANTS_TESTS")
_SERVE = os.environ.pop("MUTANTS_SERVE", None)
_seconds: dict[str, float] = {}
_not_passed: set[str] = set()
_sharing: list[str] = []
_starting: set[str] = set()
_running: list[str] = []


class Record(TypedDict):
    """The tests that passed, with the seconds each took; of these, those that share a fixture with
    others, and those that start processes."""

    seconds: dict[str, float]
    sharing: list[str]
    starting: list[str]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if _RECORD is not None:
        from coverage import Coverage

        measured = Coverage.current()
        assert measured is not None
        measured.switch_context(item.nodeid)
        _running[:] = [item.nodeid]
        if _shares(item):
            _sharing.append(item.nodeid)
        return (yield)
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_SECONDS)
    most = math.ceil(time.process_time() + 2 * _MOST_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (most, _HARD))
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (_HARD, _HARD))


def _give_up(*_: object) -> None:
    pytest.fail(f"it has computed for {_MOST_SECONDS:.0f} s")


def _shares(item: pytest.Item) -> bool:
    """Whether a fixture of ours that it needs may have been made for another test."""
    assert isinstance(item, pytest.Function)
    needed = (made[-1] for made in item._fixtureinfo.name2fixturedefs.values())
    return any(
        made.scope != "function" and made.func.__module__.startswith("tests.") for made in needed
    )


def _watch(event: str, _: object) -> None:
    if event == "subprocess.Popen":
        _starting.update(_running)


if _RECORD is not None:
    sys.addaudithook(_watch)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        _not_passed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    if _RECORD is not None:
        passed = {test: _seconds[test] for test in sorted(_seconds.keys() - _not_passed)}
        record = Record(
            seconds=passed,
            sharing=[test for test in _sharing if test in passed],
            starting=[test for test in passed if test in _starting],
        )
        Path(_RECORD).write_text(json.dumps(record))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if _TESTS is not None:
        order = {test: n for n, test in enumerate(json.loads(Path(_TESTS).read_text()))}
        items[:] = sorted(
            (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
        )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if _SERVE is None:
        return None
    asked, answered = map(int, _SERVE.split(","))
    serve({item.nodeid: item for item in session.items}, asked, answered)
    return True
