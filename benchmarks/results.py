"""Define the layout of docs/performance.json, with all figures of docs/performance.md.

Durations are in seconds, and sizes in bytes. A ratio is the figure of migrate's reader, divided by
the figure of a different reader in the same round. ``others_cores`` is the number of cores that
other processes kept busy during the measurement.
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
    """The minimum, median and maximum of several runs."""

    min: float
    median: float
    max: float


class Figures(TypedDict):
    """The figures of a reader, for whole processes with their start-up."""

    seconds: Spread
    cpu_seconds: Spread
    peak_bytes: Spread


class Share(TypedDict):
    """A module's share of migrate's time."""

    module: str
    share: float


class Case(TypedDict):
    """The figures of one dataset that several readers read in turn."""

    checkpoints: int
    partitions: int
    file_bytes: int
    rounds: int
    readers: dict[str, Figures]
    # The ratios of wall-clock time and of CPU time, by the name of the other reader.
    ratios: dict[str, Spread]
    cpu_ratios: dict[str, Spread]


class Point(TypedDict):
    """The figures of a checkpoint of one size."""

    count: int
    file_bytes: int
    readers: dict[str, Figures]


class Line(TypedDict):
    """A straight line that is fitted to the figures of several sizes."""

    slope: float
    intercept: float


class Growth(TypedDict):
    """Figures of checkpoints of increasing size; the lines are by reader."""

    points: list[Point]
    # The least time and the most memory of the runs with each size.
    seconds: dict[str, Line]
    peak_bytes: dict[str, Line]


class Scan(TypedDict):
    """The figures of a scan of generated checkpoints with a number of cores."""

    # What was measured: "this machine" is `migrate scan`. "this machine, Parquet" and "on Spark,
    # Parquet" also write tables. "reading alone" stands for processes that only read the
    # checkpoints.
    where: str
    cores: int
    checkpoints: int
    # The duration of the whole command. On Spark, the two durations below are not included.
    seconds: Spread
    # On Spark: the duration of the session's start, and of the first scan, with few checkpoints.
    start_seconds: Spread
    first_seconds: Spread
    # The CPU time of all processes, and the part of it that only one process can do. Both are 0 on
    # Spark, because they are not measured on it.
    cpu_seconds: Spread
    alone_seconds: float
    others_cores: float


class StateShape(TypedDict):
    """The figures of a keyed state, for the readers "kernel", "plain" and perhaps "processor"."""

    name: str
    entries: int
    file_bytes: int
    # By reader: the entries per second of CPU time once the reader is warm, and the CPU time until
    # then.
    rates: dict[str, Spread]
    starts: dict[str, Spread]
    # The kernel's rate, divided by the rate of the other reader, by the name of the other reader.
    times_as_fast: dict[str, Spread]


class LargeState(TypedDict):
    """The figures of a keyed state of gigabytes that the kernel reads once."""

    entries: int
    file_bytes: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int


class States(TypedDict):
    """The figures of reading keyed state."""

    shapes: list[StateShape]
    # The CPU time of the kernel's first start on a machine, including its compilation.
    compiled_seconds: Spread
    large: LargeState
    others_cores: float


class MovedState(TypedDict):
    """The figures of a keyed state that was moved to Spark."""

    keys: int
    # The sum of the state's counts.
    records: int
    seconds: float
    # The memory of Spark's JVM.
    peak_bytes: int


class Priming(TypedDict):
    """The figures of ``prime``, and of Spark's initial state with fewer keys."""

    primed: MovedState
    initial: MovedState
    others_cores: float


class Rehearsal(TypedDict):
    """The figures of a rehearsed query."""

    keys: int
    # The number of records between the two checkpoints.
    records: int
    seconds: float
    # The memory of Spark's JVM, and of the driver's Python.
    peak_bytes: int
    python_peak_bytes: int
    others_cores: float


class Machine(TypedDict):
    """The machine, and its use by other processes while the cases were measured."""

    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python: str
    jdk: str
    flink: str
    connector: str
    others_cores: float


class Measurement(TypedDict):
    """The date of a part's measurement, and the commit that was checked out."""

    date: str
    commit: str


class Results(TypedDict):
    """All figures."""

    # By the name of the part, in the form that `benchmarks.__main__` takes.
    measured: dict[str, Measurement]
    seconds: float
    machine: Machine
    cases: dict[str, Case]
    growth: dict[str, Growth]
    profiles: dict[str, list[Share]]
    scans: list[Scan]
    states: States
    # The wall-clock time of reading the large state, by the number of Spark's cores.
    state_on_spark: dict[str, Spread]
    priming: Priming
    rehearsed: Rehearsal


def find_scan(results: Results, where: str, cores: int) -> Scan:
    """Return the scan at ``where`` with this number of cores, and the most checkpoints."""
    scans = [scan for scan in results["scans"] if (scan["where"], scan["cores"]) == (where, cores)]
    return max(scans, key=lambda scan: scan["checkpoints"])


def cpu_speedup(scan: Scan, on_one_core: Scan) -> float:
    """Return the speedup of a scan over the same scan on one core, by CPU time.

    The result is for a machine without other processes. The CPU time is divided by the number of
    cores, except the part that only one process can do.
    """
    cpu = scan["cpu_seconds"]["median"]
    alone = min(scan["alone_seconds"], cpu)  # a small scan has only one process
    return on_one_core["cpu_seconds"]["median"] / (alone + (cpu - alone) / scan["cores"])


def spread(values: Sequence[float]) -> Spread:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def fit_line(counts: Sequence[float], values: Sequence[float]) -> Line:
    """Fit a line by least squares of the relative errors.

    With absolute errors, only the largest values would determine the intercept.
    """
    weights = [1 / value**2 for value in values]
    total = sum(weights)
    x = sum(w * c for w, c in zip(weights, counts, strict=True)) / total
    y = sum(w * v for w, v in zip(weights, values, strict=True)) / total
    covariance = sum(w * (c - x) * (v - y) for w, c, v in zip(weights, counts, values, strict=True))
    variance = sum(w * (c - x) ** 2 for w, c in zip(weights, counts, strict=True))
    return {"slope": covariance / variance, "intercept": y - covariance / variance * x}


def load() -> Results:
    """Read the saved figures."""
    return cast(Results, json.loads(RESULTS.read_text(encoding="ascii")))


def save(results: Mapping[str, object]) -> None:
    text = json.dumps(_rounded(results), indent=1)
    RESULTS.write_text(text + "\n", encoding="ascii")


def _rounded(value: object) -> object:
    """Return a JSON value with all floats rounded to four significant digits."""
    match value:
        case float():
            return float(f"{value:.4g}")
        case dict():
            return {key: _rounded(item) for key, item in value.items()}
        case list():
            return [_rounded(item) for item in value]
    return value
