"""A headless Chromium for the tests of HTML pages.

Chromium and its driver must be on the PATH. If one is missing, the tests install both with apt-get
when they run as root. If that is not possible, these tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

_PACKAGES = ("chromium", "chromium-driver")
_INSTALL_SECONDS = 300
_LOAD_SECONDS = 60


class NoChromium(RuntimeError):
    """Chromium or its driver is missing, and could not be installed."""


@contextmanager
def chromium(size: tuple[int, int] = (1280, 720)) -> Iterator[Chrome]:
    """Start a browser that records its requests and its console's messages.

    Raises:
        NoChromium: the browser or its driver is missing, and could not be installed.
    """
    browser, driver = find_chromium()
    options = ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless=new",
        "--no-sandbox",  # the sandbox needs a user other than root
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-background-networking",
        f"--window-size={size[0]},{size[1]}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    running = Chrome(options, ChromeService(driver))
    running.set_page_load_timeout(_LOAD_SECONDS)
    try:
        yield running
    finally:
        running.quit()


def requests(browser: Chrome) -> list[str]:
    """Return the URLs requested since the last call, pages included."""
    events = [json.loads(message)["message"] for message in _log(browser, "performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


def console_messages(browser: Chrome) -> list[str]:
    """Return the console's messages since the last call, such as errors and policy violations."""
    return _log(browser, "browser")


def _log(browser: Chrome, kind: str) -> list[str]:
    entries = browser.get_log(kind)  # type: ignore[no-untyped-call]  # no types in Selenium
    return [entry["message"] for entry in entries]


@cache
def find_chromium() -> tuple[str, str]:
    """Return the paths of the browser and its driver, and install them if one is missing.

    Raises:
        NoChromium: the browser or its driver is missing, and could not be installed.
    """
    paths = _on_the_path()
    if paths is None and os.geteuid() == 0 and (apt := shutil.which("apt-get")) is not None:
        install = [apt, "install", "-y", "-q", "--no-install-recommends", *_PACKAGES]
        # An update of the package lists takes time, so it comes only after a failed installation.
        _ = _run(install) or (_run([apt, "update", "-q"]) and _run(install))
        paths = _on_the_path()
    if paths is None:
        raise NoChromium(f"no Chromium with its driver (Debian: {' '.join(_PACKAGES)})")
    return paths


def _on_the_path() -> tuple[str, str] | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((path for name in names if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser is not None and driver is not None else None


def _run(command: list[str]) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, capture_output=True, env=environment, timeout=_INSTALL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def screenshot(page: Path, image: Path, size: tuple[int, int]) -> None:
    """Open a page, and save a screenshot of it as ``image``."""
    with chromium(size) as browser:
        browser.get(page.as_uri())
        browser.save_screenshot(str(image))
