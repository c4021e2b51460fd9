"""Compare each limit in docs/reliability.md with the constant in the same row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

_PAGE = Path(__file__).parents[2] / "docs/reliability.md"
_ROW = re.compile(r"^\| .* \| ([\d,]+)( [GM]iB)? \| `(\w+)` in `(.+)\.py` \|$", re.M)
_UNITS = {"": 1, " MiB": 1 << 20, " GiB": 1 << 30}


def _limits() -> Iterator[tuple[str, str, int]]:
    for number, unit, constant, path in _ROW.findall(_PAGE.read_text()):
        yield path.replace("/", "."), constant, int(number.replace(",", "")) * _UNITS[unit]


@pytest.mark.parametrize(("module", "constant", "limit"), list(_limits()))
def test_limit_on_docs_page_matches_constant_in_code(
    module: str, constant: str, limit: int
) -> None:
    assert getattr(import_module(module), constant) == limit


def test_every_row_of_limits_table_is_checked() -> None:
    section = _PAGE.read_text().partition("## Limits")[2].partition("\nNotes:")[0]
    assert len(list(_limits())) == section.count("\n| ") - 1  # without the header row
