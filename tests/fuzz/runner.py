"""Run targets one after the other, each in a separate process, and parse libFuzzer's log.

A finding is an input that raises an exception other than DecodeError, or that takes too much time
or memory. libFuzzer saves findings in ``crashes/``, in files whose names start with the name of the
target. The tests then replay these files.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.targets import Target

CRASHES = Path(__file__).parent / "crashes"

# The maximum wall-clock time for one input. Normally, an input of this size takes milliseconds, but
# the machine may be busy.
INPUT_SECONDS = 5
# The maximum memory of the process, including the interpreter, the libraries, and the corpus.
MEMORY_MB = 512

_ROOT = Path(__file__).parents[2]
_COVERAGE = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)/")
_STATISTIC = re.compile(r"stat::(\w+): +(\d+)")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: covered bytecode edges, features, and inputs in the corpus."""

    edges: int
    features: int
    corpus: int


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one target's run.

    Attributes:
        seconds, cpu_seconds: the wall-clock time and the CPU time of the whole process.
        seeded: the progress after the seeds; None if the run stopped earlier.
        end: the progress at the end; None if the run did not finish.
        findings: the names of the files that the run added to ``crashes/``.
        log: libFuzzer's complete output.
    """

    target: str
    seeds: int
    executions: int
    seconds: float
    cpu_seconds: float
    seeded: Progress | None
    end: Progress | None
    peak_mb: int
    findings: tuple[str, ...]
    log: str


def run(
    target: Target, seeds: Sequence[bytes], runs: int, seed: int, crashes: Path = CRASHES
) -> Result:
    """Fuzz one target; the number of ``runs`` includes the seeds, which are tried first."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        given, grown = Path(place, "seeds"), Path(place, "corpus")
        given.mkdir()
        grown.mkdir()
        for number, data in enumerate(seeds):
            (given / f"{number:05}").write_bytes(data)
        before = set(crashes.iterdir())
        started, started_cpu = time.monotonic(), _cpu_seconds()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.fuzz.child", target.name),
                *(str(grown), str(given)),
                *_options(target, runs, seed, crashes),
            ],
            cwd=_ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        seconds, cpu_seconds = time.monotonic() - started, _cpu_seconds() - started_cpu
    findings = sorted(path.name for path in set(crashes.iterdir()) - before)
    if done.returncode and not findings:
        raise RuntimeError(f"the fuzzer itself failed:\n{done.stdout[-4000:]}")
    statistics = {name: int(value) for name, value in _STATISTIC.findall(done.stdout)}
    return Result(
        target.name,
        len(seeds),
        statistics.get("number_of_executed_units", 0),
        seconds,
        cpu_seconds,
        _progress(done.stdout, "INITED"),
        _progress(done.stdout, "DONE"),
        statistics.get("peak_rss_mb", 0),
        tuple(findings),
        done.stdout,
    )


def _options(target: Target, runs: int, seed: int, crashes: Path) -> list[str]:
    """Return the options for libFuzzer."""
    return [
        f"-runs={runs}",
        f"-seed={seed}",
        f"-max_len={target.max_bytes}",
        f"-timeout={INPUT_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={crashes}/{target.name}-",
        "-print_final_stats=1",
    ]


def _cpu_seconds() -> float:
    """Return the CPU time of the child processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _progress(log: str, stage: str) -> Progress | None:
    lines = [line for line in log.splitlines() if line.startswith("#") and stage in line]
    match = _COVERAGE.search(lines[-1]) if lines else None
    return Progress(*map(int, match.groups())) if match else None


def as_markdown(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, with a row for the totals."""
    executions = sum(result.executions for result in results)
    cpu_seconds = sum(result.cpu_seconds for result in results)
    together = (
        "**all**",
        sum(result.seeds for result in results),
        f"{executions:,}",
        f"{sum(result.seconds for result in results):.0f}",
        f"{cpu_seconds:.0f}",
        f"{executions / cpu_seconds:,.0f}",
        *("", "", ""),
        max(result.peak_mb for result in results),
        sum(len(result.findings) for result in results),
    )
    lines = [" | ".join(map(str, row)) for row in (_COLUMNS, *map(_row, results), together)]
    lines.insert(1, " | ".join(["---", *["--:"] * (len(_COLUMNS) - 1)]))
    return "".join(f"| {line} |\n" for line in lines)


_COLUMNS = (
    *("target", "seeds", "executions", "seconds", "CPU seconds", "per CPU second"),
    *("edges", "features", "corpus", "peak MB", "findings"),
)


def _row(result: Result) -> tuple[object, ...]:
    def grown(what: str) -> str:
        if result.seeded is None or result.end is None:
            return "—"
        return f"{getattr(result.seeded, what)} → {getattr(result.end, what)}"

    return (
        result.target,
        result.seeds,
        f"{result.executions:,}",
        f"{result.seconds:.0f}",
        f"{result.cpu_seconds:.0f}",
        f"{result.executions / result.cpu_seconds:,.0f}",
        grown("edges"),
        grown("features"),
        grown("corpus"),
        result.peak_mb,
        len(result.findings),
    )
