"""Check that every code of a finding or warning is explained, and that the linked pages exist."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

from migrate.cli.exit_codes import Exit
from migrate.model import finding_catalog, warning_catalog
from migrate.model.explanations import read_explanations
from migrate.model.extensions import extension_catalogs, extension_packages
from migrate.model.finding import Code
from migrate.model.message import MessageTemplate
from tests.docs.blocks import ROOT
from tests.support.messages import SHARED, named_templates


def test_explanations_are_sorted_and_cover_every_warning_and_finding_code() -> None:
    used = {template.code for _, template in named_templates() if template.kind in SHARED}
    assert list(read_explanations()) == sorted({*used, *(code.value for code in Code)})


def test_extension_explains_its_own_codes() -> None:
    """An extension's file explains each warning code that only the extension uses."""
    for package in extension_packages():
        own = {code for module, code in _codes() if module.startswith(package)}
        others = {code for module, code in _codes() if not module.startswith(package)}
        path = ROOT / package.replace(".", "/") / "explanations.md"
        explained = re.findall(r"^## (.*)", path.read_text(), re.M) if path.exists() else []
        assert set(explained) == own - others, package


def _codes() -> Iterator[tuple[str, str]]:
    """Yield the module and the code of each template of a finding or a warning."""
    for module in (finding_catalog, warning_catalog, *extension_catalogs()):
        for value in vars(module).values():
            if isinstance(value, MessageTemplate) and value.kind in SHARED:
                yield module.__name__, value.code


def test_every_finding_code_is_used() -> None:
    """Each member of ``Code`` occurs outside the module that defines it."""
    sources = set((ROOT / "migrate").rglob("*.py")) - {ROOT / "migrate/model/finding.py"}
    text = "\n".join(source.read_text() for source in sources)
    named = set(re.findall(r"\bCode\.([A-Z_]+)", text))
    assert named == {code.name for code in Code}


def test_every_warning_has_code() -> None:
    """Outside warning.py, ``log.warning`` is called only with a ``WarningText``.

    A ``WarningText`` has a code.
    """
    for source in (ROOT / "migrate").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "log.warning"
                and source.name != "warning.py"
            ):
                made = ast.unparse(node.args[0])
                assert made in ("warning", "line", "new_group_warning(view)"), f"{source}: {made}"


def test_page_sections_linked_by_explanations_exist() -> None:
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
