"""Show the progress of long steps, so that only seconds pass without output."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager

from rich.console import Console

from tests.support.jars import fetch, read_lock

# The longest time without output from a step if there is no terminal.
_SECONDS = 10
_DOWNLOADS = 8

console = Console(highlight=False)


class Step:
    """A running step; its ``detail`` is shown next to its name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = self._printed = time.monotonic()
        self.detail = ""

    @property
    def seconds(self) -> int:
        return round(time.monotonic() - self._began)

    def say(self, line: str, style: str | None = None) -> None:
        """Print a line while the step runs."""
        self._printed = time.monotonic()
        console.print(line, style=style, markup=False, soft_wrap=True)

    def print_time(self, ended: threading.Event) -> None:
        """Print the elapsed time whenever the step has had no output for ``_SECONDS``."""
        while not ended.wait(1):
            if time.monotonic() - self._printed >= _SECONDS:
                self.say(f"    ... {self.seconds} s {self.detail}".rstrip())

    def __rich__(self) -> str:
        detail = f"{self.detail}, " if self.detail else ""
        return f"{self._name} ... {detail}{self.seconds} s"


@contextmanager
def step(name: str) -> Iterator[Step]:
    """Show that a step runs, with a clock on a terminal, or else with a line now and then."""
    going = Step(name)
    if console.is_terminal:
        with console.status(going):
            yield going
        going.say(f"{name} ({going.seconds} s)")
        return
    going.say(f"{name} ...")
    ended = threading.Event()
    printer = threading.Thread(target=going.print_time, args=[ended], daemon=True)
    printer.start()
    try:
        yield going
    finally:
        ended.set()
        printer.join()


def fetch_jars(sets: Sequence[str], megabytes: int) -> None:
    """Fetch the locked jars that are missing.

    Args:
        megabytes: the size of all jars.
    """
    locked = read_lock()
    jars = {jar for name in sets for jar in locked[name]}
    missing = [jar for jar in jars if not jar.path.exists()]
    if not missing:
        return
    with (
        step(f"Fetching {len(missing)} of {len(jars)} jars (all: {megabytes} MB)") as going,
        ThreadPoolExecutor(_DOWNLOADS) as pool,
    ):
        for count, done in enumerate(as_completed([pool.submit(fetch, jar) for jar in missing]), 1):
            done.result()
            going.detail = f"{count} of {len(missing)}"


def wait_for(
    what: str, done: Callable[[], object], patience: float, log: Callable[[], str]
) -> None:
    """Wait until ``done`` returns something true, and show the elapsed time.

    Raises:
        TimeoutError: it took longer than ``patience`` seconds; the message has the ``log``.
    """
    deadline = time.monotonic() + patience
    with step(what):
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not after {patience:.0f} s\n{log()}")
            time.sleep(0.2)
