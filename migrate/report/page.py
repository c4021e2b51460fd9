"""What self-contained pages are made of: their files, and text that is only text."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from string import Template

from migrate.wording import visible


def part(*names: str) -> str:
    """A file of a page, by the folder that is beside this module, and its name."""
    return files("migrate.report").joinpath(*names).read_text(encoding="utf-8")


def page(folder: str, policy: str, **fields: str) -> str:
    """A page: the head of every page, and ``page.html`` of its folder, filled in.

    Args:
        policy: the page's content security policy.
    """
    text = part("page_head.html") + part(folder, "page.html")
    return Template(text).substitute(fields, policy=policy, style=part(folder, "page.css"))


def source_hash(text: str) -> str:
    """How a content security policy names a style or a script that it lets run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def page_text(text: str) -> str:
    """All of a page is ASCII: it is the same in whatever encoding it is written down."""
    return escape(visible(text)).encode("ascii", "xmlcharrefreplace").decode()
