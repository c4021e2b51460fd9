"""The result of comparing the Spark state with the Flink state.

The comparison is by key. Flink's entries are also counted, because several entries may have become
one key. Their keys may be equal because of the user's expression, or because Spark treats the keys
as equal (-0.0 and 0.0). A state with such merged entries is incorrect, unless the user has allowed
merged entries.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrate.extensions.stateful_query.catalog import KEYS_MERGED, STATE_DIFFERS
from migrate.model.wording import counted


@dataclass(frozen=True, slots=True)
class StateProof:
    """How many keys agree, and how many differ, between the Spark state and the Flink state.

    All numbers count distinct keys; for windows, distinct pairs of a key and a window.

    Attributes:
        right: correct keys, with the same values in both states.
        wrong: keys in both states, with different values in at least one row.
        missing: keys that are only in the Flink state.
        unexpected: keys that are only in the Spark state; None if the comparison did not search for
            such keys, because it compared only a sample of Flink's keys.
        examples: messages about some of the wrong, missing, unexpected, or merged keys.
        entries: the number of Flink entries that were compared; None if the Flink side is not a
            state, or if the user has merged its entries.
        held: the number of entries in the Flink state, or None if unknown.
        merged: the number of Flink entries minus the number of their distinct keys. For example,
            three entries with one key count as 2.
        may_merge: True if the user has allowed merged entries.
        rounded: the number of correct keys whose floating-point sums differ, but at most by the
            rounding error.
        warnings: warnings for the user about the state, such as the number of expired entries.
    """

    right: int
    wrong: int
    missing: int
    unexpected: int | None
    examples: tuple[str, ...] = ()
    entries: int | None = None
    held: int | None = None
    merged: int = 0
    may_merge: bool = False
    rounded: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        is_merged = self.merged and not self.may_merge
        return not (self.wrong or self.missing or self.unexpected or is_merged)

    def __str__(self) -> str:
        text = (
            f"{counted(self.right, 'matching key')}, {self.wrong} different, {self.missing} missing"
        )
        if self.unexpected is None:
            text = f"{text}; keys that are only in Spark's state were not checked"
        else:
            text = f"{text}, {self.unexpected} not in Flink's state"
        if self.entries is not None:
            held = "" if self.held is None else f" of Flink's {self.held}"
            entries = counted(self.held or self.entries, "entry", "entries").split(" ")[1]
            text = f"{text}; {self.entries}{held} {entries} compared"
        if self.merged:
            text = f"{text}, {self.merged} of them merged into another entry's key"
        if self.rounded:
            text = (
                f"{text}; floating-point sums of {counted(self.rounded, 'key')} differ by at "
                "most the rounding error"
            )
        return text

    def problems(self) -> list[str]:
        """Return the reasons that the state is incorrect, followed by ``examples``."""
        problems: list[str] = [STATE_DIFFERS(proof=self)]
        if self.merged and not self.may_merge:
            problems.append(KEYS_MERGED(entries=self.merged))
        return [*problems, *self.examples]
