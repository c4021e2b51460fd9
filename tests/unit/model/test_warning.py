"""Record the warnings of a ``with`` block."""

from __future__ import annotations

from threading import Thread

from migrate.model.message import Message, warning
from migrate.model.warning import record_warnings, warn


def test_warnings_from_other_threads_are_not_recorded() -> None:
    """Regression: Two threads that called ``prime`` got each other's warnings."""
    with record_warnings() as outer:
        warn(_warning("first"))
        with record_warnings() as inner:
            warn(_warning("second"))
        thread = Thread(target=lambda: warn(_warning("other")))
        thread.start()
        thread.join()
    warn(_warning("last"))
    assert outer == ["first [not-checked]", "second [not-checked]"]
    assert inner == ["second [not-checked]"]


def _warning(text: str) -> Message:
    return warning("not-checked", text)()
