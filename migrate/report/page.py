"""Self-contained HTML pages, which Jinja2 renders from the templates in a package's ``pages/``.

A page's content security policy allows only its own style and script, by their hashes. Names on a
page come from checkpoints of unknown origin, so Jinja2 escapes these names.
"""

from __future__ import annotations

import base64
import hashlib
from enum import Enum
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from migrate.model.wording import printable

_BASE = "migrate.report"


def render_page(name: str, package: str = _BASE, **values: object) -> str:
    """Return a page in ASCII; other characters become character references.

    Args:
        name: the template's name. The files are ``<name>.html``, ``<name>.css`` (after
            ``base.css``), and, if the page has a script, ``<name>.js``.
        package: the package whose ``pages/`` has these files.
        values: the variables of the template.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(of, "pages") for of in dict.fromkeys((package, _BASE))]),
        autoescape=True,
        finalize=_template_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'"
    sources = {}
    base, own = files(_BASE) / "pages", files(package) / "pages"
    for kind, parts in (
        ("style", (base / "base.css", own / f"{name}.css")),
        ("script", (own / f"{name}.js",)),
    ):
        texts = [part.read_text(encoding="utf-8") for part in parts if part.is_file()]
        if texts:
            sources[kind] = text = Markup("".join(texts))
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            policy += f"; {kind}-src 'sha256-{digest}'"
    page = environment.get_template(f"{name}.html").render(values, policy=policy, **sources)
    return page.encode("ascii", "xmlcharrefreplace").decode()


def _template_value(value: object) -> object:
    """Return a value for a template: "" for None, and strings with escaped control characters."""
    if value is None:
        return ""
    if isinstance(value, Enum):
        value = value.value
    if type(value) is not str or value.isprintable():  # Markup, a subclass of str, stays unchanged
        return value
    return printable(value)
