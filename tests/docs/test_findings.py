"""docs/reference/findings.md: every code that a finding may have, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_CODE = re.compile(r"[a-z]+(?:-[a-z]+)+")


def test_every_code_is_on_the_page() -> None:
    page = (_ROOT / "docs/reference/findings.md").read_text()
    told = re.findall(r"^\| `([a-z-]+)` \|", page, re.M)

    assert told == sorted(_codes())


def _codes() -> set[str]:
    """The codes in the functions of migrate/findings; names of Flink's states stand outside.

    And the one that is about a Spark query.
    """
    functions = (
        function
        for file in (*(_ROOT / "migrate/findings").glob("*.py"), _ROOT / "migrate/spark_query.py")
        for function in ast.walk(ast.parse(file.read_text()))
        if isinstance(function, ast.FunctionDef)
    )
    return {
        node.value
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _CODE.fullmatch(node.value)
    }
