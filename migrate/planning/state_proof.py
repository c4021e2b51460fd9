"""How the state of a Spark query compares with that of the Flink job that it was primed with."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.model.wording import counted


@dataclass(frozen=True, slots=True)
class StateProof:
    """Spark's state beside Flink's, in distinct keys (of windows: a key and its window).

    Attributes:
        right: alike in both.
        wrong: in both, with other values; or several times in Flink's, not always with Spark's.
        missing: in Flink's alone.
        unexpected: in Spark's alone; None where nobody looked for them, as with a sample.
        examples: some that are not right, in words.
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
