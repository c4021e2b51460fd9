"""`migrate scan` of small and large estates, on one core and on two: whole commands, in turn.

The estates are those that the tests scan (``tests.support.many_jobs``). On a shared machine the
clock tells more of the others than of the scan. So the CPU's seconds are counted too, and what of
them only one process can do: its start, and the search for checkpoints.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import Others
from benchmarks.processes import BenchmarkError, Run, run
from benchmarks.results import Scan, spread
from migrate.fleet.discovery import discover
from migrate.storage.files import Files
from tests.support.many_jobs import generate

# In this order, so that a machine that grows slower meanwhile does so for both.
_CORES = (1, 2, 2, 1)


class _Case(NamedTuple):
    """An estate of so many checkpoints; ``rounds``: how often ``_CORES`` are gone through."""

    checkpoints: int
    rounds: int
    parquet: bool = False


_CASES = (_Case(20, 3), _Case(3_000, 2), _Case(10_000, 1, parquet=True))
# What processes that share nothing read, and what is scanned on Spark; the first scan there of all.
_READ = 3_000
_ON_SPARK = (3_000, 10_000)
_FIRST_ON_SPARK = 20


def measure_scans() -> list[Scan]:
    """One entry for each case and number of cores, in their order.

    Raises:
        BenchmarkError: a scan failed, or the number of cores changed what it found.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        (work / "empty").mkdir()
        scans = [scan for case in _CASES for scan in _measured(case, work)]
        return [*scans, *_reading(_estate(work, _READ)), *_on_spark(work)]


def _estate(work: Path, checkpoints: int) -> Path:
    estate = work / str(checkpoints)
    if not estate.exists():
        generate(estate, checkpoints)
    return estate


def _measured(case: _Case, work: Path) -> Iterator[Scan]:
    estate = _estate(work, case.checkpoints)
    runs: dict[int, list[tuple[Run, float]]] = {}
    found = set()
    for cores in _CORES * case.rounds:
        others = Others()
        stdout = work / "stdout"
        done = run(_command(case, cores, estate, work / "out"), stdout)
        shutil.rmtree(work / "out", ignore_errors=True)
        found.add(stdout.read_text())
        runs.setdefault(cores, []).append((done, others.cores()))
    if len(found) != 1:
        raise BenchmarkError(f"{case}: the number of cores changed what was found")
    alone = _alone(estate, work)
    for cores, of_these in sorted(runs.items()):
        yield {
            "where": "this machine, Parquet" if case.parquet else "this machine",
            "cores": cores,
            "checkpoints": case.checkpoints,
            "seconds": spread([done.seconds for done, _ in of_these]),
            "cpu_seconds": spread([done.cpu_seconds for done, _ in of_these]),
            "start_seconds": spread([0.0]),
            "first_seconds": spread([0.0]),
            "alone_seconds": alone,
            "others_cores": max(others for _, others in of_these),
        }


def _reading(estate: Path) -> Iterator[Scan]:
    """The checkpoints read by one process, and half of them by each of two that share nothing."""
    runs: dict[int, list[tuple[float, float, float]]] = {}
    for processes in _CORES * 2:
        others = Others()
        parts = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.read_part",
                    str(estate),
                    str(part),
                    str(processes),
                ],
                stdout=subprocess.PIPE,
            )
            for part in range(processes)
        ]
        told = [json.loads(part.communicate()[0] or "{}") for part in parts]
        if sum(one.get("read", 0) for one in told) != _READ:
            raise BenchmarkError(f"{_READ} checkpoints in {processes} parts: not all were read")
        seconds = max(one["seconds"] for one in told)
        cpu = sum(one["cpu_seconds"] for one in told)
        runs.setdefault(processes, []).append((seconds, cpu, others.cores()))
    for processes, of_these in sorted(runs.items()):
        yield {
            "where": "reading alone",
            "cores": processes,
            "checkpoints": _READ,
            "seconds": spread([seconds for seconds, _, _ in of_these]),
            "cpu_seconds": spread([cpu for _, cpu, _ in of_these]),
            "start_seconds": spread([0.0]),
            "first_seconds": spread([0.0]),
            "alone_seconds": 0.0,
            "others_cores": max(others for _, _, others in of_these),
        }


def _on_spark(work: Path) -> Iterator[Scan]:
    estates = [str(_estate(work, checkpoints)) for checkpoints in _ON_SPARK]
    first = str(_estate(work, _FIRST_ON_SPARK))
    runs: dict[int, list[tuple[dict[str, Any], float]]] = {}
    for cores in _CORES:
        others = Others()
        out = work / "out"
        module = "benchmarks.scan_on_spark"
        command = [sys.executable, "-m", module, str(out), str(cores), first, *estates]
        run(command, work / "stdout")
        shutil.rmtree(out, ignore_errors=True)
        told = json.loads((work / "stdout").read_text().splitlines()[-1])
        runs.setdefault(cores, []).append((told, others.cores()))
    if len({str(told["found"]) for of_these in runs.values() for told, _ in of_these}) != 1:
        raise BenchmarkError("on Spark: the number of cores changed what was found")
    for number, checkpoints in enumerate(_ON_SPARK):
        for cores, of_these in sorted(runs.items()):
            yield {
                "where": "on Spark, Parquet",
                "cores": cores,
                "checkpoints": checkpoints,
                "seconds": spread([told["seconds"][number] for told, _ in of_these]),
                "cpu_seconds": spread([0.0]),
                "start_seconds": spread([told["start_seconds"] for told, _ in of_these]),
                "first_seconds": spread([told["first_seconds"] for told, _ in of_these]),
                "alone_seconds": 0.0,
                "others_cores": max(others for _, others in of_these),
            }


def _command(case: _Case, cores: int, estate: Path, out: Path) -> list[str]:
    mine = sorted(os.sched_getaffinity(0))[:cores]
    command = [str(shutil.which("taskset")), "-c", ",".join(map(str, mine))]
    command += [sys.executable, "-m", "migrate", "scan", str(estate)]
    return [*command, "--output", str(out)] if case.parquet else command


def _alone(estate: Path, work: Path) -> float:
    """Of the CPU's seconds, what is not shared: the start of a scan, and its search."""
    starts = [
        run([sys.executable, "-m", "migrate", "scan", str(work / "empty")], work / "stdout")
        for _ in _CORES
    ]
    searches = []
    for _ in _CORES:
        begun = time.process_time()
        discover([str(estate)], Files())
        searches.append(time.process_time() - begun)
    return min(one.cpu_seconds for one in starts) + min(searches)
