"""A fault is put into functions wherever they are: also into those that others made, on import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_SOURCE = """
def number(size):
    def read(data):
        return data + 1, size
    return read

class Reader:
    def twice(self, data):
        return data * 2

def later(data):
    if not data:
        return None
    return lambda: data

TABLE = {"one": number(1)}
"""
_TRY = """
import json, sys
import made
from tests.mutants.forks import Job, _put_in
healthy, faulty = json.loads(sys.argv[1])
put_in = _put_in(Job("made.py", healthy, faulty, [], 1.0))
print(json.dumps([put_in, made.TABLE["one"](1), made.number(2)(1), made.Reader().twice(2)]))
"""


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("data + 1", "data - 1", [True, [0, 1], [0, 2], 4]),
        ("data * 2", "data // 2", [True, [2, 1], [2, 2], 1]),
        ("number(1)", "number(3)", [False, [2, 1], [2, 2], 4]),
        # Python leaves out what comes behind it, and the function in it: not to be told here.
        ("if not data", "if True", [False, [2, 1], [2, 2], 4]),
    ],
)
def test_a_function_that_was_made_on_import_has_the_fault(
    old: str, new: str, found: list[object], tmp_path: Path
) -> None:
    (tmp_path / "made.py").write_text(_SOURCE)
    texts = json.dumps([_SOURCE, _SOURCE.replace(old, new)])
    root = Path(__file__).parents[2]
    told = subprocess.run(
        [sys.executable, "-c", _TRY, texts],
        env={"PYTHONPATH": f"{tmp_path}:{root}"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(told.stdout) == found
