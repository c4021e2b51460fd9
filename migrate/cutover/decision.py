"""The decisions of a cut-over: an action, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from migrate.cutover.facts import Unavailable
from migrate.model.errors import MigrateError, Refused


class Action(Enum):
    """The actions of a run. ``steps`` has a function for each."""

    CHECK = auto()
    STOP = auto()
    AWAIT_STOP = auto()
    RECORD_SAVEPOINT = auto()
    RECORD_CLEAN_STOP = auto()
    PLAN = auto()
    WRITE = auto()
    ADOPT = auto()
    RECORD_PRIMED = auto()
    RECORD_WRITTEN = auto()
    VERIFY = auto()
    START = auto()
    AWAIT_FIRST_BATCH = auto()
    VERIFY_AGAIN = auto()

    @property
    def changes(self) -> bool:
        """Whether it changes something outside of the record, or waits for such a change."""
        return self in _CHANGES


_CHANGES = frozenset(
    {
        Action.STOP,
        Action.AWAIT_STOP,
        Action.WRITE,
        Action.ADOPT,
        Action.START,
        Action.AWAIT_FIRST_BATCH,
    }
)


class CutOverStopped(MigrateError):
    """A step failed after the stop of the job had begun. What was done stays done.

    Attributes:
        reasons: why, a line each.
        details: lines for the terminal alone, as they may hold secrets.
    """

    def __init__(self, *reasons: str, details: tuple[str, ...] = ()) -> None:
        super().__init__("; ".join(reasons))
        self.reasons, self.details = reasons, details


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing to do, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Do:
    """An action to do."""

    action: Action


@dataclass(frozen=True, slots=True)
class Halt:
    """A stop of the cut-over.

    Attributes:
        reasons: why, and the way out.
        is_refusal: whether the user must change something first. Otherwise a step has failed.
    """

    reasons: tuple[str, ...]
    is_refusal: bool = False

    @property
    def error(self) -> Exception:
        """The error that a run raises."""
        return Refused(self.reasons) if self.is_refusal else CutOverStopped(*self.reasons)


@dataclass(frozen=True, slots=True)
class Fail:
    """The error of a missing fact that the step needs."""

    error: Exception


Decision = Done | Do | Halt | Fail


def halt(*reasons: str) -> Halt:
    """Return the stop of a step that has failed."""
    return Halt(reasons)


def refuse(reason: str) -> Halt:
    """Return a refusal with one reason."""
    return Halt((reason,), is_refusal=True)


def missing(fact: object) -> Fail:
    """Return the failure for a fact that could not be read."""
    assert isinstance(fact, Unavailable)  # otherwise the step does not list what it needs
    return Fail(fact.error)
