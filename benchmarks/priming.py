"""Measure keyed state moved to Spark, and write its section of docs/performance.md.

`prime` moves a million keys with counts of ten million records in total, and compares Spark's state
with Flink's. For comparison, Spark's initial state takes fewer keys.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from benchmarks import words
from benchmarks.machine import OtherProcesses
from benchmarks.processes import BenchmarkError, output_of
from benchmarks.results import MovedState, Priming, Results
from benchmarks.state_files import Shape, create_missing, encoded_state
from benchmarks.words import paragraph, table
from tests.support.encoder import keyed_values as of

_KEYS = 1_000_000
_INITIAL_KEYS = 50_000
# The target for two cores without other processes.
_TARGET_SECONDS = 60

# Each key has counted 1 or 19 records, 10 on average.
COUNTED = Shape(
    "counted",
    "`ValueState<Long>`, canonical",
    encoded_state("canonical", "VALUE", of.LONG, _KEYS, lambda number: number % 2 * 18 + 1),
)


def measure_priming() -> Priming:
    """Measure ``prime`` and the initial state, each in a separate process.

    Raises:
        BenchmarkError: a process failed, or did not move all keys.
    """
    create_missing(COUNTED)
    others = OtherProcesses()
    return {
        "primed": _move("prime", _KEYS),
        "initial": _move("initial", _INITIAL_KEYS),
        "others_cores": others.cores(),
    }


def _move(method: str, keys: int) -> MovedState:
    command = [sys.executable, "-m", "benchmarks.prime_state", str(COUNTED.directory)]
    moved: MovedState = json.loads(output_of([*command, method, str(keys)]))
    if moved["keys"] != keys:
        raise BenchmarkError(f"{method}: {moved['keys']} keys of {keys}")
    return moved


def moved_state_section(results: Results) -> Iterator[str]:
    """Yield the lines of the section."""
    priming = results["priming"]
    primed, initial = priming["primed"], priming["initial"]
    yield from ("## Keyed state moved to Spark", "")
    yield from paragraph(
        "The time of `prime` includes the comparison of the Spark state with the Flink state. The "
        "second row shows a processor (`transformWithStateInPandas`) that loads fewer keys as its "
        "initial state. Its state was not compared. Both methods use RocksDB and two cores, with a "
        "heap of at most 1 GB. The times exclude the start of Spark. The results were measured on "
        f"{words.measured(results, 'priming')}. Other processes used "
        f"{words.digits(priming['others_cores'])} cores."
    )
    yield ""
    yield from table(
        ("Method", "Keys", "Counted records", "Time", "Keys per second", "Peak memory of the JVM"),
        (
            (
                name,
                f"{moved['keys']:,}",
                f"{moved['records']:,}",
                words.seconds(moved["seconds"]),
                words.digits(moved["keys"] / moved["seconds"]),
                words.size(moved["peak_bytes"]),
            )
            for name, moved in (("`prime`", primed), ("initial state", initial))
        ),
    )
    yield ""
    reached = "reached" if primed["seconds"] <= _TARGET_SECONDS else "missed"
    yield from paragraph(
        f"The target is a million keys within {words.seconds(_TARGET_SECONDS)} on two idle cores. "
        f"This run {reached} the target."
    )
