"""The fleet scan on one core and on two: whole processes of `benchmarks.scan_cores`, in turn."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import Others
from benchmarks.processes import BenchmarkError, run
from benchmarks.results import Scan, spread

# In this order, so that a machine that grows slower meanwhile does so for both.
_CORES = (1, 2, 2, 1)


def measure_scans(where: Sequence[bool] = (False, True)) -> list[Scan]:
    """One entry for each number of cores: of this machine's processes, then of Spark's executors.

    Raises:
        BenchmarkError: the scan failed, or the number of cores changed what it found.
    """
    told: dict[tuple[bool, int], list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        stdout = Path(folder) / "stdout"
        for spark in where:
            for cores in _CORES:
                on = ["spark"] if spark else []
                others = Others()
                run([sys.executable, "-m", "benchmarks.scan_cores", str(cores), *on], stdout)
                one = json.loads(stdout.read_text().splitlines()[-1])
                one["others_cores"] = others.cores()
                told.setdefault((spark, cores), []).append(one)
    found = {(one["checkpoints"], one["positions"]) for runs in told.values() for one in runs}
    if len(found) != 1:
        raise BenchmarkError(f"the scans found different positions: {found}")
    ((checkpoints, positions),) = found
    return [
        {
            "spark": spark,
            "cores": cores,
            "checkpoints": checkpoints,
            "positions": positions,
            "seconds": spread([one["seconds"] for one in runs]),
            "start_seconds": spread([one["start_seconds"] for one in runs]),
            "others_cores": max(one["others_cores"] for one in runs),
        }
        for (spark, cores), runs in sorted(told.items())
    ]
