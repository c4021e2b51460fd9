"""migrate/model/explanations.py: every code of a finding, and sections that exist."""

from __future__ import annotations

import re

from migrate.model.explanations import EXPLANATIONS
from migrate.model.finding import Code
from tests.docs.blocks import ROOT


def test_every_code_is_explained_in_order() -> None:
    assert list(EXPLANATIONS) == sorted(Code, key=str)


def test_the_sections_exist() -> None:
    sections = {explanation.section for explanation in EXPLANATIONS.values()} - {None}
    assert sections
    for section in sections:
        page, _, anchor = str(section).partition("#")
        headings = re.findall(r"^## (.+)$", (ROOT / "docs" / page).read_text(), re.M)
        anchors = [re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in headings]
        assert not anchor or anchor in anchors, section
