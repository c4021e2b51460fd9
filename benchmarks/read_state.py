"""Reads a keyed state into Arrow, again and again: a checkpoint directory, the state's name,
`kernel` or `plain`, how often. Prints as JSON what the start took, and what each time did."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

import pyarrow as pa
import pyarrow.compute as pc

import migrate
from benchmarks.machine import peak_of_process
from migrate.state import arrow


def main() -> None:
    chk, name, way, times = sys.argv[1:]
    if way == "plain":  # as where the extra `fast` is not installed
        arrow._fast_reader = lambda *_: None
    began = time.process_time()
    if way == "kernel":
        import_module("migrate.state.kernel.kernel")  # compiles it, or takes it from the cache
    start = time.process_time() - began
    rounds = []
    for _ in range(int(times)):
        before, clock = time.process_time(), time.perf_counter()
        entries = total = 0
        for batch in migrate.read_state(chk, state=name):
            entries += batch.num_rows
            if pa.types.is_int64(batch.schema.field("value").type):
                total += pc.sum(batch.column("value")).as_py() or 0
        rounds.append(
            {
                "entries": entries,
                "total": total,
                "cpu_seconds": time.process_time() - before,
                "seconds": time.perf_counter() - clock,
            }
        )
    print(json.dumps({"start": start, "rounds": rounds, "peak_bytes": peak_of_process()}))


if __name__ == "__main__":
    main()
