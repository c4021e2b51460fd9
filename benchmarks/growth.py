"""The same checkpoint larger and larger: how time and memory grow with what is in it."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.checkpoints import A, B, Made, handles, source
from benchmarks.measuring import measure
from benchmarks.readers import BARE, OURS
from benchmarks.results import Growth, Point, line

_ROUNDS = 3

PARTITIONS: Mapping[int, Made] = {
    1_000: source("partitions-1000", 1_000, 10),
    10_000: source("partitions-10000", 10_000, 100),
    30_000: source("partitions-30000", 30_000, 300),
    100_000: A,
    300_000: source("partitions-300000", 300_000, 3_000),
}
# By the number of files of keyed state.
HANDLES: Mapping[int, Made] = {
    10_240: handles("handles-1x256", 1, 256),
    102_400: handles("handles-10x256", 10, 256),
    307_200: handles("handles-15x512", 15, 512),
    1_024_000: B,
}


def measure_growth(sizes: Mapping[int, Made]) -> Growth:
    """Ours and the bare reader at each size."""
    points: list[Point] = []
    for count, made in sizes.items():
        case = measure(made, (OURS, BARE), _ROUNDS)
        points.append(
            {"count": count, "file_bytes": case["file_bytes"], "readers": case["readers"]}
        )
    counts = [point["count"] for point in points]
    names = (OURS.name, BARE.name)
    return {
        "points": points,
        # The quickest runs: what stands in the way of the others is not of the checkpoint's size.
        "seconds": {
            name: line(counts, [point["readers"][name]["seconds"]["min"] for point in points])
            for name in names
        },
        "peak_bytes": {
            name: line(counts, [point["readers"][name]["peak_bytes"]["max"] for point in points])
            for name in names
        },
    }
