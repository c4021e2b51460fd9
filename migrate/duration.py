"""Lengths of time, as people write them: ``10s``, ``500ms``, ``5m``, ``1h``."""

from __future__ import annotations

import re

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(text: str) -> float:
    """In seconds; a number without a unit is one of seconds.

    Raises:
        ValueError: it is no length of time, or none at all.
    """
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found is not None else 0.0
    if not seconds:
        raise ValueError(f"{text!r}: not a length of time, such as 10s, 500ms, 5m or 1h")
    return seconds
