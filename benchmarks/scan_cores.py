"""How long a scan of ten thousand checkpoints takes on so many cores: a line of JSON.

    python -m benchmarks.scan_cores 2
    python -m benchmarks.scan_cores 2 spark

By processes of this machine, or on a Spark of one executor for each core, whose start is told
apart. The estate is the one that the tests scan (``tests.support.estate``): all positions of all of
its checkpoints are read, and written as Parquet.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from migrate import scan
from tests.support.estate import generate
from tests.support.jdk import find_jdk

CHECKPOINTS = 10_000


def measure(cores: int, *, spark: bool) -> dict[str, float | bool]:
    """The wall time of the scan alone, in seconds, and of the start of Spark."""
    if not spark:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    with tempfile.TemporaryDirectory(prefix="scan-cores-") as directory, ExitStack() as stack:
        estate = generate(Path(directory, "estate"), CHECKPOINTS)
        begun = time.perf_counter()
        if spark:
            from migrate.spark.running.session import session

            os.environ.update(JAVA_HOME=str(find_jdk()), SPARK_LOCAL_IP="127.0.0.1")
            stack.enter_context(session(f"local-cluster[{cores},1,1024]"))
        started = time.perf_counter()
        inventory = scan(estate.root, output=Path(directory, "out"))
        ended = time.perf_counter()
        assert inventory.checkpoints == CHECKPOINTS
        return {
            "cores": cores,
            "checkpoints": CHECKPOINTS,
            "positions": sum(len(one.positions) for one in estate.checkpoints.values()),
            "spark": spark,
            "seconds": round(ended - started, 2),
            "start_seconds": round(started - begun, 2),
        }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), spark="spark" in sys.argv[2:])))
