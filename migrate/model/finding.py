"""Findings about a checkpoint or another side, and a policy for each of their codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from migrate.model.policies import Policies


class Severity(str, Enum):
    """The severity of a finding: a blocker stops a move, a warning may repeat or miss records."""

    BLOCKER = "blocker"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class CodePolicy:
    """The effect of all findings of one code on a move.

    Attributes:
        job_wide: about the whole job: a blocker whichever source is chosen.
        another_source: about a source that cannot be chosen: dropped if other sources are named.
        unread: about a Kafka source that cannot be read: it blocks a plan without other sources.
        by_partition: the plan reports it again for each partition.
        undecided: as a warning, it needs a choice of the user before the job can move.
        of_a_group: shown if the target is a consumer group, whatever its severity.
        allowed: returns whether the user's policies allow the move all the same.
        way_out: what the user can do about a blocker.
    """

    job_wide: bool = False
    another_source: bool = False
    unread: bool = False
    by_partition: bool = False
    undecided: bool = False
    of_a_group: bool = False
    allowed: Callable[[Policies], bool] = lambda policies: False
    way_out: str = "if it is not to be moved, choose the others with --source"


class Code(str, Enum):
    """The code of a finding; docs/reference/findings.md describes each."""

    ANOTHER_SOURCE_KIND = "another-source-kind", CodePolicy(another_source=True)
    COMMITTED_MARKER = "committed-marker", CodePolicy(by_partition=True, undecided=True)
    DAMAGED_SOURCE = "damaged-source", CodePolicy(another_source=True, unread=True)
    FILES_IN_PROGRESS = "files-in-progress", CodePolicy()
    FINISHED_OPERATORS = "finished-operators", CodePolicy()
    # Of a side that is a consumer group.
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
    # Of a Spark query: its output may be ahead of its positions.
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
    SINK_MEMORY = "sink-memory", CodePolicy(of_a_group=True)
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
    """A fact about a checkpoint that its user must know before moving from it."""

    code: Code
    severity: Severity
    operator_id: str | None
    message: str

    @property
    def text(self) -> str:
        """The message, and the operator that it is about."""
        operator = "" if self.operator_id is None else f"operator {self.operator_id}: "
        return operator + self.message

    @property
    def is_undecided(self) -> bool:
        """Return whether the finding needs a choice of the user before the job can move."""
        return self.severity is Severity.WARNING and self.code.policy.undecided


def blocker(code: Code, message: str, operator_id: str | None = None) -> Finding:
    """Return a finding that stops a move."""
    return Finding(code, Severity.BLOCKER, operator_id, message)


def warning(code: Code, message: str, operator_id: str | None = None) -> Finding:
    """Return a finding of records that a move may repeat or miss."""
    return Finding(code, Severity.WARNING, operator_id, message)


def note(code: Code, message: str, operator_id: str | None = None) -> Finding:
    """Return a finding for information."""
    return Finding(code, Severity.NOTE, operator_id, message)
