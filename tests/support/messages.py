"""All messages of the catalogs, as the command line shows them with placeholders for the facts.

Update the pinned texts after a change of a catalog with::

    python -m tests.support.messages
"""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from textwrap import fill

from migrate.model import warning_catalog
from migrate.model.explanations import read_catalogs
from migrate.model.message import MessageTemplate
from migrate.model.option_names import command_line_notation

PINNED = Path(__file__).parents[1] / "unit" / "messages.txt"


def message_texts() -> str:
    """Return the text of each message and then of each warning, sorted by code."""
    messages = [template for _, template in sorted(read_catalogs().items())]
    warnings = sorted(warning_templates().values(), key=attrgetter("code", "what"))
    with command_line_notation():
        return "\n".join(map(_text, messages + warnings))


def warning_templates() -> dict[str, MessageTemplate]:
    """Return the templates of ``warning_catalog`` by name."""
    return {
        name: value
        for name, value in vars(warning_catalog).items()
        if isinstance(value, MessageTemplate)
    }


def _text(template: MessageTemplate) -> str:
    message = template.placeholders()
    parts = [f"{template.code} ({template.kind.value})", message.what, message.way_out]
    lines = (fill(part, 100, break_long_words=False, break_on_hyphens=False) for part in parts)
    return "".join(f"{line}\n" for line in lines if line)


if __name__ == "__main__":
    PINNED.write_text(message_texts())
