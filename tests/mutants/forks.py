"""Tries a fault in a fork of a pytest that has collected its tests: without its start's seconds.

The fault is put into the functions that are there already: their code is exchanged, so that it
does not matter who has imported them. What runs on import, and what other processes run, is out of
its sight.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest

# A fault may make a loop that eats memory.
MEMORY_BYTES = 6 << 30


class Job(NamedTuple):
    """A fault: the file's path from the root and its two texts; and the tests it is tried with."""

    path: str
    healthy: str
    faulty: str
    tests: list[str]
    seconds: float


class Answer(NamedTuple):
    """``killed_by`` is a test, or why there is none; ``tried`` is False where this cannot tell."""

    tried: bool
    killed_by: str | None


def serve(items: dict[str, pytest.Item], asked: int, answered: int) -> None:
    """Answer jobs that come over one pipe, one a line, over another, until there are none."""
    with os.fdopen(asked) as jobs, os.fdopen(answered, "w") as answers:
        for line in jobs:
            answers.write(json.dumps(_try(Job(*json.loads(line)), items)) + "\n")
            answers.flush()


def _try(job: Job, items: dict[str, pytest.Item]) -> Answer:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()  # with whatever it starts
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            os.write(writing, json.dumps(_outcome(job, items)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        # It writes once, when all is done.
        ended, _, _ = select.select([told], [], [], job.seconds)
        answer = told.read(1 << 16) if ended else b""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if answer:
        return Answer(*json.loads(answer))
    # Why a process ended without an answer shows in one of its own.
    return Answer(not ended, None if ended else f"no end within {job.seconds:.0f} s")


def _outcome(job: Job, items: dict[str, pytest.Item]) -> Answer:
    if not _put_in(job):
        return Answer(False, None)
    failed: list[str] = []

    class Watch:
        @staticmethod
        def pytest_runtest_logreport(report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    chosen = [items[test] for test in job.tests]
    chosen[0].config.pluginmanager.register(Watch())
    for item, following in zip(chosen, [*chosen[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            return Answer(True, failed[0])
    return Answer(True, None)


def _put_in(job: Job) -> bool:
    """Exchange the code of the functions that differ, wherever they are; False where one is not
    there: it was made by another, or is run on import alone. A function that another one made
    before, as tables of a module hold them, is exchanged too."""
    module = job.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    importlib.import_module(module)
    healthy, faulty = (
        compile(text, job.path, "exec", dont_inherit=True) for text in (job.healthy, job.faulty)
    )
    # Beside the faulty one those behind it may differ, in their lines.
    changed = {
        old: new
        for old, new in zip(_functions(healthy), _functions(faulty), strict=True)
        if old != new
    }
    made: dict[CodeType, CodeType] = {}
    for outer, other in changed.items():
        inside, others = list(_inside(outer)), list(_inside(other))
        if len(inside) != len(others):
            return False  # Python leaves out what is behind `if True`, with the functions in it
        made |= {old: new for old, new in zip(inside, others, strict=True) if old != new}
    found = [
        (function, function.__code__)
        for function in gc.get_objects()
        if type(function) is FunctionType
        and function.__code__.co_filename.endswith(f"/{job.path}")
        and (function.__code__ in changed or function.__code__ in made)
    ]
    if not changed or {code for _, code in found if code in changed} != changed.keys():
        return False
    exchanged = made | changed
    if any(code.co_freevars != exchanged[code].co_freevars for _, code in found):
        return False
    for function, code in found:
        function.__code__ = exchanged[code]
    return True


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module and of its classes, in order; not those inside of functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & 0x2:  # CO_NEWLOCALS: a function, a lambda
                yield constant
            else:
                yield from _functions(constant)


def _inside(code: CodeType) -> Iterator[CodeType]:
    """The functions inside of a function, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inside(constant)
