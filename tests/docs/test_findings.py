"""Check that migrate/model/explanations.md explains every code, with links to existing sections."""

from __future__ import annotations

import ast
import inspect
import re

from migrate.cli.exit_codes import Exit
from migrate.model.explanations import read_explanations
from migrate.model.finding import Code
from migrate.model.warning import WarningCode
from tests.docs.blocks import ROOT

# The modules that define codes.
_DEFINE = ("finding", "warning")


def test_every_code_is_explained_in_order() -> None:
    assert list(read_explanations()) == sorted(code.value for code in (*Code, *WarningCode))


def test_every_code_is_used() -> None:
    """Each member occurs outside the modules that define and explain the member."""
    defined = {ROOT / "migrate/model" / f"{name}.py" for name in _DEFINE}
    sources = set((ROOT / "migrate").rglob("*.py")) - defined
    text = "\n".join(source.read_text() for source in sources)
    named = set(re.findall(r"\b((?:Warning)?Code\.[A-Z_]+)", text))
    assert named == {f"{type(code).__name__}.{code.name}" for code in (*Code, *WarningCode)}


def test_every_warning_has_code() -> None:
    """``warn`` logs a message with a code, or ``WarningText`` is created before the log call."""
    for source in (ROOT / "migrate").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "log.warning"
                and source.name != "warning.py"
            ):
                made = ast.unparse(node.args[0])
                assert made in ("warning", "line", "new_group_warning(view)"), f"{source}: {made}"


def test_linked_sections_exist() -> None:
    sections = {explanation.section for explanation in read_explanations().values()} - {""}
    assert sections
    for section in sections:
        page, _, anchor = str(section).partition("#")
        headings = re.findall(r"^## (.+)$", (ROOT / "docs" / page).read_text(), re.M)
        anchors = [re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in headings]
        assert not anchor or anchor in anchors, section


def test_exit_codes_page_matches_program() -> None:
    source = inspect.getsource(Exit)
    rows = ["| 0 | | success |"]
    for code in Exit:
        meaning = re.search(rf"^ *{code.name} = {code.value}  # (.+)$", source, re.M)
        assert meaning is not None, f"{code!r} has no meaning"
        text = meaning[1].replace("``", "`")
        rows.append(f"| {code.value} | {code.name.lower().replace('_', ' ')} | {text} |")
    page = (ROOT / "docs/reference/exit-codes.md").read_text()
    shown = re.findall(r"^\| \d+ (?:\|[^|]*){2}\|", page, re.M)
    assert shown == rows
