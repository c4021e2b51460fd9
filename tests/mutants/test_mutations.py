"""What faults are put into code: each alone, none that Python cannot read, none in words."""

from __future__ import annotations

import ast
import textwrap

from tests.mutants.__main__ import ROOT
from tests.mutants.mutations import Mutant, mutants_of

_SOURCE = '''
"""Module."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import sys
LIMIT: int = 4

def first(values: list[int], most: "int" = 3) -> int | None:
    """Function."""
    assert values is not None
    for n, value in enumerate(values):
        if value < 0 or not value:
            raise ValueError(f"{value + 1} is too small in é")
        elif n >= most: continue
        text = "é" + str(value)
        return min(value, LIMIT)
'''


def _changes(source: str) -> list[tuple[int, str, str]]:
    return [(m.line, m.old, m.new) for m in mutants_of("m.py", source)]


def test_the_faults_of_a_function() -> None:
    assert _changes(_SOURCE) == [
        (6, "4", "5"),
        (12, "value < 0 or not value", "(value < 0 and (not value))"),
        (12, "value < 0 or not value", "False"),
        (12, "value < 0 or not value", "True"),
        (12, "value < 0", "(value <= 0)"),
        (12, "0", "1"),
        (12, "not value", "(value)"),
        (13, 'raise ValueError(f"{value + 1} is too small in é")', "pass"),
        (14, "n >= most", "(n > most)"),
        (14, "n >= most", "False"),
        (14, "n >= most", "True"),
        (14, "continue", "break"),
        (15, '"é"', "'éx'"),
        (16, "return min(value, LIMIT)", "return None"),
        (16, "min", "max"),
    ]


def test_a_fault_is_where_it_is_said_to_be() -> None:
    for mutant in mutants_of("m.py", _SOURCE):
        made = mutant.applied
        assert made[: mutant.start] + mutant.old + made[mutant.start + len(mutant.new) :] == _SOURCE
        differing = [
            number
            for number, (was, now) in enumerate(
                zip(_SOURCE.splitlines(), made.splitlines(), strict=True), 1
            )
            if was != now
        ]
        assert differing == [mutant.line]


def test_a_fault_belongs_to_the_lines_that_run_it() -> None:
    source = textwrap.dedent(
        """
        KINDS = (
            1,
        )
        def f(a):
            return [
                b
                for b in a
                if b > 2
            ]
        """
    )
    places = {(m.line, m.lines, m.in_function) for m in mutants_of("m.py", source)}
    assert places == {(3, (2, 4), False), (6, (6, 10), True), (9, (6, 10), True)}


def test_every_fault_of_the_decoder_is_code_and_another_one() -> None:
    found: list[Mutant] = []
    for file in sorted((ROOT / "decoder").rglob("*.py")):
        source = file.read_text()
        healthy = ast.dump(ast.parse(source))
        of_file = mutants_of(file.name, source)
        assert len({(m.start, m.end, m.new) for m in of_file}) == len(of_file)
        for mutant in of_file[::10]:
            assert ast.dump(ast.parse(mutant.applied)) != healthy
        found += of_file
    assert len(found) > 1000
