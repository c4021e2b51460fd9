"""The comparison of a Spark query's state with the Flink job's state that it was primed with."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.model.wording import counted


@dataclass(frozen=True, slots=True)
class StateProof:
    """A comparison of Spark's state with Flink's.

    All numbers count distinct keys; for windows, distinct pairs of a key and a window.

    Attributes:
        right: in both states, with the same values.
        wrong: in both states, with different values; or in several rows of Flink's state, not all
            of which have Spark's values.
        missing: in Flink's state alone.
        unexpected: in Spark's state alone; None if they were not looked for, as in the comparison
            of a sample.
        examples: some keys that are not right, in words.
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
