"""Measure several readers of one dataset, in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.checkpoints import Dataset
from benchmarks.processes import BenchmarkError, Run, run
from benchmarks.readers import Answer, Reader
from benchmarks.results import Case, Figures, spread


def measure(dataset: Dataset, readers: Sequence[Reader], rounds: int) -> Case:
    """Measure readers of a dataset, and their ratios in each round.

    Each reader runs once in a round. Every other round has the opposite order, so that a change of
    the machine's speed affects all readers. A first round is not counted, because it warms the page
    cache. It also compares the results of the readers.

    Args:
        dataset: the checkpoints to read.
        readers: the reader of ``migrate`` first, then the readers to compare it with.
        rounds: the number of rounds that count.

    Raises:
        BenchmarkError: a reader failed, or the readers found different positions.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        stdout = Path(folder) / "stdout"
        answer = _common_answer(dataset, readers, stdout)
        runs: dict[str, list[Run]] = {reader.name: [] for reader in readers}
        for number in range(rounds):
            for reader in readers if number % 2 == 0 else reversed(readers):
                runs[reader.name].append(run(reader.command(dataset), stdout))
    ours = runs[readers[0].name]
    others = {reader.name: runs[reader.name] for reader in readers[1:]}
    return {
        "checkpoints": dataset.jobs,
        "partitions": answer.partitions,
        "file_bytes": dataset.size(),
        "rounds": rounds,
        "readers": {name: _figures(own) for name, own in runs.items()},
        "ratios": {
            name: spread([a.seconds / b.seconds for a, b in zip(ours, theirs, strict=True)])
            for name, theirs in others.items()
        },
        "cpu_ratios": {
            name: spread([a.cpu_seconds / b.cpu_seconds for a, b in zip(ours, theirs, strict=True)])
            for name, theirs in others.items()
        },
    }


def _common_answer(dataset: Dataset, readers: Sequence[Reader], stdout: Path) -> Answer:
    """Run each reader once, check that their answers are equal, and return the answer."""
    answers: dict[str, Answer] = {}
    for reader in readers:
        run(reader.command(dataset), stdout)
        if reader.answer:
            answers[reader.name] = reader.answer(stdout.read_text(encoding="utf-8"))
    if len(set(answers.values())) != 1:
        raise BenchmarkError(f"{dataset.name}: the readers found different positions: {answers}")
    return next(iter(answers.values()))


def _figures(runs: list[Run]) -> Figures:
    return {
        "seconds": spread([each.seconds for each in runs]),
        "cpu_seconds": spread([each.cpu_seconds for each in runs]),
        "peak_bytes": spread([each.peak_bytes for each in runs]),
    }
