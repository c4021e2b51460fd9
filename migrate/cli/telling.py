"""What the calls tell on the way, shown on stderr; how much of it is up to ``-v`` and ``-q``."""

from __future__ import annotations

import logging

from migrate.api.telling import log
from migrate.cli import streams
from migrate.wording import visible


class _Stderr(logging.Handler):
    """Lines as they come; whatever they quote moves no cursor."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= streams.loudness:
            prefix = "warning: " if record.levelno == logging.WARNING else ""
            streams.say(prefix + visible(record.getMessage()))


log.addHandler(_Stderr())
log.setLevel(logging.DEBUG)


def tell(line: str) -> None:
    """Talk of the command line itself, no louder than that of the calls."""
    log.info(line)
