"""Scans estates on one Spark of so many cores, whose start is told apart: a line of JSON.

python -m benchmarks.scan_on_spark OUTPUT 2 FIRST ESTATE…

The first scan of all, of a few checkpoints, starts Python on the executors: it is told apart too.
The first estate is scanned once more before what counts, while the JVM compiles what it runs.
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


def measure(output: Path, cores: int, first: str, estates: list[str]) -> dict[str, object]:
    """Clock seconds of Spark's start, of its first scan, and of each estate's; what was found."""
    os.environ.update(JAVA_HOME=str(find_jdk()), SPARK_LOCAL_IP="127.0.0.1")
    begun = time.perf_counter()
    with session(f"local[{cores}]"):
        start = time.perf_counter() - begun
        seconds = []
        found = []
        for number, estate in enumerate((first, estates[0], *estates)):
            begun = time.perf_counter()
            inventory = scan(estate, output=output / str(number))
            seconds.append(time.perf_counter() - begun)
            found.append((inventory.checkpoints, inventory.unreadable))
    first_seconds, _, *of_estates = seconds
    return {
        "start_seconds": start,
        "first_seconds": first_seconds,
        "seconds": of_estates,
        "found": found,
    }


if __name__ == "__main__":
    out, cores, small, *large = sys.argv[1:]
    print(json.dumps(measure(Path(out), int(cores), small, large)))
