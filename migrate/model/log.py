"""The logger ``migrate``. The command line shows its records on stderr."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("migrate")
# Without a handler on this logger, Python would print warnings to stderr.
log.addHandler(logging.NullHandler())

# The attribute of a log record about a stage of work. Its values are "begin" and "end".
STAGE = "stage"
# The attribute of a warning's log record: True if the warning is shown each time, False if equal
# warnings are shown once.
REPEATED = "repeated"


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Log the start and the end of a stage such as "reading chk-7", and its duration.

    The log records have the attribute ``STAGE``, so the command line can show a long stage while it
    runs.
    """
    log.debug(what, extra={STAGE: "begin"})
    begun = time.monotonic()
    try:
        yield
    finally:
        log.debug(f"{what}: {time.monotonic() - begun:.2f} s", extra={STAGE: "end"})
