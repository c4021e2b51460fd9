"""Keyed state moved to Spark: a million keys of ten million records primed and read back, and
beside it fewer keys by Spark's initial state; and what the page tells of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from benchmarks import words
from benchmarks.machine import Others
from benchmarks.processes import BenchmarkError, output_of
from benchmarks.results import Moved, Priming, Results
from benchmarks.state_files import Shape, encoded, make
from benchmarks.words import paragraph, table
from tests.support.encoder import keyed_values as of

_KEYS = 1_000_000
_INITIAL_KEYS = 50_000
# Of two quiet cores.
_AIM_SECONDS = 60

# Every key has counted one record or 19, ten on average.
COUNTED = Shape(
    "counted",
    "`ValueState<Long>`, canonical",
    encoded("canonical", "VALUE", of.LONG, _KEYS, lambda number: number % 2 * 18 + 1),
)


def measure_priming() -> Priming:
    """Both ways, each in a process of its own.

    Raises:
        BenchmarkError: one failed.
    """
    make(COUNTED)
    others = Others()
    return {
        "primed": _moved("prime", _KEYS),
        "initial": _moved("initial", _INITIAL_KEYS),
        "others_cores": others.cores(),
    }


def _moved(way: str, keys: int) -> Moved:
    script = [sys.executable, "-m", "benchmarks.prime_state"]
    moved: Moved = json.loads(output_of([*script, str(COUNTED.directory), way, str(keys)]))
    if moved["keys"] != keys:
        raise BenchmarkError(f"{way}: {moved['keys']} keys of {keys}")
    return moved


def moved_state(results: Results) -> Iterator[str]:
    """What docs/performance.md tells of it."""
    priming = results["priming"]
    primed, initial = priming["primed"], priming["initial"]
    yield from ("## Keyed state moved to Spark", "")
    yield from paragraph(
        "The time of `prime` includes the comparison of Spark's state with Flink's. Beside it, a "
        "processor (`transformWithStateInPandas`) takes fewer keys as its initial state, without a "
        "comparison. Both use RocksDB and two cores, with at most 1 GB of heap; Spark's start is "
        f"left out. Measured {words.measured(results, 'priming')}; other processes kept "
        f"{words.digits(priming['others_cores'])} cores busy."
    )
    yield ""
    yield from table(
        ("", "keys", "records counted", "time", "keys a second", "peak memory of the JVM"),
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
    reached = "reached" if primed["seconds"] <= _AIM_SECONDS else "not reached by this run"
    yield from paragraph(
        f"The aim is a million keys within {words.seconds(_AIM_SECONDS)} on two quiet cores: "
        f"{reached}."
    )
