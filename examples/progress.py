"""What is going on, told while it lasts: no silence of more than some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager

from rich.console import Console

from tests.support.jars import fetch, read_lock

# For how long a step is silent where no terminal can show that it goes on.
_SECONDS = 10
_DOWNLOADS = 8

console = Console(highlight=False)


class Step:
    """A step that goes on; its ``detail`` is shown beside its name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = self._told = time.monotonic()
        self.detail = ""

    @property
    def seconds(self) -> int:
        return round(time.monotonic() - self._began)

    def say(self, line: str, style: str | None = None) -> None:
        """A line of its own, while it goes on."""
        self._told = time.monotonic()
        console.print(line, style=style, markup=False, soft_wrap=True)

    def tell_now_and_then(self, ended: threading.Event) -> None:
        """Say that it goes on wherever nothing else was said for a while."""
        while not ended.wait(1):
            if time.monotonic() - self._told >= _SECONDS:
                self.say(f"    ... {self.seconds} s {self.detail}".rstrip())

    def __rich__(self) -> str:
        detail = f"{self.detail}, " if self.detail else ""
        return f"{self._name} ... {detail}{self.seconds} s"


@contextmanager
def step(name: str) -> Iterator[Step]:
    """Tell of something that takes its time: a clock on a terminal, else a line now and then."""
    going = Step(name)
    if console.is_terminal:
        with console.status(going):
            yield going
        going.say(f"{name} ({going.seconds} s)")
        return
    going.say(f"{name} ...")
    ended = threading.Event()
    teller = threading.Thread(target=going.tell_now_and_then, args=[ended], daemon=True)
    teller.start()
    try:
        yield going
    finally:
        ended.set()
        teller.join()


def fetch_jars(sets: Sequence[str], megabytes: int) -> None:
    """Fetch those of the locked jars that are not there yet.

    Args:
        megabytes: how large all of them are together.
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
    """Wait for it, telling how long.

    Raises:
        TimeoutError: it took longer than ``patience`` seconds; with the ``log``.
    """
    deadline = time.monotonic() + patience
    with step(what):
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not after {patience:.0f} s\n{log()}")
            time.sleep(0.2)
