"""Keyed state: entries of a CPU's second by the kernel, without it, and by Flink's State
Processor API, in turn; and a savepoint of gigabytes, also on a Spark of one core and of two."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks.checkpoints import java_classpath
from benchmarks.machine import Others
from benchmarks.processes import BenchmarkError, output_of
from benchmarks.results import LargeState, Spread, States, StateShape, spread
from benchmarks.state_files import LARGE, OPERATOR, SHAPES, Shape, make
from tests.support.jdk import find_jdk

_ROUNDS = 2
# Of each process: the first is cold and left out.
_TIMES = {"kernel": 12, "plain": 2, "processor": 3}
# In this order, so that a machine that grows slower meanwhile does so for both.
_CORES = (1, 2, 2, 1)


def measure_states() -> States:
    """All shapes, and the large one by the kernel alone.

    Raises:
        BenchmarkError: a reader failed, or found something else than the others.
    """
    others = Others()
    for shape in (*SHAPES, LARGE):
        make(shape)
    shapes = [_shape(shape) for shape in SHAPES]
    return {
        "shapes": shapes,
        "compiled_seconds": _compiled(),
        "large": _large(),
        "others_cores": others.cores(),
    }


def _shape(shape: Shape) -> StateShape:
    rates: dict[str, list[float]] = {}
    starts: dict[str, list[float]] = {}
    answers = set()
    for _ in range(_ROUNDS):
        for way in ("kernel", "plain", *(["processor"] if shape.processor else [])):
            start, rounds = _processor(shape) if way == "processor" else _ours(shape, way)
            # What disturbs a run makes it slower, never faster.
            rates.setdefault(way, []).append(max(one["rate"] for one in rounds))
            starts.setdefault(way, []).append(start)
            answers |= {(one["entries"], one["total"]) for one in rounds}
    if len(answers) != 1:
        raise BenchmarkError(f"{shape.name}: the readers found different states: {answers}")
    ((entries, _),) = answers
    return {
        "name": shape.title,
        "entries": int(entries),
        "file_bytes": shape.size(),
        "rates": {way: spread(some) for way, some in rates.items()},
        "starts": {way: spread(some) for way, some in starts.items()},
        "times_as_fast": {
            way: _ratios(rates["kernel"], some) for way, some in rates.items() if way != "kernel"
        },
    }


def _ratios(ours: list[float], theirs: list[float]) -> Spread:
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def _ours(shape: Shape, way: str) -> tuple[float, list[dict[str, float]]]:
    """The CPU's seconds of the kernel's start, and what each time but the first read."""
    read = _read_state(shape, way, _TIMES[way])
    return read["start"], [
        {
            "entries": one["entries"],
            "total": one["total"],
            "rate": one["entries"] / one["cpu_seconds"],
        }
        for one in read["rounds"][1:]
    ]


def _read_state(
    shape: Shape, way: str, times: int, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    script = [sys.executable, "-m", "benchmarks.read_state"]
    arguments = [str(shape.directory), shape.state, way, str(times)]
    figures: dict[str, Any] = json.loads(output_of([*script, *arguments], environment))
    return figures


def _processor(shape: Shape) -> tuple[float, list[dict[str, float]]]:
    """The same of the State Processor API: its start, and the first time, are one."""
    assert shape.processor is not None
    java = find_jdk() / "bin" / "java"
    classpath = os.pathsep.join(map(str, java_classpath()))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    # Its heap backend holds all of the state.
    command = [str(java), "-Xmx3g", quiet, "-cp", classpath, "bench.KeyedStateReader"]
    arguments = [str(shape.directory), OPERATOR, shape.state, shape.processor]
    output = output_of([*command, *arguments, str(_TIMES["processor"])])
    times = [tuple(map(float, line.split())) for line in output.splitlines()]
    return times[0][2], [
        {"entries": int(entries), "total": int(total), "rate": entries / seconds}
        for entries, total, seconds in times[1:]
    ]


def _compiled() -> Spread:
    """Measure the kernel's first start on a machine."""
    starts = []
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            environment = {"NUMBA_CACHE_DIR": folder}
            starts.append(_read_state(SHAPES[0], "kernel", 1, environment)["start"])
    return spread(starts)


def _large() -> LargeState:
    read = _read_state(LARGE, "kernel", 1)
    (once,) = read["rounds"]
    return {
        "entries": once["entries"],
        "file_bytes": LARGE.size(),
        "seconds": once["seconds"],
        "cpu_seconds": once["cpu_seconds"],
        "peak_bytes": read["peak_bytes"],
    }


def measure_on_spark() -> dict[str, Spread]:
    """Measure the clock's seconds of reading the large one, by the number of cores.

    Raises:
        BenchmarkError: a read failed, or the number of cores changed what it found.
    """
    for shape in (SHAPES[0], LARGE):
        make(shape)
    seconds_by_cores: dict[int, list[float]] = {}
    answers = set()
    for cores in _CORES:
        mine = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
        command = [str(shutil.which("taskset")), "-c", mine, sys.executable, "-m"]
        command += ["benchmarks.state_on_spark", str(LARGE.directory), LARGE.state]
        figures = json.loads(output_of([*command, str(SHAPES[0].directory), str(cores)]))
        seconds_by_cores.setdefault(cores, []).append(figures.pop("seconds"))
        answers.add(json.dumps(figures))
    if len(answers) != 1:
        raise BenchmarkError(f"the number of cores changed what was found: {answers}")
    return {str(cores): spread(seconds) for cores, seconds in seconds_by_cores.items()}
