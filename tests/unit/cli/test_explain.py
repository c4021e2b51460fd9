"""``migrate explain`` for every code of findings, warnings, refusals, and errors."""

from __future__ import annotations

import pytest

from migrate.model.explanations import explain_message, read_catalogs, read_explanations
from migrate.model.option_names import command_line_notation
from tests.support.command import migrate

_EXPLANATIONS = dict(
    sorted(
        {
            **{code: explain_message(template) for code, template in read_catalogs().items()},
            **read_explanations(),
        }.items()
    )
)


@pytest.mark.parametrize("code", _EXPLANATIONS)
def test_explain_prints_meaning_severity_and_advice_for_code(code: str) -> None:
    result = migrate("explain", code)
    assert (result.code, result.stderr) == (0, "")
    explanation = _EXPLANATIONS[code]
    if code in read_catalogs():
        with command_line_notation():
            explanation = explain_message(read_catalogs()[code])
    said = " ".join(result.stdout.split())
    assert said.startswith(f"{code} ({explanation.severity}) ")
    for text in (explanation.meaning, explanation.advice, explanation.section):
        assert text.replace("`", "") in said
    assert all(len(line) <= 80 for line in result.stdout.splitlines()[:-1])


def test_explain_without_code_lists_every_code() -> None:
    result = migrate("explain")
    assert (result.code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(_EXPLANATIONS)
    assert all(len(line.split()) > 2 and len(line) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("suspect", "docs/explanation/traps-broker.md#the-verdicts"),
        ("beyond-end", "docs/explanation/traps-broker.md#the-verdicts"),
        ("sources-disagree", "docs/how-to/fleet.md"),
    ],
)
def test_explain_shows_documentation_page_for_term_in_plan_or_scan(word: str, page: str) -> None:
    result = migrate("explain", word)
    assert (result.code, result.stderr) == (0, "")
    *_, line = result.stdout.splitlines()
    assert line.startswith(f"{word} is ") and line.endswith(page)


def test_explain_suggests_similar_code_for_unknown_code() -> None:
    result = migrate("explain", "not-check")
    assert (result.code, result.stdout) == (2, "")
    assert "did you mean 'not-checked'" in result.stderr
