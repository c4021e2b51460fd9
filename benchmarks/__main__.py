"""The command of `make bench`, which measures all parts and writes docs/performance.md.

python -m benchmarks           measure all parts, and write the page
python -m benchmarks PART ...  measure only these parts, and write the page: cases, scans, states,
                               state_on_spark, priming, rehearsed
python -m benchmarks page      write the page and its plot from the saved figures

Each part is saved as soon as it is measured, with its date and the commit that is checked out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from benchmarks import page
from benchmarks.checkpoints import A, B, C, D, create_missing
from benchmarks.growth import HANDLES, PARTITIONS, measure_growth
from benchmarks.machine import OtherProcesses, current_commit, describe_machine
from benchmarks.measuring import measure
from benchmarks.plots import plot_growth
from benchmarks.priming import measure_priming
from benchmarks.profiling import profile
from benchmarks.readers import BARE, BYTES, OURS, OURS_MANY, PROCESSOR
from benchmarks.rehearsing import measure_rehearsal
from benchmarks.results import load, save
from benchmarks.scans import measure_scans
from benchmarks.states import measure_on_spark, measure_states

# The dataset, its readers, and the number of rounds, by case. Cases with quick readers have more.
_CASES = {
    "a": (A, (OURS, BARE, PROCESSOR), 7),
    "b": (B, (OURS, BARE), 5),
    "c": (C, (OURS, BARE, PROCESSOR), 11),
    "d": (D, (OURS_MANY, BYTES, BARE), 3),
}


def main() -> None:
    names = sys.argv[1:] or list(_PARTS)
    if names != ["page"]:
        if unknown := set(names) - _PARTS.keys():
            sys.exit(f"no part of the benchmarks: {', '.join(sorted(unknown))}\n{__doc__}")
        for name in names:
            _print_step(name)
            commit, figures = current_commit(), _PARTS[name]()
            results: dict[str, Any] = {**load()}
            measurement = {"date": datetime.now(timezone.utc).date().isoformat(), "commit": commit}
            results["measured"][name] = measurement
            save({**results, **figures})
    saved = load()  # reloaded, because saving rounds the figures
    page.write(saved)
    plot_growth(saved)


def _measure_cases() -> dict[str, Any]:
    start, others = time.monotonic(), OtherProcesses()
    create_missing([A, B, C, D, *PARTITIONS.values(), *HANDLES.values()])
    cases = {}
    for name, (dataset, readers, rounds) in _CASES.items():
        _print_step(f"({name}): {', '.join(reader.name for reader in readers)}, {rounds} rounds")
        cases[name] = measure(dataset, readers, rounds)
    _print_step("growth with partitions and with files, and profiles")
    return {
        "cases": cases,
        "growth": {"partitions": measure_growth(PARTITIONS), "handles": measure_growth(HANDLES)},
        "profiles": {
            name: profile(dataset, readers[0]) for name, (dataset, readers, _) in _CASES.items()
        },
        "machine": describe_machine(others),
        "seconds": time.monotonic() - start,
    }


# The functions that measure the parts, in the order of their runs.
_PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "cases": _measure_cases,
    "scans": lambda: {"scans": measure_scans()},
    "states": lambda: {"states": measure_states()},
    "state_on_spark": lambda: {"state_on_spark": measure_on_spark()},
    "priming": lambda: {"priming": measure_priming()},
    "rehearsed": lambda: {"rehearsed": measure_rehearsal()},
}


def _print_step(step: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {step}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
