"""``python -m tests.mutants --number N --seed S``, or ``--only FILE[:LINE]``"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.reach import Reach, measure
from tests.mutants.trees import Run, Tree, Verdict, run_of

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".mutants.json"
# What the fast tests are to hold: not the rooms that only Kafka or Spark can judge, nor those of
# words: the command line and the tables.
_ROOMS = ("decoder", "migrate")
_NOT = tuple(f"migrate/{room}/" for room in ("kafka", "spark", "cli", "report", "fleet", "moves"))
# Where a fault shows on real systems alone, those that survive the fast tests are tried with these.
_REAL = {
    "migrate/targets/group/": (
        "tests/integration/test_commit_group.py",
        "tests/integration/test_commit_faults.py",
    ),
    "migrate/storage/files.py": ("tests/integration/test_storage.py",),
    "migrate/cutover/": ("tests/integration/test_cut_over.py",),
}
_WORKERS = 2
_INTEGRATION_SECONDS = 1800.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        epilog=f"What the tests run is kept in {KEPT.name}: remove it to measure anew.",
    )
    parser.add_argument("--number", type=int, default=150, help="how many faults are tried")
    parser.add_argument("--seed", type=int, default=1, help="of their choice")
    parser.add_argument(
        "--only",
        action="append",
        metavar="FILE[:LINE]",
        help="all faults of a file, or of a line, and no sample",
    )
    parser.add_argument(
        "--tests",
        action="append",
        metavar="PATH",
        help="these tests, instead of the fast ones that run the line: those with real systems",
    )
    parser.add_argument("--fast", action="store_true", help="try nothing with real systems")
    asked = parser.parse_args()

    chosen = list(_faults(asked.only))
    if asked.only is None:
        of = len(chosen)
        chosen = random.Random(asked.seed).sample(chosen, min(asked.number, of))
        print(f"{len(chosen)} of {of} faults, seed {asked.seed}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        survivors = list(_survivors(chosen, asked.tests, asked.fast, Path(folder)))
    killed = len(chosen) - len(survivors)
    print(
        f"killed {killed} of {len(chosen)} ({100 * killed / max(1, len(chosen)):.1f} %) in "
        f"{(time.monotonic() - begun) / 60:.0f} minutes"
    )
    for mutant in sorted(survivors, key=lambda one: (one.path, one.start)):
        print(f"\nsurvived: {mutant.path}:{mutant.line}\n{mutant.difference}")
    return 0


def _faults(only: list[str] | None) -> Iterator[Mutant]:
    for room in _ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            for mutant in mutants_of(path, file.read_text()):
                if only is None:
                    if not path.startswith(_NOT):
                        yield mutant
                elif path in only or f"{path}:{mutant.line}" in only:
                    yield mutant


def _survivors(
    chosen: list[Mutant], tests: list[str] | None, fast: bool, folder: Path
) -> Iterator[Mutant]:
    workers = _WORKERS if tests is None else 1
    trees = [Tree(ROOT, folder / str(n)) for n in range(workers)]
    reach = measure(trees, KEPT) if tests is None else Reach()
    os.nice(10)
    one_broker = Lock()
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def tried(mutant: Mutant) -> Verdict:
        tree = free.get()
        try:
            if tests is not None:
                return tree.try_out(mutant, Run(tuple(tests), _INTEGRATION_SECONDS))
            verdict = Verdict(None, 0.0)
            seen_by = reach.choose(mutant, on_import=not mutant.in_function)
            if seen_by:
                in_fork = tree.try_in_fork(mutant, seen_by) if mutant.in_function else None
                verdict = in_fork or tree.try_out(mutant, run_of(seen_by))
            # What a function does on import is done before a fork has the fault.
            if verdict.killed_by is None and mutant.in_function and reach.runs_on_import(mutant):
                verdict = tree.try_out(mutant, run_of(reach.choose(mutant, on_import=True)))
            # What runs in processes that tests start is not known, and no fork's fault is there.
            if verdict.killed_by is None and reach.starting:
                verdict = tree.try_out(mutant, run_of(sorted(reach.starting)))
            if verdict.killed_by is None and tests is None:
                verdict = tree.try_types(mutant)
            real = next((of for room, of in _REAL.items() if mutant.path.startswith(room)), None)
            if verdict.killed_by is None and real is not None and not fast:
                with one_broker:
                    return tree.try_out(mutant, Run(real, _INTEGRATION_SECONDS))
            return verdict
        finally:
            free.put(tree)

    with ThreadPoolExecutor(workers) as pool:
        for mutant, verdict in zip(chosen, pool.map(tried, chosen), strict=True):
            told = f"killed by {verdict.killed_by}"
            if verdict.killed_by is None:
                told = f"SURVIVED\n{mutant.difference}"
            print(f"{verdict.seconds:5.1f} s {mutant.path}:{mutant.line} {told}", flush=True)
            if verdict.killed_by is None:
                yield mutant


if __name__ == "__main__":
    sys.exit(main())
