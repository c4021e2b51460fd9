"""The hooks of MkDocs, which add pages from outside of docs/, generated text, and rewritten links.

README.md and a few other files become pages of the site. A line `<!-- generated: NAME -->` is
replaced by the text that ``reference`` generates. A link to a file outside of docs/ is replaced by
the file's path, since the site does not contain the file; a missing file causes a warning.
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

_log = get_plugin_logger(__name__)  # a warning fails a strict build

ROOT = Path(__file__).parents[2]
_DOCS = ROOT / "docs"
# By the path of a file outside of docs/: its page.
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

# In HTML: code within a line.
_INLINE_CODE = re.compile(r"<code>([^<\n]*)</code>")
# In HTML: a row of a table that a command printed.
_ROW = re.compile(r'<span class="go">(?=[^<\n]*\S {2,}\S)')
# In HTML: a block of code, and the text between its tags.
_PRE = re.compile(r"<pre.*?</pre>", re.S)
_TEXT = re.compile(r"(?<=>)[^<]+(?=<)")
# In code: a flag; and a flag or a short name with hyphens.
_FLAG = re.compile(r"(?<![\w/.-])--[a-z][\w-]*")
_HYPHENATED = re.compile(r"(?<![\w/.-])(?:--?[a-zA-Z][\w-]*|\w[\w-]{0,30}-\w+)(?![\w/-])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside of docs/."""
    for source, page in _ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert generated text, rewrite links, and rank pages outside of the navigation low."""
    if page.file.inclusion.is_not_in_nav():  # type: ignore[no-untyped-call]
        page.meta.setdefault("search", {"boost": 0.2})
    markdown = _GENERATED.sub(lambda match: reference.generated(match[1]), markdown)
    source = page.file.src_uri
    path = ROOT / _SOURCES[source] if source in _SOURCES else _DOCS / source
    return _rewrite_links(markdown, path.parent, source)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Prevent line breaks in flags and rows; remove Markdown's backslash before bars in tables."""
    html = _ROW.sub('<span class="go row">', html)
    html = _PRE.sub(lambda block: _TEXT.sub(lambda text: _mark(_FLAG, text[0]), block[0]), html)
    return _INLINE_CODE.sub(lambda code: f"<code>{_mark_code(code[1])}</code>", html)


def _mark_code(code: str) -> str:
    return _mark(_HYPHENATED, code.replace("\\|", "|"))


def _mark(pattern: re.Pattern[str], text: str) -> str:
    """Mark the matches of a pattern with the CSS class that prevents line breaks."""
    return pattern.sub(r'<span class="whole">\g<0></span>', text)


def _rewrite_links(markdown: str, directory: Path, page: str) -> str:
    """Rewrite the links of a page, except in blocks of code.

    Args:
        markdown: the text of the page.
        directory: the directory to which the links are relative.
        page: the path of the page in docs/.
    """
    parts = _FENCED.split(markdown)
    parts[::2] = (
        _LINK.sub(lambda link: _rewrite_link(link, directory, page), text) for text in parts[::2]
    )
    return "".join(parts)


def _rewrite_link(link: re.Match[str], directory: Path, page: str) -> str:
    target, hash_, anchor = link["target"].partition("#")
    if not target or re.match(r"[a-z]+:", target):
        return link[0]
    path = Path(os.path.normpath(directory / target))
    if not path.is_relative_to(ROOT) or not path.exists():
        _log.warning(f"{page}: {link[0]}: there is no such file")
        return link["text"]
    name = path.relative_to(ROOT).as_posix()
    if name in _ROOT_PAGES:
        uri = _ROOT_PAGES[name]
    elif path.is_relative_to(_DOCS):
        uri = (path / "README.md" if path.is_dir() else path).relative_to(_DOCS).as_posix()
    else:
        text = link["text"].strip("`")
        return f"`{name}`" if text in (target, name) else f"{text} (`{name}`)"
    relative = os.path.relpath(uri, Path(page).parent)
    return f"{link['image']}[{link['text']}]({relative}{hash_}{anchor})"
