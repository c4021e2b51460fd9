"""What is told on the way, to the logger ``migrate``: the command line shows it on stderr."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("migrate")
# A library is silent unless asked: without this, Python would print warnings by itself.
log.addHandler(logging.NullHandler())


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Tell, to those who want to know all of it, how long something took."""
    begun = time.monotonic()
    try:
        yield
    finally:
        log.debug(f"{what}: {time.monotonic() - begun:.2f} s")
