"""What the calls tell on the way, shown on stderr; how much of it is up to ``-v`` and ``-q``."""

from __future__ import annotations

import logging

from migrate.cli import streams
from migrate.log import log
from migrate.wording import visible


class _Stderr(logging.Handler):
    """Lines as they come; whatever they quote moves no cursor."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= streams.loudness:
            prefix = "warning: " if record.levelno == logging.WARNING else ""
            streams.say(prefix + visible(record.getMessage()))


class _OfOthers(logging.Handler):
    """What storage libraries warn of, once each and without their tracebacks: only with ``-v``.

    The one line that matters is told by the error that ends the command. Without any handler
    Python would print all of theirs by itself.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if streams.loudness > streams.VERBOSE or record.name.partition(".")[0] == log.name:
            return
        from migrate.storage.files import without_secrets

        for line in record.getMessage().splitlines():
            told = f"{record.name}: {visible(without_secrets(line.strip()))}"
            if told not in self._told:
                self._told.add(told)
                streams.say(told)


log.addHandler(_Stderr())
log.setLevel(logging.DEBUG)
logging.getLogger().addHandler(_OfOthers())


def tell(line: str) -> None:
    """Talk of the command line itself, no louder than that of the calls."""
    log.info(line)
