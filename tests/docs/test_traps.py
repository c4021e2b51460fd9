"""Check that each section of the pages about traps has tests in tests/traps.md, and vice versa."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import ROOT

_, *_PARTS = re.split(r"^## ", (ROOT / "tests/traps.md").read_text(), flags=re.M)
TESTS_OF_PAGE = {part.splitlines()[0]: part for part in _PARTS}
TRAPS = sorted((ROOT / "docs/explanation").glob("traps-*.md"))


def _sections(page: str) -> list[str]:
    return re.findall(r"^## (.+)$", (ROOT / page).read_text(), re.M)


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in TRAPS])
def test_every_section_of_traps_pages_is_listed_in_traps_md(page: str) -> None:
    assert _sections(page)
    assert re.findall(r"^- (.+)$", TESTS_OF_PAGE[page], re.M) == _sections(page)


@pytest.mark.parametrize("page", TESTS_OF_PAGE)
def test_every_section_in_traps_md_exists_on_its_page_and_cites_test(page: str) -> None:
    _, *sections = re.split(r"^- ", TESTS_OF_PAGE[page], flags=re.M)
    for section in sections:
        assert section.splitlines()[0] in _sections(page)
        assert re.search(r"`tests/[\w/]+\.py::test_\w+`", section), section.splitlines()[0]
