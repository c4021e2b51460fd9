"""The logger ``migrate``, which the command line shows on stderr."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("migrate")
# Without a handler, Python would print warnings by itself.
log.addHandler(logging.NullHandler())

# The attribute of records about a stage of work: "begin" or "end".
STAGE = "stage"


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Log the begin and the end of a stage such as "reading chk-7", with its duration.

    The records have the attribute ``STAGE``, so that a long stage can be shown while it lasts.
    """
    log.debug(what, extra={STAGE: "begin"})
    begun = time.monotonic()
    try:
        yield
    finally:
        log.debug(f"{what}: {time.monotonic() - begun:.2f} s", extra={STAGE: "end"})
