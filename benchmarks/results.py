"""The layout of docs/performance.json: everything that docs/performance.md tells.

Seconds and bytes throughout; a ratio is ours divided by theirs.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
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


class Costs(TypedDict):
    """Of one small checkpoint among many: requests to a store by their method, and what the
    driver holds of it in bytes."""

    discovery_requests: dict[str, float]
    reading_requests: dict[str, float]
    candidate_bytes: float


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
    # By the number of Spark's cores, the clock's seconds of reading the large one.
    on_spark: dict[str, Spread]
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


class Results(TypedDict):
    """All of it, of one run of `make bench`."""

    measured: str
    seconds: float
    machine: Machine
    cases: dict[str, Case]
    growth: dict[str, Growth]
    profiles: dict[str, list[Share]]
    costs: Costs
    scans: list[Scan]
    # When the scans were, which may be measured without the rest.
    scans_measured: str
    states: States
    states_measured: str
    priming: Priming
    priming_measured: str


def largest_scans(results: Results) -> list[Scan]:
    """Those of the most checkpoints in processes of this machine, by their cores."""
    here = [scan for scan in results["scans"] if scan["where"].startswith("this machine")]
    most = max(scan["checkpoints"] for scan in here)
    return [scan for scan in here if scan["checkpoints"] == most]


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


def save(results: Results) -> None:
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
