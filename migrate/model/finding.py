"""Findings about a checkpoint or another input, and the policy for each finding code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from migrate.model.message import Message

if TYPE_CHECKING:
    from migrate.model.policies import Policies


class Severity(str, Enum):
    """The severity of a finding.

    A blocker stops a move. A warning states which records a move may duplicate or miss. A note is
    only informational.
    """

    BLOCKER = "blocker"
    WARNING = "warning"
    NOTE = "note"


class CodePolicy(NamedTuple):
    """How findings with one code affect a move.

    Attributes:
        severity: the severity of a finding whose ``is_certain`` is True.
        job_wide: True if the finding is about the whole job; a blocker then counts for every
            source.
        another_source: True if the finding is always about a source that the user cannot choose. If
            the user chooses sources by name, such a finding does not count, because it cannot be
            about the chosen sources.
        unread: True if the finding is about an unreadable Kafka source. If the checkpoint has no
            other source, the plan shows this finding instead of the error "no Kafka source".
        by_partition: True if the plan shows the fact in each partition's row instead of as a
            finding.
        scan_obstacle: True if a scan counts even a warning as an obstacle, because the user must
            decide.
        shown_for_groups: True if a move to a consumer group shows the finding at any severity.
        allowed: a function that returns whether policies allow the move despite the finding.
        way_out: the template of the user's remedy for a blocker.
    """

    severity: Severity
    job_wide: bool = False
    another_source: bool = False
    unread: bool = False
    by_partition: bool = False
    scan_obstacle: bool = False
    shown_for_groups: bool = False
    allowed: Callable[[Policies], bool] = lambda policies: False
    way_out: str = "to move without this source, select the other sources with {option.source}"


_blocker = partial(CodePolicy, Severity.BLOCKER)
_ran_on_blocker = partial(_blocker, allowed=lambda policies: policies.allow_ran_on)
_warning = partial(CodePolicy, Severity.WARNING)
_note = partial(CodePolicy, Severity.NOTE)


class Code(str, Enum):
    """The code of a finding; ``explanations.md`` explains each."""

    ANOTHER_SOURCE_KIND = "another-source-kind", _warning(another_source=True)
    COMMITTED_MARKER = "committed-marker", _warning(by_partition=True, scan_obstacle=True)
    DAMAGED_SOURCE = "damaged-source", _blocker(another_source=True, unread=True)
    FILES_IN_PROGRESS = "files-in-progress", _warning()
    FINISHED_OPERATORS = "finished-operators", _warning()
    # Only plans from a consumer group have this finding.
    GROUP_READS = (
        "group-reads",
        _ran_on_blocker(
            job_wide=True,
            way_out=(
                "stop the consumers, or add {option.allow_ran_on:true} to duplicate their records"
            ),
        ),
    )
    HYBRID_SOURCE = "hybrid-source", _note()
    HYBRID_SOURCE_ELSEWHERE = "hybrid-source-elsewhere", _blocker()
    IN_FLIGHT_RECORDS = (
        "in-flight-records",
        _blocker(
            job_wide=True,
            allowed=lambda policies: policies.allow_in_flight,
            way_out="or add {option.allow_in_flight:true} to accept the loss",
        ),
    )
    INITIAL_DISCOVERY = "initial-discovery", _note()
    # These two findings are for Spark queries. They report information that is missing in a query's
    # checkpoint location.
    KAFKA_ASSUMED = "kafka-assumed", _warning()
    QUERY_ID_MISSING = "query-id-missing", _warning()
    LATEST_MARKER = "latest-marker", _warning(by_partition=True, scan_obstacle=True)
    LEGACY_CONSUMER = "legacy-consumer", _blocker(another_source=True, unread=True)
    NO_ENUMERATOR = "no-enumerator", _warning()
    NOT_A_STOP = "not-a-stop", _warning()
    NUMBERING_BEGAN_ANEW = "numbering-began-anew", _warning()
    # This finding is for Spark queries. Their output may be ahead of their positions.
    OUTPUT_BEYOND = "output-beyond", _warning()
    PENDING_TRANSACTIONS = "pending-transactions", _warning(scan_obstacle=True)
    QUERY_STATE = "query-state", _warning()
    RAN_ON = (
        "ran-on",
        _ran_on_blocker(
            job_wide=True,
            way_out=(
                "stop the job with a savepoint, and move from that savepoint; if the job has "
                "ended, move from its newest checkpoint; or add {option.allow_ran_on:true} to "
                "accept the duplicates"
            ),
        ),
    )
    RETAINED_CLUSTERS = "retained-clusters", _note()
    # This finding is for Spark queries. A query's log does not identify its sources' clusters.
    SHARED_TOPIC = "shared-topic", _warning()
    SINK_MEMORY = "sink-memory", _note(shown_for_groups=True)
    SINK_STATE = "sink-state", _note()
    STALE_POSITIONS = (
        "stale-positions",
        _ran_on_blocker(way_out="or add {option.allow_ran_on:true} to accept the duplicates"),
    )
    STATE_NOT_MOVED = "state-not-moved", _warning()
    UNCOMMITTED_BATCH = "uncommitted-batch", _warning()
    UNDISCOVERED_TOPICS = "undiscovered-topics", _warning()
    UNRESOLVED_POSITIONS = "unresolved-positions", _blocker(by_partition=True)
    WRITTEN_BY = "written-by", _note()

    policy: CodePolicy

    def __new__(cls, code: str, policy: CodePolicy) -> Code:
        member = str.__new__(cls, code)
        member._value_ = code
        member.policy = policy
        return member

    def __str__(self) -> str:
        return str(self.value)


_CODES = {code.value: code for code in Code}


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about an input that the user must consider before a move.

    Attributes:
        message: a message of ``finding_catalog``.
        operator_id: the operator to which the finding refers, or None.
        is_certain: True if the fact is certain. If False, the severity is a warning.
        void_after_stop: True if the finding no longer applies after a later stop-with-savepoint of
            the job, for example because the stop commits pending output.
        void_if_finished: True if the finding does not apply to a job that has FINISHED with this
            savepoint, because in that case, the stop has committed the pending output.
        when_restored: the message to show instead if the job is restored from the input; None if
            the message is the same.
    """

    message: Message
    operator_id: str | None = None
    is_certain: bool = True
    operator_name: str | None = None
    void_after_stop: bool = False
    void_if_finished: bool = False
    when_restored: Message | None = None

    @property
    def code(self) -> Code:
        return _CODES[self.message.code]

    @property
    def severity(self) -> Severity:
        return self.code.policy.severity if self.is_certain else Severity.WARNING

    @property
    def operator(self) -> str:
        """The operator in words; empty if the finding does not refer to an operator."""
        if self.operator_id is None:
            return ""
        if not self.operator_name:
            return f"operator {self.operator_id}"
        return f"{self.operator_name} (operator {self.operator_id[:8]})"

    @property
    def text(self) -> Message:
        """The message, with the operator if the finding refers to one."""
        return self.message.about(self.operator)
