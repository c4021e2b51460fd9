"""The decisions of a cut-over: an action, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from migrate.cutover.facts import Unavailable
from migrate.model.errors import MigrateError, Refused


class Action(Enum):
    """An action of a run. ``steps.ACTIONS`` has the function of each action."""

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
        """Whether the action changes something outside the record, or waits for such a change."""
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
    """A step failed after the stop of the job had begun. Completed steps are not undone.

    Attributes:
        reasons: why the step failed, one line for each reason.
        details: lines for the terminal only, as they may hold secrets.
    """

    def __init__(self, *reasons: str, details: tuple[str, ...] = ()) -> None:
        super().__init__("; ".join(reasons))
        self.reasons, self.details = reasons, details


@dataclass(frozen=True, slots=True)
class Done:
    """The step has nothing to do; ``reason`` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Do:
    """The step has this action to do."""

    action: Action


@dataclass(frozen=True, slots=True)
class Halt:
    """The cut-over cannot continue.

    Attributes:
        reasons: why the cut-over cannot continue, and what the user can do.
        is_refusal: True if the user must change something first, False if a step has failed.
    """

    reasons: tuple[str, ...]
    is_refusal: bool = False

    @property
    def error(self) -> Exception:
        """The error that a run raises."""
        return Refused(self.reasons) if self.is_refusal else CutOverStopped(*self.reasons)


@dataclass(frozen=True, slots=True)
class Fail:
    """A fact that the step needs could not be read; ``error`` says why."""

    error: Exception


Decision = Done | Do | Halt | Fail


def halt(*reasons: str) -> Halt:
    """Return a ``Halt`` for a step that has failed."""
    return Halt(reasons)


def refuse(reason: str) -> Halt:
    """Return a ``Halt`` that is a refusal with one reason."""
    return Halt((reason,), is_refusal=True)


def missing(fact: object) -> Fail:
    """Return a ``Fail`` for a fact that could not be read."""
    assert isinstance(fact, Unavailable)  # otherwise ``Step.needs`` lacks this fact
    return Fail(fact.error)
