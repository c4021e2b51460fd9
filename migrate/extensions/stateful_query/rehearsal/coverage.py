"""Measure the coverage of a rehearsal, and derive a verdict on the query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate.model.warning import WarningText
from migrate.model.wording import counted


class NotCompared(NamedTuple):
    """A group of keys that were not compared.

    Attributes:
        number: the number of keys, of windows, or (for a query without state) of rows; None if the
            number cannot be determined.
        reason: a description of the keys, and the reason that they were not compared.
    """

    number: int | None
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of a comparison.

    Attributes:
        compared: the number of keys that were compared, matching or not.
        not_compared: the keys that were not compared.
        least: the fraction of the keys that must be compared, from 0 to 1.
        changed: the number of compared keys that Flink added or whose value Flink changed between
            the checkpoints; None for a query without state. Only these keys show whether the query
            processes records correctly.
    """

    compared: int
    not_compared: tuple[NotCompared, ...]
    least: float
    changed: int | None = None

    @property
    def total(self) -> int:
        """Return the total number of keys, excluding groups of unknown size."""
        return self.compared + sum(part.number or 0 for part in self.not_compared)

    @property
    def is_enough(self) -> bool:
        """Return whether enough keys were compared: at least one key, and at least ``least``."""
        return self.compared > 0 and self.compared >= self.least * self.total

    def lines(self) -> Iterator[str]:
        share = f" ({self.compared / self.total:.1%})" if self.total else ""
        text = f"compared: {self.compared} of {counted(self.total, 'key')}{share}"
        if not self.is_enough:
            text += (
                f", less than min_compared ({self.least:.1%}); the rehearsal has no verdict on "
                "the query"
            )
        yield text
        if self.changed is not None:
            yield f"changed in Flink between the checkpoints: {counted(self.changed, 'key')}"
        yield from (f"not compared: {part}" for part in self.not_compared)


def verdict(
    are_right: Sequence[bool], coverage: Coverage, undetermined: Sequence[str]
) -> bool | None:
    """Return whether a query is correct.

    Args:
        are_right: the results of the comparisons; True if there is no difference.
        coverage: the coverage of the comparisons.
        undetermined: the checks without a result.

    Returns:
        False if a comparison found a difference. Otherwise, True if enough keys were compared and
        every check has a result, and None if not.
    """
    if not all(are_right):
        return False
    return True if coverage.is_enough and not undetermined else None


@dataclass(slots=True)
class Notes:
    """The notes on a comparison: warnings, and everything that was not compared or determined.

    Attributes:
        warnings: the warnings for the user.
        not_compared: the keys that were not compared.
        undetermined: the checks without a result. If any check has no result, the rehearsal does
            not report the query as correct.
        changed: see ``Coverage``.
    """

    warnings: list[WarningText] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)
    undetermined: list[str] = field(default_factory=list)
    changed: int | None = None
