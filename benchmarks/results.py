"""The layout of docs/performance.json: everything that docs/performance.md tells.

Seconds and bytes throughout; a ratio is ours divided by theirs.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, cast

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS / "performance.json"


class Spread(TypedDict):
    """Of several runs."""

    min: float
    median: float
    max: float


class Figures(TypedDict):
    """Of one reader: whole processes, start-up included."""

    seconds: Spread
    cpu_seconds: Spread
    peak_bytes: Spread


class Share(TypedDict):
    """Of our time, what one module spends."""

    module: str
    share: float


class Case(TypedDict):
    """One checkpoint, or one folder of them, read by several readers in turn."""

    checkpoints: int
    partitions: int
    file_bytes: int
    rounds: int
    readers: dict[str, Figures]
    # Of each reader but ours, the ratios of the clock's seconds and the CPU's, round by round.
    ratios: dict[str, Spread]
    cpu_ratios: dict[str, Spread]


class Point(TypedDict):
    """One size of the same checkpoint."""

    count: int
    file_bytes: int
    readers: dict[str, Figures]


class Line(TypedDict):
    """The straight line nearest to a growth: what each one more costs, and what none does."""

    slope: float
    intercept: float


class Growth(TypedDict):
    """Larger and larger checkpoints; the lines by reader, of the least time and the most memory."""

    points: list[Point]
    seconds: dict[str, Line]
    peak_bytes: dict[str, Line]


class Scan(TypedDict):
    """``migrate scan`` of a generated estate, by the number of cores."""

    # "this machine", and with ", Parquet" where all that was read was written as tables; "reading
    # alone", by processes that share nothing; or "on Spark, Parquet".
    where: str
    cores: int
    checkpoints: int
    # Of the whole command; on Spark of the scan alone, and beside it of Spark's start, and of the
    # first scan there, of a few checkpoints.
    seconds: Spread
    start_seconds: Spread
    first_seconds: Spread
    # Of all its processes, and of those what is not shared among them; 0 on Spark, not counted.
    cpu_seconds: Spread
    alone_seconds: float
    # How many cores others used meanwhile.
    others_cores: float


class StateShape(TypedDict):
    """A keyed state, read by the kernel, the plain reader and perhaps the State Processor API."""

    name: str
    entries: int
    file_bytes: int
    # By reader: entries of a CPU's second, warm; the CPU's seconds before that.
    rates: dict[str, Spread]
    starts: dict[str, Spread]
    # How many times as fast the kernel is, round by round.
    times_as_fast: dict[str, Spread]


class LargeState(TypedDict):
    """One of gigabytes, read once by the kernel."""

    entries: int
    file_bytes: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int


class States(TypedDict):
    """Keyed state."""

    shapes: list[StateShape]
    # The CPU's seconds of the kernel's first start on a machine.
    compiled_seconds: Spread
    large: LargeState
    # How many cores others used meanwhile.
    others_cores: float


class Moved(TypedDict):
    """A keyed state that Spark has taken over."""

    keys: int
    # That its counts tell of.
    records: int
    seconds: float
    # Of Spark's JVM.
    peak_bytes: int


class Priming(TypedDict):
    """By ``prime``, and fewer keys by Spark's initial state."""

    primed: Moved
    initial: Moved
    # How many cores others used meanwhile.
    others_cores: float


class Rehearsed(TypedDict):
    """A query that was rehearsed."""

    keys: int
    # Between the two checkpoints.
    records: int
    seconds: float
    # Of Spark's JVM, and of the driver's Python.
    peak_bytes: int
    python_peak_bytes: int
    # How many cores others used meanwhile.
    others_cores: float


class Machine(TypedDict):
    """Where it was measured, and how much others used of it meanwhile."""

    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python: str
    jdk: str
    flink: str
    connector: str
    others_cores: float


class Measured(TypedDict):
    """When a part was measured, and the commit that was checked out."""

    date: str
    commit: str


class Results(TypedDict):
    """All of it; ``measured`` has the parts that `benchmarks.__main__` measures, by their names."""

    measured: dict[str, Measured]
    seconds: float
    machine: Machine
    cases: dict[str, Case]
    growth: dict[str, Growth]
    profiles: dict[str, list[Share]]
    scans: list[Scan]
    states: States
    # By the number of Spark's cores, the clock's seconds of reading the large state.
    state_on_spark: dict[str, Spread]
    priming: Priming
    rehearsed: Rehearsed


def find_scan(results: Results, where: str, cores: int) -> Scan:
    """That of the most checkpoints at ``where``, on so many cores."""
    scans = [scan for scan in results["scans"] if (scan["where"], scan["cores"]) == (where, cores)]
    return max(scans, key=lambda scan: scan["checkpoints"])


def times_as_fast(scan: Scan, one: Scan) -> float:
    """As one core, had it cores of its own: by the CPU's seconds, and what of them is not shared.

    Args:
        one: the same scan on one core.
    """
    used = scan["cpu_seconds"]["median"]
    alone = min(scan["alone_seconds"], used)  # all of a small one's, which starts no process
    return one["cpu_seconds"]["median"] / (alone + (used - alone) / scan["cores"])


def spread(values: Sequence[float]) -> Spread:
    """Least, middle and most of them."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def line(counts: Sequence[float], values: Sequence[float]) -> Line:
    """The line through points of very different sizes, by least squares of what each misses in
    proportion: otherwise the largest alone would tell where it starts."""
    weights = [1 / value**2 for value in values]
    whole = sum(weights)
    x = sum(w * c for w, c in zip(weights, counts, strict=True)) / whole
    y = sum(w * v for w, v in zip(weights, values, strict=True)) / whole
    above = sum(w * (c - x) * (v - y) for w, c, v in zip(weights, counts, values, strict=True))
    below = sum(w * (c - x) ** 2 for w, c in zip(weights, counts, strict=True))
    return {"slope": above / below, "intercept": y - above / below * x}


def load() -> Results:
    """What the last run left."""
    return cast(Results, json.loads(RESULTS.read_text(encoding="ascii")))


def save(results: Mapping[str, object]) -> None:
    text = json.dumps(_rounded(results), indent=1)
    RESULTS.write_text(text + "\n", encoding="ascii")


def _rounded(value: object) -> object:
    """Four digits of every float: more would only be noise."""
    match value:
        case float():
            return float(f"{value:.4g}")
        case dict():
            return {key: _rounded(item) for key, item in value.items()}
        case list():
            return [_rounded(item) for item in value]
    return value
