"""Read a part of a folder's checkpoints, independently of other processes, as a command.

python -m benchmarks.read_part FOLDER 0 2   (the first of two parts)

Prints the number of checkpoints, the wall-clock time, and the CPU time as JSON.
"""

from __future__ import annotations

import json
import sys
import time

from migrate.extensions.fleet.candidates import read_candidate
from migrate.extensions.fleet.discovery import discover
from migrate.storage.files import Files


def main(folder: str, part: int, parts: int) -> None:
    files = Files()
    candidates = discover([folder], files)[part::parts]
    start, cpu_start = time.perf_counter(), time.process_time()
    for candidate in candidates:
        read_candidate(candidate, files)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    print(json.dumps({"read": len(candidates), "seconds": seconds, "cpu_seconds": cpu_seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
