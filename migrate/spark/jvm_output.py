"""Short messages from the output of Spark and its JVM, without stack traces."""

from __future__ import annotations

import re

_LAST_LINES = 4
_NOISE = ("at ", "WARNING:", "Using Spark's default log4j")
# What py4j or Java prints before the name of an exception.
_JAVA_PREFIX = re.compile(r"^\s*(: |Caused by: )?")
_CAUSE = re.compile(r"(\w+\.)*\w+(Error|Exception)\b")


def summarize_failure(message: str) -> str:
    """Return a message's first line, and the last later line that begins with an exception."""
    lines = [_JAVA_PREFIX.sub("", line).rstrip() for line in message.splitlines() if line.strip()]
    causes = [line for line in lines[1:] if _CAUSE.match(line)]
    return "; ".join([*lines[:1], *causes[-1:]]) or "no reason given"


def last_lines(output: str) -> str:
    """Return the last lines of the output of a JVM, without warnings and stack traces."""
    lines = [line.strip() for line in output.splitlines()]
    kept = [line for line in lines if line and " WARN " not in line and not line.startswith(_NOISE)]
    return "; ".join(kept[-_LAST_LINES:]) or "no reason given"
