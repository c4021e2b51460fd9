"""Warnings: one sentence, and a code that ``migrate explain`` explains.

The sentence comes from ``warning_catalog``, from an extension's catalog, or from a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from migrate.model.log import REPEATED, log
from migrate.model.message import Message


class WarningText(str):
    """The text of a warning, with its code in brackets after the sentence.

    Attributes:
        message: the sentence, with the code and the facts.
    """

    message: Message

    def __new__(cls, message: Message) -> WarningText:
        text = super().__new__(cls, f"{message} [{message.code}]")
        text.message = message
        return text

    def __reduce__(self) -> Any:
        return WarningText, (self.message,)

    @property
    def code(self) -> str:
        return self.message.code

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.message.facts


def warn(message: Message, *, repeated: bool = False) -> None:
    """Log a warning; the command line shows equal warnings only once, unless ``repeated``."""
    text = WarningText(message)
    for record in _records.get():
        record.append(text)
    log.warning(text, extra={REPEATED: repeated})


# The lists of the active ``record_warnings`` blocks. Each thread has its own.
_records: ContextVar[tuple[list[WarningText], ...]] = ContextVar("records", default=())


@contextmanager
def record_warnings() -> Iterator[list[WarningText]]:
    """Yield a list that collects the warnings logged within the block.

    Library calls that print their result use this context manager, because a plain script does not
    show the log.
    """
    record: list[WarningText] = []
    token = _records.set((*_records.get(), record))
    try:
        yield record
    finally:
        _records.reset(token)
