"""How long a scan of ten thousand checkpoints takes on so many cores: a line of JSON.

    python -m benchmarks.scan_cores 2

The estate is the one that the tests scan (``tests.support.estate``): all positions of all of its
checkpoints are read, and written as Parquet.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from migrate import scan
from migrate.spark.session import session
from tests.support.estate import generate
from tests.support.jdk import find_jdk

CHECKPOINTS = 10_000


def measure(cores: int) -> dict[str, float]:
    """The wall time of the scan alone, in seconds, and with the start of Spark."""
    os.environ.update(JAVA_HOME=str(find_jdk()), SPARK_LOCAL_IP="127.0.0.1")
    with tempfile.TemporaryDirectory(prefix="scan-cores-") as directory:
        estate = generate(Path(directory, "estate"), CHECKPOINTS)
        begun = time.perf_counter()
        with session(f"local[{cores}]"):
            started = time.perf_counter()
            inventory = scan(estate.root, output=Path(directory, "out"))
            ended = time.perf_counter()
        assert inventory.checkpoints == CHECKPOINTS
        return {
            "cores": cores,
            "checkpoints": CHECKPOINTS,
            "positions": sum(len(one.positions) for one in estate.checkpoints.values()),
            "seconds": round(ended - started, 2),
            "seconds_with_start": round(ended - begun, 2),
        }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
