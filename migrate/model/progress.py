"""Progress messages about long stages, for outputs on which lines cannot be redrawn.

Examples of such outputs are a log file, a cron job's output, and a notebook. A stage is a block of
code in a ``with timed(...)`` statement.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from migrate.model.log import watchers
from migrate.model.wording import printable

# Seconds between two lines, and before the first line.
INTERVAL = 10.0


class RunningStage:
    """A stage that has not ended yet.

    Attributes:
        started: the start time, by ``time.monotonic``.
        seen: the last observation of the stage; can be empty.
    """

    def __init__(self, what: str) -> None:
        self.what, self.started, self.seen = what, time.monotonic(), ""

    def text(self) -> str:
        """Return the stage, its duration, and its last observation, in one line."""
        seconds = f"{time.monotonic() - self.started:.0f} s"
        return f"{self.what}: {seconds}{f'; {self.seen}' if self.seen else ''}"


class Ticker:
    """Calls a function at regular intervals while at least one stage is running.

    The interval between calls carries over from one stage to the next, so that a series of short
    stages is reported as often as one long stage.

    Args:
        interval: the number of seconds between calls.
        tick: the function to call with the most recently started stage. It runs in a thread of the
            ticker.
    """

    def __init__(self, interval: float, tick: Callable[[RunningStage], None]) -> None:
        self._interval, self._tick = interval, tick
        self._stages: list[RunningStage] = []
        # The time of the next call, and of the end of the last stage, by ``time.monotonic``.
        self._due = self._idle_since = -math.inf
        # Reentrant, because ``tick`` may log.
        self.lock = threading.RLock()
        self._ended = threading.Event()

    def begin(self, what: str) -> None:
        with self.lock:
            self._stages.append(RunningStage(printable(what)))
            if len(self._stages) == 1:
                now = time.monotonic()
                if now - self._idle_since > self._interval:
                    self._due = now + self._interval
                self._ended = threading.Event()
                threading.Thread(target=self._run, args=(self._ended,), daemon=True).start()

    def seen(self, text: str) -> None:
        with self.lock:
            if self._stages:
                self._stages[-1].seen = printable(text)

    def end(self) -> None:
        with self.lock:
            if self._stages:
                self._stages.pop()
            if not self._stages:
                self._idle_since = time.monotonic()
                self._ended.set()

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(max(self._due - time.monotonic(), 0)):
            with self.lock:
                if self._stages and not ended.is_set():
                    self._due = time.monotonic() + self._interval
                    self._tick(self._stages[-1])


class ProgressLines(Ticker):
    """A watcher that writes a line every ten seconds during a stage.

    Args:
        write: the function that writes a line.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__(INTERVAL, lambda stage: write(f"    ... {stage.text()}"))


@contextmanager
def progress_lines() -> Iterator[None]:
    """Write progress lines to stderr within the block, unless the progress is already shown.

    Library functions that run for minutes use this context manager. The command line shows the
    progress itself.
    """
    if watchers:
        yield
        return
    lines = ProgressLines(lambda line: print(line, file=sys.stderr, flush=True))
    watchers.append(lines)
    try:
        yield
    finally:
        watchers.remove(lines)
