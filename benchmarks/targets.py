"""Define the targets of the benchmarks, and compare the figures with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import words
from benchmarks.results import Results, find_scan

# The limit of peak memory is this multiple of the file's size, plus an amount for Python itself.
_MEMORY_FACTOR = 1.5
_MEMORY_OF_PYTHON = 60_000_000


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a case.

    Attributes:
        case: the case in docs/performance.json.
        at_most: the highest ratio of migrate's CPU time to the CPU time of Flink's bare reader; the
            median of the rounds counts.
        title: the name of the case on the page.
    """

    case: str
    at_most: float
    title: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A row in the page's table of targets."""

    title: str
    measured: str
    reached: bool


TARGETS = (
    Target("a", 0.45, "(a) 100,000 partitions"),
    Target("b", 0.11, "(b) a million handles"),
    Target("c", 0.22, "(c) a typical job"),
    Target("d", 1.0, "(d) 10,000 checkpoints in one process"),
)
# The highest ratio of a scan's CPU time to the time of one process that only reads checkpoints.
_SCAN_AT_MOST = 1.5


def verdicts(results: Results) -> Iterator[Verdict]:
    """Yield the verdicts on all targets, first for CPU time, then for memory."""
    for target in TARGETS:
        ratio = results["cases"][target.case]["cpu_ratios"]["bare"]
        title = f"{target.title}: {target.at_most} times the bare reader's CPU time"
        yield Verdict(title, words.ratio(ratio), ratio["median"] <= target.at_most)
    reading = find_scan(results, "reading alone", 1)
    for cores in (1, 2):
        scan = find_scan(results, "this machine", cores)
        cpu_ratio = scan["cpu_seconds"]["median"] / reading["cpu_seconds"]["median"]
        title = (
            f"scan of {scan['checkpoints']:,} on {cores} core{'s'[: cores > 1]}: {_SCAN_AT_MOST} "
            "times the CPU time of reading in one process"
        )
        yield Verdict(title, words.digits(cpu_ratio), cpu_ratio <= _SCAN_AT_MOST)
    for name in ("a", "b", "c"):
        case = results["cases"][name]
        peak = case["readers"]["ours"]["peak_bytes"]["max"]
        limit = memory_limit(case["file_bytes"])
        title = f"({name}) peak memory: 1.5 times the file size plus 60 MB ({words.size(limit)})"
        yield Verdict(title, words.size(peak), peak < limit)


def memory_limit(file_bytes: float) -> float:
    return _MEMORY_FACTOR * file_bytes + _MEMORY_OF_PYTHON
