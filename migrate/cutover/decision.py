"""The decision of a step: an action, or the reason why there is nothing to do.

If a cut-over cannot continue, the decision raises ``Refused`` or ``CutOverStopped``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from migrate.model.errors import MigrateError


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


# The actions that change something outside the record, or wait for such a change.
CHANGES = {
    Action.STOP,
    Action.AWAIT_STOP,
    Action.WRITE,
    Action.ADOPT,
    Action.START,
    Action.AWAIT_FIRST_BATCH,
}


@dataclass(frozen=True, slots=True)
class Done:
    """The reason why a step has nothing to do."""

    reason: str


Decision = Action | Done


class CutOverStopped(MigrateError):
    """The cut-over cannot continue. Completed steps are not undone.

    Attributes:
        reasons: why the step failed, one line for each reason.
        details: lines for the terminal only, as they may hold secrets.
    """

    def __init__(self, *reasons: str, details: tuple[str, ...] = ()) -> None:
        super().__init__("; ".join(reasons))
        self.reasons, self.details = reasons, details
