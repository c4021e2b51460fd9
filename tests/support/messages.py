"""All messages of the catalogs, as the command line shows them with placeholders for the facts.

Update the pinned texts after a change of a catalog with::

    python -m tests.support.messages
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from migrate.model import catalog, finding_catalog, warning_catalog
from migrate.model.extensions import extension_catalogs
from migrate.model.message import Kind, MessageTemplate
from migrate.model.option_names import command_line_notation

PINNED = Path(__file__).parents[1] / "unit" / "messages.txt"
# The kinds of messages that share codes; ``explanations.md`` explains these codes.
SHARED = (Kind.FINDING, Kind.WARNING)


def message_texts() -> str:
    """Return the text of each reason, and then of each finding and warning, sorted by code."""
    templates = sorted(
        (template for _, template in named_templates()),
        key=lambda template: (template.kind in SHARED, template.code, template.what),
    )
    with command_line_notation():
        return "\n".join(map(_text, templates))


def named_templates() -> Iterator[tuple[str, MessageTemplate]]:
    """Yield the name and the template of each message in all catalogs."""
    for module in (catalog, finding_catalog, warning_catalog, *extension_catalogs()):
        for name, value in vars(module).items():
            if isinstance(value, MessageTemplate):
                yield name, value


def _text(template: MessageTemplate) -> str:
    message = template.placeholders()
    parts = [f"{template.code} ({template.kind.value})", message.what, message.way_out]
    lines = (fill(part, 100, break_long_words=False, break_on_hyphens=False) for part in parts)
    return "".join(f"{line}\n" for line in lines if line)


if __name__ == "__main__":
    PINNED.write_text(message_texts())
