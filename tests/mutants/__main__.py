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

from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.reach import Reach, measure
from tests.mutants.trees import Run, Tree, Verdict, run_of

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".mutants.json"
# What the fast tests are to hold: not the rooms that only Kafka or Spark can judge, nor those of
# words: the command line and the tables.
_ROOMS = ("decoder", "migrate")
_NOT = tuple(
    f"migrate/{room}/" for room in ("broker", "spark/running", "cli", "report", "fleet", "commands")
)
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
    asked = parser.parse_args()

    chosen = list(_faults(asked.only))
    if asked.only is None:
        of = len(chosen)
        chosen = random.Random(asked.seed).sample(chosen, min(asked.number, of))
        print(f"{len(chosen)} of {of} faults, seed {asked.seed}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        survivors = list(_survivors(chosen, asked.tests, Path(folder)))
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


def _survivors(chosen: list[Mutant], tests: list[str] | None, folder: Path) -> Iterator[Mutant]:
    workers = _WORKERS if tests is None else 1
    trees = [Tree(ROOT, folder / str(n)) for n in range(workers)]
    reach = measure(trees, KEPT) if tests is None else Reach()
    os.nice(10)
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def tried(mutant: Mutant) -> Verdict:
        seen_by = reach.choose(mutant) if tests is None else []
        if tests is None and not seen_by:
            return Verdict(None, 0.0)
        tree = free.get()
        try:
            if tests is not None:
                return tree.try_out(mutant, Run(tuple(tests), _INTEGRATION_SECONDS))
            verdict = tree.try_in_fork(mutant, seen_by) if mutant.in_function else None
            if verdict is None:
                return tree.try_out(mutant, run_of(seen_by))
            # Processes that tests start see nothing of what is in a fork.
            again = [test for test in seen_by if test in reach.starting]
            if verdict.killed_by is None and again:
                return tree.try_out(mutant, run_of(again))
            return verdict
        finally:
            free.put(tree)

    with ThreadPoolExecutor(workers) as pool:
        for mutant, verdict in zip(chosen, pool.map(tried, chosen), strict=True):
            told = f"killed by {verdict.killed_by}" if verdict.killed_by else "SURVIVED"
            print(f"{verdict.seconds:5.1f} s {mutant.path}:{mutant.line} {told}", flush=True)
            if verdict.killed_by is None:
                yield mutant


if __name__ == "__main__":
    sys.exit(main())
