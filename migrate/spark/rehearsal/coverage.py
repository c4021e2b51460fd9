"""How much of a rehearsal was compared, and what that says about the query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate.model.warning import WarningText
from migrate.model.wording import counted


class NotCompared(NamedTuple):
    """Something that was not compared.

    Attributes:
        number: the number of keys (of windows, or of rows of a query without state); None if they
            cannot be counted.
        reason: what they are, and why they were not compared.
    """

    number: int | None
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much was compared.

    Attributes:
        compared: the number of keys that were compared, right or not.
        not_compared: what was not compared.
        least: the share of the keys that must be compared, from 0 to 1.
    """

    compared: int
    not_compared: tuple[NotCompared, ...]
    least: float

    @property
    def total(self) -> int:
        """The number of keys that can be counted."""
        return self.compared + sum(part.number or 0 for part in self.not_compared)

    @property
    def is_enough(self) -> bool:
        """Whether something was compared, and at least the share that the user requires."""
        return self.compared > 0 and self.compared >= self.least * self.total

    def lines(self) -> Iterator[str]:
        share = f" ({self.compared / self.total:.1%})" if self.total else ""
        text = f"compared: {self.compared} of {counted(self.total, 'key')}{share}"
        if not self.is_enough:
            text += f", less than min_compared, {self.least:.1%}: the query may be right or wrong"
        yield text
        yield from (f"not compared: {part}" for part in self.not_compared)


def verdict(
    are_right: Sequence[bool], coverage: Coverage, undetermined: Sequence[str]
) -> bool | None:
    """Return whether a query is right.

    Args:
        are_right: whether each comparison found no difference.
        coverage: how much was compared.
        undetermined: what cannot be determined although it was looked at.

    Returns:
        False if a comparison found a difference, None if that cannot be determined.
    """
    if not all(are_right):
        return False
    return True if coverage.is_enough and not undetermined else None


@dataclass(frozen=True, slots=True)
class Notes:
    """What is known about a comparison besides its proof.

    Attributes:
        warnings: what the user must know.
        not_compared: what was not compared.
        undetermined: what cannot be determined. The rehearsal then does not say that the query is
            right.
    """

    warnings: list[WarningText] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)
    undetermined: list[str] = field(default_factory=list)
