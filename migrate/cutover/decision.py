"""What can be decided in a cut-over: an action, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from migrate.cutover.facts import Unavailable


class Action(Enum):
    """What a run can do; ``act`` has a function for each."""

    CHECK = auto()
    STOP = auto()
    AWAIT_STOP = auto()
    KEEP_SAVEPOINT = auto()
    KEEP_CLEAN = auto()
    PLAN = auto()
    WRITE = auto()
    ADOPT = auto()
    KEEP_PRIMED = auto()
    KEEP_WRITTEN = auto()
    VERIFY = auto()
    START = auto()
    AWAIT_BEGIN = auto()
    VERIFY_AGAIN = auto()

    @property
    def changes(self) -> bool:
        """Whether it changes something outside of the record, or waits for that."""
        return self in _CHANGES


_CHANGES = frozenset(
    {
        Action.STOP,
        Action.AWAIT_STOP,
        Action.WRITE,
        Action.ADOPT,
        Action.START,
        Action.AWAIT_BEGIN,
    }
)


@dataclass(frozen=True, slots=True)
class Done:
    """There is nothing to do."""

    reason: str


@dataclass(frozen=True, slots=True)
class Do:
    """An action is to be done."""

    action: Action


@dataclass(frozen=True, slots=True)
class Halt:
    """The cut-over cannot go on.

    Attributes:
        reasons: why, and the way out.
        is_refusal: whether the world, or the spec, must be changed first; else a step has failed.
    """

    reasons: tuple[str, ...]
    is_refusal: bool = False


@dataclass(frozen=True, slots=True)
class Fail:
    """A fact is missing that the step cannot do without."""

    error: Exception


Decision = Done | Do | Halt | Fail


def refuse(reason: str) -> Halt:
    """Return a refusal with one reason."""
    return Halt((reason,), is_refusal=True)


def missing(fact: object) -> Fail:
    """Return the failure for a fact that could not be read."""
    assert isinstance(fact, Unavailable)  # else the step does not name what it needs
    return Fail(fact.error)
