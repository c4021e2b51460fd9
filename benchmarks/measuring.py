"""Readers in turn, round after round: what each took, and the ratios within each round."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.checkpoints import Made
from benchmarks.processes import BenchmarkError, Run, run
from benchmarks.readers import Answer, Reader
from benchmarks.results import Case, Figures, spread


def measure(made: Made, readers: Sequence[Reader], rounds: int) -> Case:
    """One case: the first of ``readers`` is ours.

    A round runs each reader once, every other round in the opposite order: a machine that grows
    slower or faster meanwhile does so for all. A first round is not counted; it warms the page
    cache, and shows that all read the same.

    Raises:
        BenchmarkError: a reader failed, or found something else than the others.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        stdout = Path(folder) / "stdout"
        answer = _agreed(made, readers, stdout)
        runs: dict[str, list[Run]] = {reader.name: [] for reader in readers}
        for number in range(rounds):
            for reader in readers if number % 2 == 0 else reversed(readers):
                runs[reader.name].append(run(reader.command(made), stdout))
    ours, *theirs = (reader.name for reader in readers)
    return {
        "checkpoints": made.jobs,
        "partitions": answer.partitions,
        "file_bytes": made.size(),
        "rounds": rounds,
        "readers": {name: _figures(own) for name, own in runs.items()},
        "ratios": {
            name: spread([a.seconds / b.seconds for a, b in _pairs(runs[ours], runs[name])])
            for name in theirs
        },
        "cpu_ratios": {
            name: spread([a.cpu_seconds / b.cpu_seconds for a, b in _pairs(runs[ours], runs[name])])
            for name in theirs
        },
    }


def _agreed(made: Made, readers: Sequence[Reader], stdout: Path) -> Answer:
    answers: dict[str, Answer] = {}
    for reader in readers:
        run(reader.command(made), stdout)
        if reader.answer:
            answers[reader.name] = reader.answer(stdout.read_text(encoding="utf-8"))
    if len(set(answers.values())) != 1:
        raise BenchmarkError(f"{made.name}: the readers found different positions: {answers}")
    return next(iter(answers.values()))


def _pairs(ours: list[Run], theirs: list[Run]) -> list[tuple[Run, Run]]:
    return list(zip(ours, theirs, strict=True))


def _figures(runs: list[Run]) -> Figures:
    return {
        "seconds": spread([one.seconds for one in runs]),
        "cpu_seconds": spread([one.cpu_seconds for one in runs]),
        "peak_bytes": spread([one.peak_bytes for one in runs]),
    }
