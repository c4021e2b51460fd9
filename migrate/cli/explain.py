"""``migrate explain``."""

from __future__ import annotations

import typer

from migrate.cli.terminal import emit, emit_pieces


def explain(
    code: str | None = typer.Argument(
        None,
        metavar="CODE",
        help="The code shown in brackets in a message. If you omit the code, all codes are listed.",
        show_default=False,
    ),
) -> None:
    """Explain the code of a warning, a finding, or a refusal, such as not-checked."""
    from migrate.model.errors import NoSuchName
    from migrate.model.explanations import explain_message, read_catalogs, read_explanations

    messages = {code: explain_message(template) for code, template in read_catalogs().items()}
    by_code = dict(sorted({**messages, **read_explanations()}.items()))
    code = code.lower().strip("[]") if code is not None else None
    if code is None:
        width = max(map(len, by_code))
        emit_pieces(
            f"{name:<{width}}  {explanation.summary(78 - width)}\n"
            for name, explanation in by_code.items()
        )
    elif code in by_code:
        emit(by_code[code].text(code), end="")
        if code in messages and (page := _page_of_word(code)):
            emit(page)
    elif page := _page_of_word(code):
        emit(page)
    else:
        problem = f"{code!r} is not the code of a message"
        raise NoSuchName(problem, code, list(by_code), "run migrate explain to list all codes")


def _page_of_word(word: str) -> str:
    """Return a line about a word that is not a code, such as a verdict; "" for an unknown word."""
    from migrate.model.extensions import declared
    from migrate.planning.plan import Verdict

    if word.replace("-", " ") in {verdict.value for verdict in Verdict}:
        return (
            f"{word} is a verdict on a partition; see docs/explanation/traps-broker.md#the-verdicts"
        )
    return str(declared("EXPLANATIONS").get(word, ""))
