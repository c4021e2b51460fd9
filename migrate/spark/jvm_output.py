"""What Spark and its JVM print, without stack traces and secrets."""

from __future__ import annotations

import re

_LAST_LINES = 4
_NOISE = ("at ", "WARNING:", "Using Spark's default log4j")
# Before the name of an exception.
_JAVA_PREFIX = re.compile(r"^\s*(: |Caused by: )?")
_CAUSE = re.compile(r"(\w+\.)*\w+(Error|Exception)\b")


def summarize_failure(message: str) -> str:
    """Return the first line of a message, and the last cause: Java's, or a Python worker's."""
    lines = [_JAVA_PREFIX.sub("", line).rstrip() for line in message.splitlines() if line.strip()]
    causes = [line for line in lines[1:] if _CAUSE.match(line)]
    return "; ".join([*lines[:1], *causes[-1:]]) or "no reason given"


def last_lines(output: str) -> str:
    """Return the end of what a JVM, or its launcher, has printed."""
    lines = [line.strip() for line in output.splitlines()]
    kept = [line for line in lines if line and " WARN " not in line and not line.startswith(_NOISE)]
    return "; ".join(kept[-_LAST_LINES:]) or "no reason given"
