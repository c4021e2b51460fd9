"""What MkDocs is told beside mkdocs.yml: pages from elsewhere, what is generated, links that leave.

README.md and a few others are pages of the site as they are. A line `<!-- generated: NAME -->`
becomes what `reference` makes of the program itself. A link to a file outside of docs/ must lead to
one, and is shown as its path, since the site does not hold it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_log = get_plugin_logger(__name__)  # what it warns of fails a strict build

ROOT = Path(__file__).parents[2]
_DOCS = ROOT / "docs"
# What lies outside of docs/ -> its page.
_ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
}
_SOURCES = {page: source for source, page in _ROOT_PAGES.items()}

_GENERATED = re.compile(r"^<!-- generated: (.+) -->$", re.M)
_FENCED = re.compile(r"(^ *```.*\n(?:.*\n)*?^ *```$)", re.M)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")

# In HTML: code within a line, and a flag or a short name with hyphens in it.
_INLINE_CODE = re.compile(r"<code>([^<\n]*)</code>")
# A row of a table that a command printed: it is never broken.
_ROW = re.compile(r'<span class="go">(?=[^<\n]*\S {2,}\S)')
# In blocks of code: what lies between tags, and flags.
_PRE = re.compile(r"<pre.*?</pre>", re.S)
_TEXT = re.compile(r"(?<=>)[^<]+(?=<)")
_FLAG = re.compile(r"(?<![\w/.-])--[a-z][\w-]*")
_HYPHENATED = re.compile(r"(?<![\w/.-])(?:--?[a-zA-Z][\w-]*|\w[\w-]{0,30}-\w+)(?![\w/-])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages whose text lies outside of docs/."""
    for source, page in _ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what is generated, turn the links, rank pages outside of the navigation low."""
    if page.file.inclusion.is_not_in_nav():  # type: ignore[no-untyped-call]
        page.meta.setdefault("search", {"boost": 0.2})
    markdown = _GENERATED.sub(lambda match: reference.generated(match[1]), markdown)
    source = page.file.src_uri
    here = ROOT / _SOURCES[source] if source in _SOURCES else _DOCS / source
    return _with_links_turned(markdown, here.parent, source)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Flags and rows stay whole, and bars in tables lose the backslash of Markdown."""
    html = _ROW.sub('<span class="go row">', html)
    html = _PRE.sub(lambda block: _TEXT.sub(lambda text: _unbroken(_FLAG, text[0]), block[0]), html)
    return _INLINE_CODE.sub(lambda code: f"<code>{_whole(code[1])}</code>", html)


def _whole(code: str) -> str:
    return _unbroken(_HYPHENATED, code.replace("\\|", "|"))


def _unbroken(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(r'<span class="whole">\g<0></span>', text)


def _with_links_turned(markdown: str, directory: Path, page: str) -> str:
    """The text, with links turned wherever they are not in a code block."""
    parts = _FENCED.split(markdown)
    parts[::2] = (
        _LINK.sub(lambda link: _turned(link, directory, page), text) for text in parts[::2]
    )
    return "".join(parts)


def _turned(link: re.Match[str], directory: Path, page: str) -> str:
    target, hash_, anchor = link["target"].partition("#")
    if not target or re.match(r"[a-z]+:", target):
        return link[0]
    path = Path(os.path.normpath(directory / target))
    if not path.is_relative_to(ROOT) or not path.exists():
        _log.warning(f"{page}: {link[0]}: there is no such file")
        return link["text"]
    inside = path.relative_to(ROOT).as_posix()
    if inside in _ROOT_PAGES:
        uri = _ROOT_PAGES[inside]
    elif path.is_relative_to(_DOCS):
        uri = (path / "README.md" if path.is_dir() else path).relative_to(_DOCS).as_posix()
    else:
        text = link["text"].strip("`")
        return f"`{inside}`" if text in (target, inside) else f"{text} (`{inside}`)"
    relative = os.path.relpath(uri, Path(page).parent)
    return f"{link['image']}[{link['text']}]({relative}{hash_}{anchor})"
