"""The models for the JSON of a cut-over's record.

The record contains no secrets. It contains the brokers' addresses, but no other Kafka properties.
It does not contain the command that starts the query.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from migrate.model.positions import Marker
from migrate.planning import Verdict
from migrate.planning.verify import StartOutcome
from migrate.storage.json_models import Model, Offset, OncePerPartition, PartitionNumber, Sha256

KIND: Literal["flink-offset-migrate cut-over"] = "flink-offset-migrate cut-over"
VERSION: Literal[2] = 2

State = Literal["begun", "done", "went back"]
StepState = Literal["done", "failed"]


class StepReport(Model):
    """The last attempt at a step: its outcome, end time, duration, and run number."""

    name: str
    state: StepState
    told: str = Field(description="the outcome of the step, as a sentence")
    ended_at: str
    seconds: float = Field(ge=0)
    run: int = Field(ge=1)


class QuestionReport(Model):
    """The period during which a run waited for the user's answer."""

    asked_at: str
    answered_at: str


class RunReport(Model):
    """A run of the command; ``ended_at`` is null if the run is still active or was killed."""

    number: int = Field(ge=1)
    asked: str = Field(description="execute, until STEP, or back")
    user: str
    host: str
    migrate: str = Field(description="the version of migrate")
    python: str
    began_at: str
    ended_at: str | None
    end: str | None = Field(description="the end of the run, as a sentence")
    question: QuestionReport | None = Field(
        default=None, description="null if the run asked nothing"
    )
    codes: list[str] = Field(
        default=[], description="the codes of the reasons that stopped the run"
    )


class FlinkReport(Model):
    """The job that was stopped; an unknown value is null."""

    host: str | None
    version: str | None
    job_id: str | None
    job_name: str | None
    savepoints: str | None = Field(description="the URI of the folder in the stop request to Flink")
    savepoint: str | None
    savepoint_sha256: Sha256 | None = Field(description="the SHA-256 of the savepoint's _metadata")
    finished: bool = Field(description="true if Flink reported the job as FINISHED")
    ended_ms: int | None = Field(
        description="the job's end by Flink's clock, in epoch milliseconds"
    )
    stop_asked_at: str | None = Field(
        default=None, description="the time of the last stop request to Flink"
    )


class PartitionReport(Model):
    """A partition: its offsets before the cut-over, and the offsets at which the target started.

    If ``outcome`` is "cannot tell", ``lost`` and ``repeated`` are 0, and ``reason`` contains the
    explanation.
    """

    topic: str
    partition: PartitionNumber
    verdict: Verdict
    checkpoint: Offset | Marker | None
    planned: Offset | None
    log_start: Offset | None
    log_end: Offset | None
    held: Offset | None = Field(
        default=None, description="the group's offset at the time of the plan"
    )
    log_start_seen: Offset | None = Field(
        default=None, description="the log start offset at the last check of the target"
    )
    members_seen: bool = Field(
        default=False,
        description="true if a member of the group was seen with the partition while the "
        "cut-over's commit was still the newest",
    )
    first_commit: Offset | None = Field(
        default=None, description="the first committed offset seen that is not from migrate"
    )
    began_right: bool = Field(
        default=False,
        description="true if a check after the target's start found that the partition started "
        "at the planned offset",
    )
    started: Offset | None = None
    outcome: StartOutcome | None = None
    reason: str | None = Field(default=None, description="why the outcome is unknown")
    lost: Offset = 0
    repeated: Offset = 0
    reached: Offset | None = Field(
        default=None, description="the next offset after the query's newest committed batch"
    )


class PlanReport(Model):
    """The saved plan."""

    sha256: Sha256
    made_at: str
    cluster_id: str | None
    policies: dict[str, str]
    findings: list[str]
    warnings: list[str]
    states: list[str] = Field(description="the effect of the move on each keyed state")
    streams: dict[str, list[str]] = Field(
        description="the topics of each stream of a query with several streams"
    )
    for_review: bool = Field(
        default=False, description="true if a run ended after the step plan, for a review"
    )


class VerificationReport(Model):
    """A check of the target's start offsets, made before or after its readers started."""

    when: Literal["before", "after"]
    verified: bool
    partitions: int = Field(ge=0)
    unknown: int = Field(ge=0, description="the number of partitions whose start is unknown")
    lost: Offset
    repeated: Offset
    at: str | None = None
    lag: Offset | None = Field(
        default=None,
        description="the sum of the log end offsets minus the target's start offsets (before) or "
        "reached offsets (after); null if one of them is unknown",
    )


class StartReport(Model):
    """A run of the command that starts the query or the consumers.

    ``returned`` is the command's exit code. It is null if the command is still running, or if the
    exit code is missing.
    """

    at: str
    returned: int | None
    command_sha256: Sha256 | None = Field(
        default=None, description="the SHA-256 of the command; null in records of earlier releases"
    )


class DowntimePart(Model):
    """A part of the downtime: a step, earlier attempts at a step, or a pause."""

    step: str = Field(
        description="the name of the step; earlier attempts: the time of earlier runs after the "
        "previous step; or pause: the time in which no run was active, or a run waited for the "
        "user's answer; after a killed run, a pause starts at the end of the last step of that run"
    )
    seconds: float = Field(ge=0)


class DowntimeReport(Model):
    """The downtime, from the request to stop the job to the first observed batch or commit.

    This is an upper bound on the time from Flink's last record in the savepoint to Spark's first
    committed batch. ``began_at`` and ``ended_at`` are from the clock of ``migrate``. The sum of the
    parts is the downtime.
    """

    began_at: str
    ended_at: str
    seconds: float = Field(ge=0)
    parts: list[DowntimePart]


class LagReport(Model):
    """The lag of the target at a point in time, summed over its partitions."""

    at: str
    lag: Offset


class CutOverRecord(Model):
    """A cut-over and its progress."""

    kind: Literal["flink-offset-migrate cut-over"]
    version: Literal[2]
    id: str = Field(
        pattern="^[0-9a-f]{16}$", description="the id in the metadata of a group's commits"
    )
    name: str
    state: State
    spec_sha256: Sha256
    brokers: str
    target: str
    sink: str | None
    moved_with: dict[str, str] | None = Field(
        description="the keys of the spec with which the target was written; null before the write"
    )
    written: str | None = Field(
        description="the time of the target's complete write; null before the write"
    )
    query_id: str | None = Field(description="the id of the query in the checkpoint location")
    flink: FlinkReport
    plan: PlanReport | None
    primed: int | None = Field(ge=0, description="the last batch of the priming")
    start: StartReport | None
    verifications: list[VerificationReport]
    partitions: OncePerPartition[PartitionReport]
    steps: list[StepReport]
    runs: list[RunReport]
    downtime: DowntimeReport | None = Field(
        default=None,
        description="null before the first batch, and if this cut-over did not stop the job",
    )
    lags: list[LagReport] = Field(
        default=[],
        description="the lag of the target over time, as the cut-over has seen it from the plan on",
    )
    # Records of earlier releases have no ``sha256``.
    sha256: Sha256 | None = None

    @property
    def lost(self) -> int:
        return sum(row.lost for row in self.partitions)

    @property
    def repeated(self) -> int:
        return sum(row.repeated for row in self.partitions)
