"""What was to be reached, and whether it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import words
from benchmarks.results import Results

# Peak memory: this many times the file, and so much for Python itself.
MEMORY_OF_FILE = 1.5
MEMORY_BESIDE = 60_000_000


@dataclass(frozen=True, slots=True)
class Target:
    """At most this ratio of our time to another reader's, by the median of the rounds.

    Attributes:
        told: as the page tells it.
    """

    case: str
    reader: str
    at_most: float
    told: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One row of the page's first table."""

    told: str
    measured: str
    reached: bool


TARGETS = (
    Target("c", "bare", 1.0, "(c) no slower than Flink's bare reader"),
    Target("c", "processor", 0.1, "(c) ten times faster than the State Processor API"),
    Target("a", "bare", 0.25, "(a) a quarter of the bare reader's time"),
    Target("b", "bare", 1 / 3, "(b) a third of the bare reader's time"),
    Target("b", "bare", 0.25, "(b) aiming at a quarter"),
    Target("d", "bytes", 2.0, "(d) at most twice the time of reading the same bytes"),
)


def verdicts(results: Results) -> Iterator[Verdict]:
    """Of every target; those of memory after those of time."""
    for target in TARGETS:
        ratio = results["cases"][target.case]["ratios"][target.reader]
        reached = ratio["median"] <= target.at_most
        yield Verdict(target.told, f"{words.ratio(ratio)} of its time", reached)
    for name in ("a", "b", "c"):
        case = results["cases"][name]
        peak = case["readers"]["ours"]["peak_bytes"]["max"]
        bound = memory_bound(case["file_bytes"])
        told = f"({name}) peak memory below 1.5 times the file and 60 MB: {words.size(bound)}"
        yield Verdict(told, words.size(peak), peak < bound)


def memory_bound(file_bytes: float) -> float:
    return MEMORY_OF_FILE * file_bytes + MEMORY_BESIDE
