"""Measure time and memory as functions of a checkpoint's size."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.checkpoints import A, B, Dataset, handles, source
from benchmarks.measuring import measure
from benchmarks.readers import BARE, OURS
from benchmarks.results import Growth, Point, fit_line

_ROUNDS = 3

PARTITIONS: Mapping[int, Dataset] = {
    1_000: source("partitions-1000", 1_000, 10),
    10_000: source("partitions-10000", 10_000, 100),
    30_000: source("partitions-30000", 30_000, 300),
    100_000: A,
    300_000: source("partitions-300000", 300_000, 3_000),
}
# The datasets by the number of files of keyed state.
HANDLES: Mapping[int, Dataset] = {
    10_240: handles("handles-1x256", 1, 256),
    102_400: handles("handles-10x256", 10, 256),
    307_200: handles("handles-15x512", 15, 512),
    1_024_000: B,
}


def measure_growth(datasets: Mapping[int, Dataset]) -> Growth:
    """Measure migrate's reader and the bare reader with each dataset."""
    points: list[Point] = []
    for count, dataset in datasets.items():
        case = measure(dataset, (OURS, BARE), _ROUNDS)
        points.append(
            {"count": count, "file_bytes": case["file_bytes"], "readers": case["readers"]}
        )
    counts = [point["count"] for point in points]
    figures = [point["readers"] for point in points]
    names = (OURS.name, BARE.name)
    return {
        "points": points,
        # The minimum, because other processes only make a run slower.
        "seconds": {
            name: fit_line(counts, [by_reader[name]["seconds"]["min"] for by_reader in figures])
            for name in names
        },
        "peak_bytes": {
            name: fit_line(counts, [by_reader[name]["peak_bytes"]["max"] for by_reader in figures])
            for name in names
        },
    }
