"""Build the site only from local files, and check that its pages load nothing from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.support.wait import WebDriverWait

from tests.docs.blocks import ROOT
from tests.support.chromium import NoChromium, chromium

pytestmark = pytest.mark.slow

_BUILD_SECONDS = 300
_SEARCH_SECONDS = 60
# The number of characters of code that fit in a line if the page is 1280 pixels wide.
_ROOM = 101


def _build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a project with ``--strict`` and without network access."""
    nowhere = "http://127.0.0.1:1"
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root,
        env={
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "http_proxy": nowhere,
            "https_proxy": nowhere,
        },
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("site")
    built = _build(ROOT, path)
    assert built.returncode == 0, built.stderr
    return path


def test_site_pages_load_no_external_resources(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loaded = re.findall(
            r"<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=\"([^\"]+)", page.read_text()
        )
        assert not [address for address in loaded if re.match(r"(?:https?:)?//", address)], page


def test_reference_pages_list_commands_exit_codes_and_json_fields(site: Path) -> None:
    commands = (site / "reference/commands.html").read_text()
    for name in ("inspect", "to-spark", "commit-group", "rollback", "diff", "verify", "scan"):
        assert f"Usage: migrate {name} " in commands
    assert "<td>130" in re.sub(
        r"<td[^>]*>", "<td>", (site / "reference/exit-codes.html").read_text()
    )
    assert "starting_offsets" in (site / "reference/library.html").read_text()
    assert "metadata_version" in (site / "reference/json.html").read_text()


def test_tables_and_code_are_rendered_correctly_on_site(site: Path) -> None:
    refusals = (site / "reference/refusals.html").read_text()
    assert '<code><span class="whole">--new-partitions</span> earliest|latest</code>' in refusals
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r"<code>[^<]*\\\|", text), page
        assert "<p>Held by" not in text, page
    tutorial = (site / "tutorial.html").read_text()
    assert re.search(r'<span class="go row">TOPIC +PARTITION', tutorial)
    findings = (site / "reference/findings.html").read_text()
    assert '<code><span class="whole">another-source-kind</span></code>' in findings


def test_help_text_fits_page_width(site: Path) -> None:
    commands = (site / "reference/commands.html").read_text()
    boxes = re.findall(r"<pre.*?</pre>", commands, re.S)
    lines = unescape(re.sub(r"<[^>]+>", "", "\n".join(boxes))).splitlines()
    assert any("Usage: migrate" in line for line in lines)
    # Examples may be longer, because the page wraps them.
    assert max(len(line) for line in lines if not line.startswith("  $ ")) <= _ROOM


@pytest.mark.parametrize("words", ["rollback", "undo", "back"])
def test_search_works_from_local_files(site: Path, words: str) -> None:
    """The search must work without a web worker, which a page opened from disk cannot start.

    The page about rollback must be the first result.
    """
    try:
        with chromium() as browser:
            browser.get((site / "index.html").as_uri())
            found = WebDriverWait(browser, _SEARCH_SECONDS).until(lambda _: _search(browser, words))
            assert "how-to/going-back.html" in found[0], found
    except NoChromium as reason:
        pytest.skip(str(reason))


def _search(browser: Chrome, words: str) -> list[str]:
    """Type words into the search field, and return the addresses of the current results."""
    field = "document.querySelector('.md-search__input')"
    browser.execute_script(f"{field}.focus(); {field}.value = arguments[0]", words)
    browser.execute_script(f"{field}.dispatchEvent(new Event('keyup'))")
    results = "document.querySelectorAll('.md-search-result__link')"
    addresses = browser.execute_script(f"return [...{results}].map(link => link.href)")
    return [str(address) for address in addresses]


def test_broken_links_and_unlisted_pages_fail_build(tmp_path: Path) -> None:
    """The test builds a project of two pages with the same hooks and settings."""
    pages = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples")
    for name in ("mkdocs.yml", *pages):
        (tmp_path / name).symlink_to(ROOT / name)
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs/hooks", docs / "hooks")
    links = "[a](no-page.md) [b](tutorial.md#no-place) [c](../tests/no_test.py) [d](tutorial.md)"
    (docs / "tutorial.md").write_text(f"# Links\n\n{links}\n")
    (docs / "outside.md").write_text("# A page that is not in nav\n")
    built = _build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    for name in ("no-page.md", "no-place", "no_test.py", "- outside.md"):
        assert name in built.stderr
