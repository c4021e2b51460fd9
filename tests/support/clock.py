"""Replace `time.sleep` in a test without changing the sleep of other threads.

PySpark's client has threads of its own that sleep in a loop (py4j.clientserver.FinalizerWorker @
0.10.9.9). They live as long as the test process. If a test replaces `time.sleep` for all threads,
it also counts the sleeps of these threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest


def replace_sleep(monkeypatch: pytest.MonkeyPatch, sleep: Callable[[float], object]) -> None:
    """In the calling thread, call `sleep` with the seconds instead of `time.sleep`."""
    caller, real = threading.get_ident(), time.sleep

    def replaced(seconds: float) -> None:
        if threading.get_ident() == caller:
            sleep(seconds)
        else:
            real(seconds)

    monkeypatch.setattr(time, "sleep", replaced)
