"""The ``migrate`` logger (shown on stderr by the command line), and the stages of long tasks."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

log = logging.getLogger("migrate")
# Without a handler on this logger, Python would print warnings to stderr.
log.addHandler(logging.NullHandler())

# A log record whose attribute of this name is True is shown each time. Otherwise, equal warnings
# and details are shown once.
REPEATED = "repeated"


class StageWatcher(Protocol):
    """An object that shows how stages progress; see ``watchers``."""

    def begin(self, what: str) -> None: ...
    def seen(self, text: str) -> None: ...
    def end(self) -> None: ...


# Each stage reports its start, its observations, and its end to these watchers.
watchers: list[StageWatcher] = []


class Stage:
    """A running stage of work."""

    def __init__(self) -> None:
        self._seen = ""

    def seen(self, text: str) -> None:
        """Report the stage's latest observation, such as "batch 3 has started", if it is new."""
        if text != self._seen:
            self._seen = text
            for watcher in watchers:
                watcher.seen(text)


@contextmanager
def timed(what: str) -> Iterator[Stage]:
    """Report a stage such as "reading chk-7" to the ``watchers``, and log its duration."""
    watching = tuple(watchers)
    for watcher in watching:
        watcher.begin(what)
    started = time.monotonic()
    try:
        yield Stage()
    finally:
        for watcher in watching:
            watcher.end()
        log.debug(f"{what}: {time.monotonic() - started:.2f} s", extra={REPEATED: True})
