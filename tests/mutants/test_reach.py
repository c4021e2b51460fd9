"""Which tests a fault is tried with: those that run its lines, or whatever runs its file."""

from __future__ import annotations

from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.reach import Reach

_SOURCE = """
def made(value):
    return value + 1

TABLE = made(2)
"""
_IN_FUNCTION, _ON_IMPORT = (
    next(one for one in mutants_of("m.py", _SOURCE) if one.line == line) for line in (3, 5)
)
_SECONDS = {
    "tests/a.py::runs": 2.0,
    "tests/a.py::beside": 0.1,
    "tests/b.py::imports": 0.2,
    "tests/c.py::looks": 0.1,
}


def _reach(on_import: dict[str, set[int]]) -> Reach:
    return Reach(
        lines={"m.py": {3: {"tests/a.py::runs"}}, "n.py": {1: {"tests/b.py::imports"}}},
        seconds=_SECONDS,
        starting={"tests/a.py::beside"},
        on_import=on_import,
        importers={"m.py": {"n.py"}},
        silent={"tests/c.py::looks"},
    )


def test_what_runs_the_line_and_then_what_may_have_looked_at_it() -> None:
    told = _reach({}).choose(_IN_FUNCTION, on_import=False)
    assert told == ["tests/a.py::runs", "tests/a.py::beside"]


def test_what_runs_on_import_is_seen_by_those_that_import_it() -> None:
    told = _reach({}).choose(_ON_IMPORT, on_import=True)
    assert told[0] == "tests/a.py::runs"
    assert told[1:] == ["tests/a.py::beside", "tests/c.py::looks", "tests/b.py::imports"]


def test_a_function_may_run_on_import_too() -> None:
    def runs(mutant: Mutant, lines: set[int]) -> bool:
        return _reach({"m.py": lines}).runs_on_import(mutant)

    assert runs(_ON_IMPORT, set())
    assert runs(_IN_FUNCTION, {2, 3, 5})
    assert not runs(_IN_FUNCTION, {2, 5})
    compiled = next(m for m in mutants_of("m.py", f"\nimport numba\n{_SOURCE}") if m.in_function)
    assert runs(compiled, set())
