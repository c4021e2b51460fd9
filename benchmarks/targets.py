"""What was to be reached, and whether it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import words
from benchmarks.results import Results, find_scan

# Peak memory: this many times the file, and so much for Python itself.
MEMORY_OF_FILE = 1.5
MEMORY_BESIDE = 60_000_000


@dataclass(frozen=True, slots=True)
class Target:
    """At most this ratio of our CPU to that of Flink's bare reader, by the median of the rounds.

    Attributes:
        title: the name of the case on the page.
    """

    case: str
    at_most: float
    title: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One row of the page's first table."""

    title: str
    measured: str
    reached: bool


TARGETS = (
    Target("a", 0.45, "(a) 100,000 partitions"),
    Target("b", 0.11, "(b) a million handles"),
    Target("c", 0.22, "(c) an everyday job"),
    Target("d", 1.0, "(d) 10,000 checkpoints in one process"),
)
# Of what reading the checkpoints of a scan costs one process.
SCAN_AT_MOST = 1.5


def verdicts(results: Results) -> Iterator[Verdict]:
    """Of every target; those of memory after those of time."""
    for target in TARGETS:
        ratio = results["cases"][target.case]["cpu_ratios"]["bare"]
        title = f"{target.title}: {target.at_most} times the bare reader's CPU"
        yield Verdict(title, words.ratio(ratio), ratio["median"] <= target.at_most)
    reading = find_scan(results, "reading alone", 1)
    for cores in (1, 2):
        scan = find_scan(results, "this machine", cores)
        used = scan["cpu_seconds"]["median"] / reading["cpu_seconds"]["median"]
        title = (
            f"a scan of {scan['checkpoints']:,} on {cores} core{'s'[: cores > 1]}: {SCAN_AT_MOST} "
            "times the CPU that reads them in one process"
        )
        yield Verdict(title, words.digits(used), used <= SCAN_AT_MOST)
    for name in ("a", "b", "c"):
        case = results["cases"][name]
        peak = case["readers"]["ours"]["peak_bytes"]["max"]
        bound = memory_bound(case["file_bytes"])
        title = f"({name}) peak memory below 1.5 times the file and 60 MB: {words.size(bound)}"
        yield Verdict(title, words.size(peak), peak < bound)


def memory_bound(file_bytes: float) -> float:
    return MEMORY_OF_FILE * file_bytes + MEMORY_BESIDE
