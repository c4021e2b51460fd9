"""What is told on the way, to the logger ``migrate``: the command line shows it on stderr."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("migrate")
# A library is silent unless asked: without this, Python would print warnings by itself.
log.addHandler(logging.NullHandler())


# The attribute of records about what takes time: "begin" or "end".
STAGE = "stage"


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Tell, to those who want to know all of it, what is being done, and how long it took.

    The records bear ``STAGE``, so that what takes long can be shown while it is done.

    Args:
        what: as "reading chk-7".
    """
    log.debug(what, extra={STAGE: "begin"})
    begun = time.monotonic()
    try:
        yield
    finally:
        log.debug(f"{what}: {time.monotonic() - begun:.2f} s", extra={STAGE: "end"})
