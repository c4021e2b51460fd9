"""What self-contained pages are made of: their files, and text that is only text."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files

from migrate.wording import visible


def part(folder: str, name: str) -> str:
    """A file of a page, by the folder that is beside this module."""
    return (files("migrate.report") / folder / name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """How a content security policy names a style or a script that it lets run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def page_text(text: str) -> str:
    """All of a page is ASCII: it is the same in whatever encoding it is written down."""
    return escape(visible(text)).encode("ascii", "xmlcharrefreplace").decode()
