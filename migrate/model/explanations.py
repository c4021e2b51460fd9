"""The meaning of each code, and the user's remedies.

The core's findings and warnings are explained in ``explanations.md`` in this package. The warnings
of an extension are explained in ``explanations.md`` in the extension's package. The first lines of
the core's file describe the format. Refusals and errors are explained in the message catalogs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from textwrap import shorten, wrap
from typing import NamedTuple

from migrate.model import catalog
from migrate.model.extensions import extension_catalogs, extension_packages
from migrate.model.message import Kind, MessageTemplate


class Explanation(NamedTuple):
    """The explanation of a code, in Markdown without links.

    Attributes:
        meaning: what the finding or the warning means for the input or the move.
        advice: the user's remedies; empty if there are none.
        section: the page and section in docs/ with more details, or empty.
    """

    severity: str
    meaning: str
    advice: str
    section: str

    def summary(self, width: int) -> str:
        """Return the meaning, shortened to ``width`` columns, for the list of all codes."""
        meaning = re.sub(r"^[A-Z_]+: ", "", self.meaning)  # remove a placeholder such as OPERATOR:
        sentence = re.split(r"[.:;] | \(|\.$", meaning)[0].replace("`", "")
        return shorten(sentence, width, placeholder=" …")

    def text(self, code: str) -> str:
        """Return the explanation of a code, formatted for a terminal."""
        lines = [f"{code} ({self.severity})", "", *_wrap(self.meaning)]
        if self.advice:
            lines += ["", *_wrap(f"What to do: {self.advice}")]
        if self.section:
            lines += ["", f"More: docs/{self.section}"]
        return "".join(f"{line}\n" for line in lines)


def read_catalogs() -> dict[str, MessageTemplate]:
    """Return the message template of each refusal and error, by code.

    The codes of findings and warnings are not included, because ``read_explanations`` explains
    them.
    """
    return {
        template.code: template
        for module in (catalog, *extension_catalogs())
        for template in vars(module).values()
        if isinstance(template, MessageTemplate) and template.kind is not Kind.WARNING
    }


def explain_message(template: MessageTemplate) -> Explanation:
    """Return the explanation of a message, with the names of the facts in capitals."""
    message = template.placeholders()
    return Explanation(template.kind.value, message.what, message.way_out, "")


def _wrap(text: str) -> list[str]:
    return wrap(text.replace("`", ""), 80, break_on_hyphens=False, break_long_words=False)


def read_explanations() -> Mapping[str, Explanation]:
    """Return the explanations of the core and of the installed extensions, sorted by code."""
    texts = {}
    for package in (__package__, *extension_packages()):
        file = files(package).joinpath("explanations.md")
        if not file.is_file():
            continue  # this extension has no warnings
        for section in file.read_text(encoding="utf-8").split("\n## ")[1:]:
            code, kind, meaning, *advice = (
                " ".join(paragraph.split()) for paragraph in section.split("\n\n")
            )
            severity, _, page = kind.partition(": ")
            texts[code] = Explanation(severity, meaning, " ".join(advice), page)
    return dict(sorted(texts.items()))
