"""Which of the fast tests run which lines: measured, and kept for the next time.

What is kept is of each test module as it was, and of the code as it was. A module that has changed
is measured again; of a file of code that has changed since, all is taken to be run by every test
that ran any of it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from coverage import CoverageData

from tests.mutants.mutations import Mutant
from tests.mutants.plugin import Record
from tests.mutants.trees import FAST, PYTEST, Tree

# Under what coverage keeps what runs before the first test.
_NO_TEST = ""


@dataclass(slots=True)
class Reach:
    """What the tests run.

    Attributes:
        lines: by file of code and line, the tests that run it.
        seconds: of each test that passed as the code is.
        sharing: the tests that share a fixture with others.
        starting: the tests that start processes, whose lines are not known.
        on_import: by file of code, the lines that run before any test does.
        measured: a test module's digest, and each file of code's, as they were.
        changed: the files of code that are no longer as they were measured.
        importers: by file of code, those that import it.
        silent: the tests that run no line: they look at what was made on import.
    """

    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    sharing: set[str] = field(default_factory=set)
    starting: set[str] = field(default_factory=set)
    on_import: dict[str, set[int]] = field(default_factory=dict)
    measured: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    importers: dict[str, set[str]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)

    def runs_on_import(self, mutant: Mutant) -> bool:
        """Or is compiled then, so that no line of it is seen to run."""
        first, last = mutant.lines
        lines = self.on_import.get(mutant.path, set())
        return (
            not mutant.in_function
            or "\nimport numba" in mutant.source
            or any(first <= line <= last for line in lines)
        )

    def choose(self, mutant: Mutant, on_import: bool) -> list[str]:
        """The tests that may see a fault: those that run its statement, the short ones first.

        Then those of the same modules that may only look at what was run for another one, or by
        another process. What runs on import is seen by those that run something of its file, or of
        one that imports it.
        """
        first, last = mutant.lines
        exact = not on_import and mutant.path not in self.changed
        ran = {
            test
            for line, tests in self.lines.get(mutant.path, {}).items()
            if not exact or first <= line <= last
            for test in tests
        } & self.seconds.keys()
        beside: set[str] = set()
        if on_import:
            for file in self.importers.get(mutant.path, ()):
                beside.update(*self.lines.get(file, {}).values())
            beside = ((beside | self.silent) & self.seconds.keys()) - ran
        modules = {_module(test) for test in ran | beside}
        beside |= {t for t in (self.sharing | self.starting) - ran if _module(t) in modules}
        return [*self._short_first(ran), *self._short_first(beside)]

    def _short_first(self, tests: Iterable[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self.seconds[test], test))

    def forget(self, modules: set[str]) -> None:
        """What was measured of these test modules."""
        self.measured = {file: of for file, of in self.measured.items() if file not in modules}
        self.seconds = {t: s for t, s in self.seconds.items() if _module(t) not in modules}
        self.sharing = {test for test in self.sharing if test in self.seconds}
        self.starting = {test for test in self.starting if test in self.seconds}
        for lines in self.lines.values():
            for tests in lines.values():
                tests.difference_update({test for test in tests if _module(test) in modules})

    def write(self, path: Path) -> None:
        numbers = {test: number for number, test in enumerate(self.seconds)}
        lines = {
            file: {line: [numbers[t] for t in tests if t in numbers] for line, tests in of.items()}
            for file, of in self.lines.items()
        }
        kept = {
            "measured": self.measured,
            "seconds": self.seconds,
            "sharing": sorted(self.sharing),
            "starting": sorted(self.starting),
            "on_import": {file: sorted(lines) for file, lines in self.on_import.items()},
            "lines": lines,
        }
        path.write_text(json.dumps(kept))

    @classmethod
    def read(cls, path: Path) -> Reach:
        if not path.exists():
            return cls()
        kept = json.loads(path.read_text())
        names = list(kept["seconds"])
        lines = {
            file: {int(line): {names[n] for n in tests} for line, tests in of.items()}
            for file, of in kept["lines"].items()
        }
        sharing, starting = set(kept["sharing"]), set(kept["starting"])
        on_import = {file: set(lines) for file, lines in kept["on_import"].items()}
        return cls(lines, kept["seconds"], sharing, starting, on_import, kept["measured"])


def _module(test: str) -> str:
    return test.partition("::")[0]


def measure(trees: list[Tree], kept: Path) -> Reach:
    """Run the fast tests under coverage that ``kept`` knows nothing of, a part in each tree."""
    reach = Reach.read(kept)
    root = trees[0].root
    modules = trees[0].fast_test_modules()
    stale = {m for m in modules if reach.measured.get(m) != _digest(root / m)}
    reach.forget(stale | {m for m in reach.measured if m.startswith("tests/")} - set(modules))
    code = [file for room in ("decoder", "migrate") for file in sorted((root / room).rglob("*.py"))]
    now = {file.relative_to(root).as_posix(): _digest(file) for file in code}
    if not reach.seconds:
        reach.measured = dict(now)
    # In order of size, so that each tree has as much to do as the others.
    todo = sorted(stale, key=lambda module: (root / module).stat().st_size)
    with ThreadPoolExecutor(len(trees)) as pool:
        parts = [todo[n :: len(trees)] for n in range(len(trees))]
        for measured, passed in pool.map(_measured, trees, parts):
            reach.seconds |= passed["seconds"]
            reach.sharing.update(passed["sharing"])
            reach.starting.update(passed["starting"])
            for file, lines in measured.items():
                of_file = reach.lines.setdefault(file, {})
                for line, tests in lines.items():
                    of_file.setdefault(line, set()).update(tests - {_NO_TEST})
                    if _NO_TEST in tests:
                        reach.on_import.setdefault(file, set()).add(line)
    reach.measured |= {module: _digest(root / module) for module in stale}
    reach.importers = _importers({name: (root / name).read_text() for name in now})
    running = {test for of in reach.lines.values() for tests in of.values() for test in tests}
    reach.silent = reach.seconds.keys() - running
    reach.changed = {file for file, digest in now.items() if reach.measured.get(file) != digest}
    reach.write(kept)
    return reach


def _importers(sources: dict[str, str]) -> dict[str, set[str]]:
    """By file, the files that import its module, or something of it."""
    found: dict[str, set[str]] = {}
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            named: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                named = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            elif isinstance(node, ast.Import):
                named = [one.name for one in node.names]
            for name in named:
                stem = name.replace(".", "/")
                for file in (f"{stem}.py", f"{stem}/__init__.py"):
                    if file in sources:
                        found.setdefault(file, set()).add(path)
    return found


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _measured(tree: Tree, modules: list[str]) -> tuple[dict[str, dict[int, set[str]]], Record]:
    if not modules:
        return {}, Record(seconds={}, sharing=[], starting=[])
    record, coverage_file = tree.beside("seconds.json"), tree.beside("coverage")
    # Python's newer way of measuring tells lines, not who ran them.
    environment = {
        "COVERAGE_CORE": "ctrace",
        "COVERAGE_FILE": str(coverage_file),
        "MUTANTS_RECORD": str(record),
    }
    measuring = [sys.executable, "-m", "coverage", "run", "--source=decoder,migrate"]
    ran = subprocess.run(
        [*measuring, "-m", *PYTEST, *FAST, *modules],
        cwd=tree.root,
        env={**tree.environment, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if not record.exists():
        raise SystemExit(f"the tests did not run:\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}")
    data = CoverageData(str(coverage_file))
    data.read()
    lines: dict[str, dict[int, set[str]]] = {}
    for file in data.measured_files():
        path = Path(file).relative_to(tree.root).as_posix()
        lines[path] = {line: set(tests) for line, tests in data.contexts_by_lineno(file).items()}
    return lines, json.loads(record.read_text())
