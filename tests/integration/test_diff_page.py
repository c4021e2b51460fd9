"""Open the page of a diff in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from selenium.webdriver import Chrome

from migrate.model.cluster_snapshot import LogRange
from migrate.model.positions import PositionSet
from migrate.planning.diff import Diff, diff
from migrate.report.diff_page import diff_page
from tests.support.chromium import NoChromium, chromium
from tests.support.diff_example import example

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    try:
        with chromium() as running:
            yield running
    except NoChromium as reason:
        pytest.skip(str(reason))


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """Start an HTTP server, and record the requested paths."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Page:
    """The page as a reader sees it."""

    def __init__(self, browser: Chrome, path: Path, html: str) -> None:
        path.write_text(html, encoding="utf-8")
        self._browser = browser
        self.requests()  # discards the requests of the previous page
        self.console_messages()
        self.address = path.as_uri()
        browser.get(self.address)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the text of the cells in each visible row."""
        found = self._browser.execute_script(
            "return [...document.querySelectorAll('tbody tr')]"
            ".filter((row) => row.getClientRects().length > 0)"
            ".map((row) => [...row.cells].map((cell) => cell.textContent))"
        )
        return [tuple(row) for row in found]

    def column(self, number: int) -> list[str]:
        return [row[number] for row in self.rows()]

    def filter(self, text: str) -> None:
        box = self._browser.find_element("id", "filter")
        box.clear()
        box.send_keys(text)

    def click(self, selector: str) -> None:
        self._browser.find_element("css selector", selector).click()

    def count(self) -> str:
        return self._browser.find_element("id", "count").text

    def script(self, code: str) -> object:
        return self._browser.execute_script(code)

    def requests(self) -> list[str]:
        from tests.support.chromium import requests

        return requests(self._browser)

    def console_messages(self) -> list[str]:
        from tests.support.chromium import console_messages

        return console_messages(self._browser)


def html_of(compared: Diff) -> str:
    return diff_page(compared, datetime(2025, 11, 21, tzinfo=timezone.utc))


def test_diff_page_filters_and_sorts_rows(tmp_path: Path, browser: Chrome) -> None:
    page = Page(browser, tmp_path / "diff.html", html_of(example()))
    assert len(page.rows()) == 12
    page.filter("PAY")
    assert page.column(0) == ["payments"] * 4
    assert page.count() == "4 of 12 partitions"
    page.filter("orders ahead")
    assert page.column(1) == ["1", "10"]
    page.filter(" ")
    page.click("[data-relation='behind']")
    assert page.rows()[0][:5] == ("orders", "4", "90112", "81400", "-8712")
    assert page.count() == "1 of 12 partitions"
    page.click("[data-relation='behind']")
    assert page.count() == "12 of 12 partitions"

    partition = "th:nth-child(2) button"
    page.click(partition)
    assert page.column(1) == sorted(page.column(1), key=int)
    page.click(partition)
    assert page.column(1) == sorted(page.column(1), key=int, reverse=True)
    left = "th:nth-child(3) button"
    page.click(left)
    # 'earliest' is sorted by its resolved offset. Rows without an offset come last.
    assert page.column(2)[:3] == ["298", "312", "earliest = 1200"]
    assert sorted(page.column(2)[-2:]) == ["-", "latest"]
    page.click(left)
    assert page.column(2)[0] == "201877"
    assert sorted(page.column(2)[-2:]) == ["-", "latest"]
    page.click("th:nth-child(5) button")
    assert page.column(4)[:2] == ["-8712", "0"]
    assert page.console_messages() == []


def test_diff_page_follows_dark_color_scheme(tmp_path: Path, browser: Chrome) -> None:
    page = Page(browser, tmp_path / "diff.html", html_of(example()))
    colours = "const c = getComputedStyle(document.body); return [c.backgroundColor, c.color]"
    light = page.script(colours)
    wanted = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    dark = page.script(colours)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert light == ["rgb(255, 255, 255)", "rgb(27, 31, 39)"]
    assert dark == ["rgb(20, 23, 28)", "rgb(231, 234, 240)"]


def test_diff_page_in_narrow_window_shows_that_table_scrolls(
    tmp_path: Path, browser: Chrome
) -> None:
    size = browser.get_window_size()
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        page = Page(browser, tmp_path / "diff.html", html_of(example()))
        found = page.script(
            "const box = document.querySelector('.scroll'), page = document.documentElement;"
            "return [box.scrollWidth > box.clientWidth,"
            " getComputedStyle(box).backgroundImage, page.scrollWidth > page.clientWidth,"
            " box.tabIndex]"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.set_window_size(size["width"], size["height"])
    assert isinstance(found, list)
    scrolls, shade, overflows, focus = found
    assert scrolls and not overflows
    # Like a phone, this browser shows no scroll bars. Shades at the edges show the hidden part.
    assert shade.count("gradient") == 4 and focus == 0


def test_diff_page_sorts_offsets_beyond_double_precision_exactly(
    tmp_path: Path, browser: Chrome
) -> None:
    offsets = [2**63 - 1, 2**63 - 3, 2**63 - 2]
    left = PositionSet("left", {("t", partition): o for partition, o in enumerate(offsets)})
    page = Page(browser, tmp_path / "diff.html", html_of(diff(left, left, {})))
    page.click("th:nth-child(3) button")
    assert page.column(2) == [str(offset) for offset in sorted(offsets)]


def test_diff_page_scales_bars_to_log_of_each_partition(tmp_path: Path, browser: Chrome) -> None:
    left = PositionSet("left", {("t", 0): 25, ("t", 1): 5, ("t", 2): 7})
    right = PositionSet("right", {("t", 0): 75, ("t", 1): 5})
    logs = {"t": {0: LogRange(0, 100), 1: LogRange(10, 20)}}
    page = Page(browser, tmp_path / "diff.html", html_of(diff(left, right, logs)))
    boxes = page.script(
        "return [...document.querySelectorAll('svg')].map((svg) => Object.fromEntries("
        "[...svg.children].map((mark) => {const b = mark.getBBox();"
        " return [mark.getAttribute('class'), [b.x, b.width]]})))"
    )
    assert isinstance(boxes, list)
    first, second, third = boxes
    assert first["log"] == [6, 228]
    assert first["between"] == [pytest.approx(63), pytest.approx(114)]
    assert first["at-left"][0] + first["at-left"][1] / 2 == pytest.approx(63)
    assert first["at-right"][0] + first["at-right"][1] / 2 == pytest.approx(177)
    # A position below the log start is drawn outside of the log.
    assert second["at-left"][0] + second["at-left"][1] / 2 == pytest.approx(6)
    assert second["log"][0] > 60
    assert set(third) == {"at-left"}


def hostile_names(address: str) -> list[str]:
    return [
        "<script>window.hacked=1</script>",
        f"<img src={address}/img onerror=window.hacked=2>",
        f'"><svg onload="window.hacked=3"><image href="{address}/svg"/></svg>',
        f"' onmouseover='window.hacked=4' style='background:url({address}/css)",
        "</td></tr></table></script><script>window.hacked=5</script>",
        "$style ${script} $$ &lt;b&gt; {{7*7}}",
        f"<link rel=stylesheet href={address}/link><meta http-equiv=refresh content=0;{address}/m>",
        "‮evil\u2028\x00\x1b[2J",
    ]


def test_diff_page_shows_names_with_markup_as_text(
    tmp_path: Path, browser: Chrome, listener: tuple[str, list[str]]
) -> None:
    address, asked = listener
    names = hostile_names(address)
    left = PositionSet(names[0] + names[1], {(name, 0): 1 for name in names}, names[4])
    right = PositionSet(names[2] + names[3], {(name, 0): 2 for name in names}, names[6])
    logs = {name: {0: LogRange(0, 3)} for name in names}
    page = Page(browser, tmp_path / "diff.html", html_of(diff(left, right, logs)))
    # The control characters in the last name are escaped.
    assert set(names[:-1]) < set(page.column(0))
    assert "\\u202eevil\\u2028\\x00\\x1b[2J" in page.column(0)
    page.filter("hacked")
    page.click("th:first-child button")
    assert page.script("return window.hacked ?? null") is None
    assert page.script("return document.querySelectorAll('script').length") == 1
    assert (
        page.script(
            "return document.querySelectorAll('img, link, image, td *:not(svg, svg *)').length"
        )
        == 0
    )
    assert (
        page.script(
            "return document.querySelectorAll('[onload], [onerror], [onmouseover], [style]').length"
        )
        == 0
    )
    assert page.requests() == [page.address]
    assert asked == []


def test_content_security_policy_of_diff_page_blocks_injected_elements(
    tmp_path: Path, browser: Chrome, listener: tuple[str, list[str]]
) -> None:
    address, asked = listener
    planted = (
        "<script>window.hacked=1</script>"
        f"<img src={address}/img onerror=window.hacked=2><script src={address}/js></script>"
        f"<link rel=stylesheet href={address}/css><iframe src={address}/frame></iframe>"
    )
    html = html_of(example())
    harmful = html.replace("<main>", f"<main>{planted}")
    assert harmful != html
    page = Page(browser, tmp_path / "diff.html", harmful)
    assert page.script("return window.hacked ?? null") is None
    assert asked == []
    assert page.console_messages()
    # Without the policy, the browser loads and runs everything, so this test can fail.
    unguarded = re.sub("<meta http-equiv[^>]*>", "", harmful)
    page = Page(browser, tmp_path / "unguarded.html", unguarded)
    assert page.script("return window.hacked ?? null") is not None
    assert {"/img", "/js", "/css", "/frame"} <= set(asked)


def test_diff_page_handles_thousands_of_partitions(tmp_path: Path, browser: Chrome) -> None:
    places = [(f"topic-{number % 50}", number // 50) for number in range(5000)]
    left = PositionSet("left", {place: 1000 + n for n, place in enumerate(places)})
    right = PositionSet("right", {place: 1000 + n + n % 3 for n, place in enumerate(places)})
    logs: dict[str, dict[int, LogRange]] = {}
    for topic, partition in places:
        logs.setdefault(topic, {})[partition] = LogRange(500, 9000)
    page = Page(browser, tmp_path / "diff.html", html_of(diff(left, right, logs)))
    assert (tmp_path / "diff.html").stat().st_size < 5_000_000
    assert len(page.rows()) == 5000
    took = page.script(
        "const start = performance.now();"
        "document.querySelector('th:nth-child(3) button').click();"
        "document.body.getBoundingClientRect();"
        "return performance.now() - start"
    )
    assert isinstance(took, float | int) and took < 20_000  # ms, even next to a heavy test
    assert page.column(2) == [str(1000 + number) for number in range(5000)]
    page.filter("topic-7 ahead")
    ahead = sum(topic == "topic-7" and n % 3 > 0 for n, (topic, _) in enumerate(places))
    assert page.count() == f"{ahead} of 5000 partitions"
    assert 0 < ahead < 100
