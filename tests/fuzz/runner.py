"""Runs targets one after the other, each in a process of its own, and tells libFuzzer's log.

A finding (an exception that is not DecodeError, an input that takes too long or too much memory)
is left in ``crashes/`` under its target's name, where the tests replay it from then on.
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

# The longest any one input may take, by the clock: a healthy one of this size takes milliseconds,
# but the machine may have others to serve.
INPUT_SECONDS = 5
# The most memory the process may hold, interpreter, libraries and corpus included.
MEMORY_MB = 512

_ROOT = Path(__file__).parents[2]
_COVERAGE = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)/")
_STATISTIC = re.compile(r"stat::(\w+): +(\d+)")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run had come: edges of the bytecode seen, features, inputs worth keeping."""

    edges: int
    features: int
    corpus: int


@dataclass(frozen=True, slots=True)
class Result:
    """One target's run. ``seconds`` and ``cpu_seconds`` count its process from start to end.

    ``seeded`` is where its seeds alone had brought it. Both are None where it stopped before.
    ``findings`` names the files of ``crashes/`` that it left; ``log`` is all that libFuzzer said.
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
    """Fuzz one target; ``runs`` counts the seeds, which are tried first."""
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
    """What libFuzzer is told."""
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
    """What the processes that have ended took of the processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _progress(log: str, stage: str) -> Progress | None:
    lines = [line for line in log.splitlines() if line.startswith("#") and stage in line]
    match = _COVERAGE.search(lines[-1]) if lines else None
    return Progress(*map(int, match.groups())) if match else None


def as_markdown(results: Sequence[Result]) -> str:
    """The results as a table, with a line for all of them together."""
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
