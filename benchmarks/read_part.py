"""Reads a part of an estate, and nothing else: what two processes that share nothing come to.

python -m benchmarks.read_part ESTATE 0 2   (the first of two parts)

Prints how many it read, the clock's seconds of that, and the CPU's.
"""

from __future__ import annotations

import json
import sys
import time

from migrate.fleet.candidates import read_candidate
from migrate.fleet.discovery import discover
from migrate.storage.files import Files


def main(estate: str, part: int, parts: int) -> None:
    files = Files()
    candidates = discover([estate], files)[part::parts]
    begun, used = time.perf_counter(), time.process_time()
    for candidate in candidates:
        read_candidate(candidate, files)
    seconds, used = time.perf_counter() - begun, time.process_time() - used
    print(json.dumps({"read": len(candidates), "seconds": seconds, "cpu_seconds": used}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
