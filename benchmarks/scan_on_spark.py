"""Scans an estate on a Spark of so many cores, whose start is told apart: a line of JSON.

python -m benchmarks.scan_on_spark ESTATE OUTPUT 2
"""

from __future__ import annotations

import json
import os
import sys
import time

from migrate import scan
from migrate.spark.running.session import session
from tests.support.jdk import find_jdk


def measure(estate: str, output: str, cores: int) -> dict[str, float]:
    """The wall time of Spark's start and of the scan, in seconds, and what the scan found."""
    os.environ.update(JAVA_HOME=str(find_jdk()), SPARK_LOCAL_IP="127.0.0.1")
    begun = time.perf_counter()
    with session(f"local[{cores}]"):
        started = time.perf_counter()
        inventory = scan(estate, output=output)
        ended = time.perf_counter()
    return {
        "checkpoints": inventory.checkpoints,
        "unreadable": inventory.unreadable,
        "seconds": ended - started,
        "start_seconds": started - begun,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
