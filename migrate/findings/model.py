"""A finding, and how it bears on a move."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# Findings about sources that are Kafka's and not read: they must not go unnoticed beside others.
UNREAD_SOURCES = frozenset({"damaged-source", "legacy-consumer"})


class Severity(str, Enum):
    """How a finding bears on a move: a blocker stops it, a warning may repeat or miss records."""

    BLOCKER = "blocker"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a checkpoint that whoever moves from it must know."""

    code: str
    severity: Severity
    operator_id: str | None
    message: str
