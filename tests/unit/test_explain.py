"""``migrate explain``: every code that inspect and warnings show."""

from __future__ import annotations

import pytest

from migrate.model.explanations import EXPLANATIONS
from tests.support.command import migrate


@pytest.mark.parametrize("code", EXPLANATIONS)
def test_a_code_is_explained(code: str) -> None:
    result = migrate("explain", code)
    assert (result.code, result.stderr) == (0, "")
    explanation = EXPLANATIONS[code]  # type: ignore[index]
    said = " ".join(result.stdout.split())
    assert said.startswith(f"{code} ({explanation.severity}) ")
    for text in (explanation.meaning, explanation.advice, explanation.section or ""):
        assert text.replace("`", "") in said
    assert all(len(line) <= 80 for line in result.stdout.splitlines()[:-1])


def test_without_a_code_all_are_listed() -> None:
    result = migrate("explain")
    assert (result.code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [code.value for code in EXPLANATIONS]
    assert all(len(line.split()) > 2 and len(line) <= 80 for line in lines)


def test_an_unknown_code() -> None:
    result = migrate("explain", "not-check")
    assert (result.code, result.stdout) == (2, "")
    assert "did you mean 'not-checked'" in result.stderr
