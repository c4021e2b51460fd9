"""`migrate scan` of small and large estates, on one core and on two: whole commands, in turn.

The estates are those that the tests scan (``tests.support.estate``). On a shared machine the clock
tells more of the others than of the scan. So the CPU's seconds are counted too, and what of them
only one process can do: its start, and the search for checkpoints.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import Others
from benchmarks.processes import BenchmarkError, Run, run
from benchmarks.results import Scan, spread
from migrate.fleet import discover
from migrate.storage.files import Files
from tests.support.estate import generate

# In this order, so that a machine that grows slower meanwhile does so for both.
_CORES = (1, 2, 2, 1)


class _Case(NamedTuple):
    """An estate of so many checkpoints; ``rounds``: how often ``_CORES`` are gone through."""

    checkpoints: int
    rounds: int
    parquet: bool = False
    spark: bool = False


_CASES = (
    _Case(20, 3),
    _Case(3_000, 2),
    _Case(10_000, 1, parquet=True),
    _Case(3_000, 1, parquet=True, spark=True),
)


def measure_scans() -> list[Scan]:
    """One entry for each case and number of cores, in their order.

    Raises:
        BenchmarkError: a scan failed, or the number of cores changed what it found.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        (work / "empty").mkdir()
        return [scan for case in _CASES for scan in _measured(case, work)]


def _measured(case: _Case, work: Path) -> Iterator[Scan]:
    estate = work / str(case.checkpoints)
    if not estate.exists():
        generate(estate, case.checkpoints)
    runs: dict[int, list[tuple[Run, float, float]]] = {}
    found = set()
    for cores in _CORES * case.rounds:
        others = Others()
        stdout = work / "stdout"
        done = run(_command(case, cores, estate, work / "out"), stdout)
        shutil.rmtree(work / "out", ignore_errors=True)
        start = 0.0
        if case.spark:  # the command has waited for Spark, and told what it took alone
            told = json.loads(stdout.read_text().splitlines()[-1])
            start = told.pop("start_seconds")
            done = Run(told.pop("seconds"), 0.0, done.peak_bytes)
            found.add(json.dumps(told))
        else:
            found.add(stdout.read_text())
        runs.setdefault(cores, []).append((done, start, others.cores()))
    if len(found) != 1:
        raise BenchmarkError(f"{case}: the number of cores changed what was found")
    alone = 0.0 if case.spark else _alone(estate, work)
    for cores, of_these in sorted(runs.items()):
        yield {
            "spark": case.spark,
            "parquet": case.parquet,
            "cores": cores,
            "checkpoints": case.checkpoints,
            "seconds": spread([done.seconds for done, _, _ in of_these]),
            "cpu_seconds": spread([done.cpu_seconds for done, _, _ in of_these]),
            "start_seconds": spread([start for _, start, _ in of_these]),
            "alone_seconds": alone,
            "others_cores": max(others for _, _, others in of_these),
        }


def _command(case: _Case, cores: int, estate: Path, out: Path) -> list[str]:
    if case.spark:
        module = "benchmarks.scan_on_spark"
        return [sys.executable, "-m", module, str(estate), str(out), str(cores)]
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
