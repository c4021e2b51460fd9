"""docs/reference/findings.md: every code that a finding may have, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from migrate.model.finding import Code

_PAGE = Path(__file__).parents[2] / "docs/reference/findings.md"


def test_every_code_is_on_the_page() -> None:
    told = re.findall(r"^\| `([a-z-]+)` \|", _PAGE.read_text(), re.M)
    assert told == sorted(code.value for code in Code)
