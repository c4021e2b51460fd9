"""Scan folders of checkpoints on Spark, and print the durations as JSON, as a command.

python -m benchmarks.scan_on_spark OUTPUT CORES SMALL_FOLDER FOLDER…

The start of Spark counts separately, as does the scan of the small folder, because it starts Python
on the executors. The first of the remaining folders is scanned twice. Its first scan is not
counted, because the JVM still compiles its code during this scan.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from migrate import scan
from migrate.spark.session import session
from tests.support.jdk import find_jdk


def measure(output: Path, cores: int, small: str, folders: list[str]) -> dict[str, object]:
    """Measure Spark's start and the scans, in seconds of wall-clock time; count the checkpoints."""
    os.environ.update(JAVA_HOME=str(find_jdk()), SPARK_LOCAL_IP="127.0.0.1")
    start = time.perf_counter()
    with session(f"local[{cores}]"):
        start_seconds = time.perf_counter() - start
        scan_seconds = []
        counts = []
        for number, folder in enumerate((small, folders[0], *folders)):
            start = time.perf_counter()
            inventory = scan(folder, output=output / str(number))
            scan_seconds.append(time.perf_counter() - start)
            counts.append((inventory.checkpoints, inventory.unreadable))
    first_seconds, _, *seconds = scan_seconds
    return {
        "start_seconds": start_seconds,
        "first_seconds": first_seconds,
        "seconds": seconds,
        "counts": counts,
    }


if __name__ == "__main__":
    out, cores, small, *large = sys.argv[1:]
    print(json.dumps(measure(Path(out), int(cores), small, large)))
