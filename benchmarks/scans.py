"""Measure `migrate scan` with many checkpoints, on one core and on two, in turn.

``tests.support.many_jobs`` generates the checkpoints. On a shared machine, the wall-clock time
depends on other processes. The CPU time is therefore measured as well. The part of it that only one
process can do (the start, and the search for checkpoints) is measured separately.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import OtherProcesses
from benchmarks.processes import BenchmarkError, Run, pin_to, run
from benchmarks.results import Scan, spread
from migrate.extensions.fleet.discovery import discover
from migrate.storage.files import Files
from tests.support.many_jobs import generate

# The numbers of cores in the order of the runs, so that a slowdown affects both numbers equally.
_CORES = (1, 2, 2, 1)


class _Case(NamedTuple):
    """A number of checkpoints to scan, and how many times to run the sequence in ``_CORES``."""

    checkpoints: int
    rounds: int
    parquet: bool = False


_CASES = (_Case(20, 3), _Case(3_000, 2), _Case(10_000, 1, parquet=True))
# The numbers of checkpoints: for the processes that only read, for the scans on Spark, and for the
# first scan on Spark.
_ONLY_READ = 3_000
_ON_SPARK = (3_000, 10_000)
_FIRST_ON_SPARK = 20


def measure_scans() -> list[Scan]:
    """Return an entry for each case and number of cores, in their order.

    Raises:
        BenchmarkError: a scan failed, or different numbers of cores had different results.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        (work / "empty").mkdir()
        scans = [scan for case in _CASES for scan in _measure_case(case, work)]
        return [*scans, *_measure_reading(_checkpoints(work, _ONLY_READ)), *_measure_spark(work)]


def _checkpoints(work: Path, count: int) -> Path:
    """Return a folder with this number of checkpoints; generate it if it is missing."""
    folder = work / str(count)
    if not folder.exists():
        generate(folder, count)
    return folder


def _measure_case(case: _Case, work: Path) -> Iterator[Scan]:
    folder = _checkpoints(work, case.checkpoints)
    runs: dict[int, list[tuple[Run, float]]] = {}
    outputs = set()
    for cores in _CORES * case.rounds:
        others = OtherProcesses()
        stdout = work / "stdout"
        usage = run(_scan_command(case, cores, folder, work / "out"), stdout)
        shutil.rmtree(work / "out", ignore_errors=True)
        outputs.add(stdout.read_text())
        runs.setdefault(cores, []).append((usage, others.cores()))
    if len(outputs) != 1:
        raise BenchmarkError(f"{case}: the number of cores changed what was found")
    alone_seconds = _alone_seconds(folder, work)
    for cores, runs_on_cores in sorted(runs.items()):
        yield _entry(
            "this machine, Parquet" if case.parquet else "this machine",
            cores,
            case.checkpoints,
            [others_cores for _, others_cores in runs_on_cores],
            [usage.seconds for usage, _ in runs_on_cores],
            cpu_seconds=[usage.cpu_seconds for usage, _ in runs_on_cores],
            alone_seconds=alone_seconds,
        )


def _measure_reading(folder: Path) -> Iterator[Scan]:
    """Measure one process that reads all checkpoints, and two that read half of them each."""
    runs: dict[int, list[tuple[float, float, float]]] = {}
    for processes in _CORES * 2:
        others = OtherProcesses()
        command = [sys.executable, "-m", "benchmarks.read_part", str(folder)]
        parts = [
            subprocess.Popen([*command, str(part), str(processes)], stdout=subprocess.PIPE)
            for part in range(processes)
        ]
        figures = [json.loads(part.communicate()[0] or "{}") for part in parts]
        if sum(part.get("read", 0) for part in figures) != _ONLY_READ:
            raise BenchmarkError(
                f"{_ONLY_READ} checkpoints in {processes} parts: not all were read"
            )
        seconds = max(part["seconds"] for part in figures)
        cpu_seconds = sum(part["cpu_seconds"] for part in figures)
        runs.setdefault(processes, []).append((seconds, cpu_seconds, others.cores()))
    for processes, figures_of_runs in sorted(runs.items()):
        seconds_of_runs, cpu_of_runs, others_of_runs = zip(*figures_of_runs, strict=True)
        yield _entry(
            "reading alone",
            processes,
            _ONLY_READ,
            others_of_runs,
            seconds_of_runs,
            cpu_seconds=cpu_of_runs,
        )


def _measure_spark(work: Path) -> Iterator[Scan]:
    folders = [str(_checkpoints(work, count)) for count in _ON_SPARK]
    small = str(_checkpoints(work, _FIRST_ON_SPARK))
    runs: dict[int, list[tuple[dict[str, Any], float]]] = {}
    for cores in _CORES:
        others = OtherProcesses()
        out = work / "out"
        command = [sys.executable, "-m", "benchmarks.scan_on_spark", str(out), str(cores)]
        run([*command, small, *folders], work / "stdout")
        shutil.rmtree(out, ignore_errors=True)
        figures = json.loads((work / "stdout").read_text().splitlines()[-1])
        runs.setdefault(cores, []).append((figures, others.cores()))
    if len({str(figures["counts"]) for on_cores in runs.values() for figures, _ in on_cores}) != 1:
        raise BenchmarkError("on Spark: the number of cores changed what was found")
    for number, checkpoints in enumerate(_ON_SPARK):
        for cores, runs_on_cores in sorted(runs.items()):
            yield _entry(
                "on Spark, Parquet",
                cores,
                checkpoints,
                [others_cores for _, others_cores in runs_on_cores],
                [figures["seconds"][number] for figures, _ in runs_on_cores],
                start_seconds=[figures["start_seconds"] for figures, _ in runs_on_cores],
                first_seconds=[figures["first_seconds"] for figures, _ in runs_on_cores],
            )


def _entry(
    where: str,
    cores: int,
    checkpoints: int,
    others_cores: Sequence[float],
    seconds: Sequence[float],
    *,
    cpu_seconds: Sequence[float] = (0.0,),
    start_seconds: Sequence[float] = (0.0,),
    first_seconds: Sequence[float] = (0.0,),
    alone_seconds: float = 0.0,
) -> Scan:
    """Return the entry for docs/performance.json, with 0 for figures that were not measured."""
    return {
        "where": where,
        "cores": cores,
        "checkpoints": checkpoints,
        "seconds": spread(seconds),
        "cpu_seconds": spread(cpu_seconds),
        "start_seconds": spread(start_seconds),
        "first_seconds": spread(first_seconds),
        "alone_seconds": alone_seconds,
        "others_cores": max(others_cores),
    }


def _scan_command(case: _Case, cores: int, folder: Path, out: Path) -> list[str]:
    command = [*pin_to(cores), sys.executable, "-m", "migrate", "scan", str(folder)]
    return [*command, "--output", str(out)] if case.parquet else command


def _alone_seconds(folder: Path, work: Path) -> float:
    """Return the CPU time of the start and the search, which only one process can do."""
    starts = [
        run([sys.executable, "-m", "migrate", "scan", str(work / "empty")], work / "stdout")
        for _ in _CORES
    ]
    searches = []
    for _ in _CORES:
        cpu_start = time.process_time()
        discover([str(folder)], Files())
        searches.append(time.process_time() - cpu_start)
    return min(start.cpu_seconds for start in starts) + min(searches)
