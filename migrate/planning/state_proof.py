"""The result of a comparison of Spark's state with Flink's."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.model.wording import counted


@dataclass(frozen=True, slots=True)
class StateProof:
    """The number of keys that agree, and of those that do not.

    All numbers count distinct keys; for windows, distinct pairs of a key and a window.

    Attributes:
        right: correct keys, which are in both states with the same values.
        wrong: keys in both states, with different values in at least one row.
        missing: keys only in Flink's state.
        unexpected: keys only in Spark's state; None if they were not looked for, as in the
            comparison of a sample.
        examples: messages about some keys that are not right.
    """

    right: int
    wrong: int
    missing: int
    unexpected: int | None
    examples: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        return not (self.wrong or self.missing or self.unexpected)

    def __str__(self) -> str:
        text = f"{counted(self.right, 'key')} right, {self.wrong} wrong, {self.missing} missing"
        if self.unexpected is None:
            return f"{text}; keys that Flink does not have were not looked for"
        return f"{text}, {self.unexpected} that Flink does not have"

    def problems(self) -> list[str]:
        return [f"Spark's state is not Flink's: {self}", *self.examples]
