"""The fleet scan on one core and on two: whole processes of `benchmarks.scan_cores`, in turn."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.processes import BenchmarkError, run
from benchmarks.results import Scan, spread

# In this order, so that a machine that grows slower meanwhile does so for both.
_CORES = (1, 2, 2, 1)


def measure_scans() -> list[Scan]:
    """One entry for each number of cores.

    Raises:
        BenchmarkError: the scan failed, or the number of cores changed what it found.
    """
    told: dict[int, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        stdout = Path(folder) / "stdout"
        for cores in _CORES:
            run([sys.executable, "-m", "benchmarks.scan_cores", str(cores)], stdout)
            told.setdefault(cores, []).append(json.loads(stdout.read_text().splitlines()[-1]))
    found = {(one["checkpoints"], one["positions"]) for runs in told.values() for one in runs}
    if len(found) != 1:
        raise BenchmarkError(f"the scans found different positions: {found}")
    return [
        {
            "cores": cores,
            "checkpoints": int(runs[0]["checkpoints"]),
            "positions": int(runs[0]["positions"]),
            "seconds": spread([one["seconds"] for one in runs]),
        }
        for cores, runs in sorted(told.items())
    ]
