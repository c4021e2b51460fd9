"""Findings about a checkpoint or another input, and the policy of each finding's code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from migrate.model.policies import Policies


class Severity(str, Enum):
    """The severity: a blocker stops a move; a warning says what a move may repeat or miss."""

    BLOCKER = "blocker"
    WARNING = "warning"
    NOTE = "note"


class CodePolicy(NamedTuple):
    """The effect that a finding with a certain code has on a move.

    Attributes:
        job_wide: whether the finding is about the whole job; a blocker then counts for every
            source.
        another_source: whether the finding is about a source that cannot be chosen. Such a finding
            is dropped if the user chooses sources by name.
        unread: whether the finding is about a Kafka source that cannot be read. If the checkpoint
            has no other source, the plan shows this finding, not the error "no Kafka source".
        by_partition: whether the plan reports the finding for each partition instead.
        undecided: whether a warning needs a choice by the user before the job can move.
        shown_for_groups: whether a move to a consumer group shows the finding at any severity.
        allowed: whether the user's policies allow the move despite the finding.
        way_out: what the user can do about a blocker.
    """

    job_wide: bool = False
    another_source: bool = False
    unread: bool = False
    by_partition: bool = False
    undecided: bool = False
    shown_for_groups: bool = False
    allowed: Callable[[Policies], bool] = lambda policies: False
    way_out: str = "if it is not to be moved, choose the others with --source"


class Code(str, Enum):
    """The code of a finding; ``explanations.md`` explains each."""

    ANOTHER_SOURCE_KIND = "another-source-kind", CodePolicy(another_source=True)
    COMMITTED_MARKER = "committed-marker", CodePolicy(by_partition=True, undecided=True)
    DAMAGED_SOURCE = "damaged-source", CodePolicy(another_source=True, unread=True)
    FILES_IN_PROGRESS = "files-in-progress", CodePolicy()
    FINISHED_OPERATORS = "finished-operators", CodePolicy()
    # Only a plan that is made from a consumer group has this finding.
    GROUP_READS = (
        "group-reads",
        CodePolicy(
            job_wide=True,
            allowed=lambda policies: policies.allow_ran_on,
            way_out="stop them, or add --allow-ran-on to repeat them",
        ),
    )
    HYBRID_SOURCE = "hybrid-source", CodePolicy()
    HYBRID_SOURCE_ELSEWHERE = "hybrid-source-elsewhere", CodePolicy()
    IN_FLIGHT_RECORDS = (
        "in-flight-records",
        CodePolicy(
            job_wide=True,
            allowed=lambda policies: policies.allow_in_flight,
            way_out="or add --allow-in-flight to lose them",
        ),
    )
    INITIAL_DISCOVERY = "initial-discovery", CodePolicy()
    LATEST_MARKER = "latest-marker", CodePolicy(by_partition=True, undecided=True)
    LEGACY_CONSUMER = "legacy-consumer", CodePolicy(another_source=True, unread=True)
    NO_ENUMERATOR = "no-enumerator", CodePolicy()
    NOT_A_STOP = "not-a-stop", CodePolicy()
    NUMBERING_BEGAN_ANEW = "numbering-began-anew", CodePolicy()
    # Only a Spark query has this finding: its output may be ahead of its positions.
    OUTPUT_BEYOND = "output-beyond", CodePolicy()
    PENDING_TRANSACTIONS = "pending-transactions", CodePolicy(undecided=True)
    QUERY_STATE = "query-state", CodePolicy()
    RAN_ON = (
        "ran-on",
        CodePolicy(
            job_wide=True,
            allowed=lambda policies: policies.allow_ran_on,
            way_out="move from the newest one, or add --allow-ran-on to repeat them",
        ),
    )
    RETAINED_CLUSTERS = "retained-clusters", CodePolicy()
    SINK_MEMORY = "sink-memory", CodePolicy(shown_for_groups=True)
    SINK_STATE = "sink-state", CodePolicy()
    STALE_POSITIONS = (
        "stale-positions",
        CodePolicy(
            allowed=lambda policies: policies.allow_ran_on,
            way_out="move from one of those, or add --allow-ran-on to repeat them",
        ),
    )
    STATE_NOT_MOVED = "state-not-moved", CodePolicy()
    UNCOMMITTED_BATCH = "uncommitted-batch", CodePolicy()
    UNDISCOVERED_TOPICS = "undiscovered-topics", CodePolicy()
    UNRESOLVED_POSITIONS = "unresolved-positions", CodePolicy(by_partition=True)
    WRITTEN_BY = "written-by", CodePolicy()

    policy: CodePolicy

    def __new__(cls, code: str, policy: CodePolicy) -> Code:
        member = str.__new__(cls, code)
        member._value_ = code
        member.policy = policy
        return member

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about an input that the user must know before a move."""

    code: Code
    severity: Severity
    operator_id: str | None
    message: str

    @property
    def text(self) -> str:
        """The message, with the operator's id if the finding is about an operator."""
        operator = "" if self.operator_id is None else f"operator {self.operator_id}: "
        return operator + self.message

    @property
    def is_undecided(self) -> bool:
        """Whether the finding needs a choice by the user before the job can move."""
        return self.severity is Severity.WARNING and self.code.policy.undecided


def blocker(code: Code, message: str, operator_id: str | None = None) -> Finding:
    """Return a finding that stops a move."""
    return Finding(code, Severity.BLOCKER, operator_id, message)


def warning(code: Code, message: str, operator_id: str | None = None) -> Finding:
    """Return a finding about records that a move may repeat or miss."""
    return Finding(code, Severity.WARNING, operator_id, message)


def note(code: Code, message: str, operator_id: str | None = None) -> Finding:
    """Return a finding that has no effect on a move."""
    return Finding(code, Severity.NOTE, operator_id, message)
