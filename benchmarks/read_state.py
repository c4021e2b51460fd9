"""Read a keyed state into Arrow several times, as a command.

python -m benchmarks.read_state CHECKPOINT STATE READER TIMES

READER is "kernel" or "plain". Prints the CPU time of the kernel's start, the figures of each read,
and the peak memory as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

import pyarrow as pa
import pyarrow.compute as pc

import migrate
from benchmarks.machine import peak_of_process
from migrate.extensions.keyed_state import arrow


def main() -> None:
    checkpoint, state, reader, times = sys.argv[1:]
    if reader == "plain":  # the reader without the extra `fast`
        arrow._fast_reader = lambda *_: None
    cpu_start = time.process_time()
    if reader == "kernel":
        import_module(
            "migrate.extensions.keyed_state.kernel.kernel"
        )  # compiles the kernel, or loads its cache
    start_seconds = time.process_time() - cpu_start
    rounds = []
    for _ in range(int(times)):
        cpu_start, start = time.process_time(), time.perf_counter()
        entries = total = 0
        for batch in migrate.read_state(checkpoint, state=state):
            entries += batch.num_rows
            if pa.types.is_int64(batch.schema.field("value").type):
                total += pc.sum(batch.column("value")).as_py() or 0
        rounds.append(
            {
                "entries": entries,
                "total": total,
                "cpu_seconds": time.process_time() - cpu_start,
                "seconds": time.perf_counter() - start,
            }
        )
    print(json.dumps({"start": start_seconds, "rounds": rounds, "peak_bytes": peak_of_process()}))


if __name__ == "__main__":
    main()
