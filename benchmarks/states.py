"""Measure keyed state, read by the kernel, the plain reader, and the State Processor API.

The kernel also reads a savepoint of gigabytes, and Spark reads it with one core and with two.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks.checkpoints import java_classpath
from benchmarks.machine import OtherProcesses
from benchmarks.processes import BenchmarkError, output_of, pin_to
from benchmarks.results import LargeState, Spread, States, StateShape, spread
from benchmarks.state_files import LARGE, OPERATOR, SHAPES, Shape, create_missing
from tests.support.jdk import find_jdk

_ROUNDS = 2
# The number of reads in a process; the first one is cold and does not count.
_READS = {"kernel": 12, "plain": 2, "processor": 3}
# The numbers of cores in the order of the runs, so that a slowdown affects both numbers equally.
_CORES = (1, 2, 2, 1)


def measure_states() -> States:
    """Measure all readers with each shape, and the kernel with the large state.

    Raises:
        BenchmarkError: a reader failed, or the readers found different states.
    """
    others = OtherProcesses()
    for shape in (*SHAPES, LARGE):
        create_missing(shape)
    shapes = [_measure_shape(shape) for shape in SHAPES]
    return {
        "shapes": shapes,
        "compiled_seconds": _measure_compilation(),
        "large": _measure_large(),
        "others_cores": others.cores(),
    }


def _measure_shape(shape: Shape) -> StateShape:
    rates: dict[str, list[float]] = {}
    starts: dict[str, list[float]] = {}
    answers = set()
    for _ in range(_ROUNDS):
        for name in ("kernel", "plain", *(["processor"] if shape.processor else [])):
            start, reads = _run_processor(shape) if name == "processor" else _run_ours(shape, name)
            # The highest rate, because other processes only make a read slower.
            rates.setdefault(name, []).append(max(read["rate"] for read in reads))
            starts.setdefault(name, []).append(start)
            answers |= {(read["entries"], read["total"]) for read in reads}
    if len(answers) != 1:
        raise BenchmarkError(f"{shape.name}: the readers found different states: {answers}")
    ((entries, _),) = answers
    return {
        "name": shape.title,
        "entries": int(entries),
        "file_bytes": shape.size(),
        "rates": {name: spread(values) for name, values in rates.items()},
        "starts": {name: spread(values) for name, values in starts.items()},
        "times_as_fast": {
            name: spread([a / b for a, b in zip(rates["kernel"], values, strict=True)])
            for name, values in rates.items()
            if name != "kernel"
        },
    }


def _run_ours(shape: Shape, reader: str) -> tuple[float, list[dict[str, float]]]:
    """Return the CPU time of the reader's start, and the figures of each read except the first."""
    figures = _read_state(shape, reader, _READS[reader])
    return figures["start"], [
        {
            "entries": read["entries"],
            "total": read["total"],
            "rate": read["entries"] / read["cpu_seconds"],
        }
        for read in figures["rounds"][1:]
    ]


def _read_state(
    shape: Shape, reader: str, times: int, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    script = [sys.executable, "-m", "benchmarks.read_state"]
    arguments = [str(shape.directory), shape.state, reader, str(times)]
    figures: dict[str, Any] = json.loads(output_of([*script, *arguments], environment))
    return figures


def _run_processor(shape: Shape) -> tuple[float, list[dict[str, float]]]:
    """Return the same figures for the State Processor API; its start includes the first read."""
    assert shape.processor is not None
    java = find_jdk() / "bin" / "java"
    classpath = os.pathsep.join(map(str, java_classpath()))
    no_log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    # Its heap backend has the whole state in memory.
    command = [str(java), "-Xmx3g", no_log, "-cp", classpath, "bench.KeyedStateReader"]
    arguments = [str(shape.directory), OPERATOR, shape.state, shape.processor]
    output = output_of([*command, *arguments, str(_READS["processor"])])
    reads = [tuple(map(float, line.split())) for line in output.splitlines()]
    return reads[0][2], [
        {"entries": int(entries), "total": int(total), "rate": entries / seconds}
        for entries, total, seconds in reads[1:]
    ]


def _measure_compilation() -> Spread:
    """Measure the kernel's start without a cache, like the first start on a machine."""
    starts = []
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            environment = {"NUMBA_CACHE_DIR": folder}
            starts.append(_read_state(SHAPES[0], "kernel", 1, environment)["start"])
    return spread(starts)


def _measure_large() -> LargeState:
    figures = _read_state(LARGE, "kernel", 1)
    (read,) = figures["rounds"]
    return {
        "entries": read["entries"],
        "file_bytes": LARGE.size(),
        "seconds": read["seconds"],
        "cpu_seconds": read["cpu_seconds"],
        "peak_bytes": figures["peak_bytes"],
    }


def measure_on_spark() -> dict[str, Spread]:
    """Measure the wall-clock time of reading the large state, by the number of cores.

    Raises:
        BenchmarkError: a read failed, or different numbers of cores found different states.
    """
    for shape in (SHAPES[0], LARGE):
        create_missing(shape)
    seconds_by_cores: dict[int, list[float]] = {}
    answers = set()
    for cores in _CORES:
        command = [*pin_to(cores), sys.executable, "-m", "benchmarks.state_on_spark"]
        command += [str(LARGE.directory), LARGE.state]
        figures = json.loads(output_of([*command, str(SHAPES[0].directory), str(cores)]))
        seconds_by_cores.setdefault(cores, []).append(figures.pop("seconds"))
        answers.add(json.dumps(figures))
    if len(answers) != 1:
        raise BenchmarkError(f"the number of cores changed what was found: {answers}")
    return {str(cores): spread(seconds) for cores, seconds in seconds_by_cores.items()}
