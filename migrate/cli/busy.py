"""A line on a terminal about what takes longer than two seconds; gone once that is done."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Whoever waits longer than this wants to know what for.
_AFTER_SECONDS = 2.0
_BETWEEN_SECONDS = 0.5
_START_OF_LINE = "\r\x1b[K"


class BusyLine:
    """What is being done now, of things that begin and end one within the other."""

    def __init__(self) -> None:
        self._doing: list[tuple[str, float]] = []
        self._lock = threading.RLock()
        self._drawn = False
        self._ended = threading.Event()
        self._disabled = False

    def begin(self, what: str) -> None:
        with self._lock:
            self._doing.append((what, time.monotonic()))
            if len(self._doing) == 1 and sys.stderr is not None and sys.stderr.isatty():
                self._ended = threading.Event()
                threading.Thread(target=self._watch, args=(self._ended,), daemon=True).start()

    def end(self) -> None:
        with self._lock:
            if self._doing:
                self._doing.pop()
            if not self._doing:
                self._ended.set()
            self._erase()

    @contextmanager
    def away(self) -> Iterator[None]:
        """While a line of something else is written."""
        with self._lock:
            self._erase()
            yield

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Where something else shows how far it is."""
        self._disabled = True
        try:
            yield
        finally:
            self._disabled = False

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(_BETWEEN_SECONDS):
            with self._lock:
                if self._doing and not ended.is_set():
                    self._draw(*self._doing[-1])

    def _draw(self, what: str, begun: float) -> None:
        seconds = time.monotonic() - begun
        if self._disabled or seconds < _AFTER_SECONDS:
            return
        self._write(f"{_START_OF_LINE}{_shortened(what)} … {seconds:.0f} s")
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            self._write(_START_OF_LINE)
            self._drawn = False

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal is gone: nothing to draw on
            self._disabled = True


def _shortened(what: str) -> str:
    """A line that wrapped could not be taken back."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        columns = 80
    room = columns - len(" … 1000 s")
    return what if len(what) <= room else f"{what[: max(room - 1, 0)]}…"
