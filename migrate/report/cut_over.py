"""The record of a cut-over: the models behind its JSON.

The record holds no secrets: Kafka's properties are not in it, except for the brokers' addresses,
and neither is the command that starts the query. ``docs/schemas/cut-over.schema.json`` is generated
from here (``python -m migrate.report.cut_over``).
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from migrate.model.positions import Marker
from migrate.planning import Verdict
from migrate.planning.verify import StartOutcome
from migrate.storage.json_models import Model, Offset, OncePerPartition, PartitionNumber, schema_of

KIND: Literal["flink-offset-migrate cut-over"] = "flink-offset-migrate cut-over"
VERSION: Literal[2] = 2

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
State = Literal["begun", "done", "went back"]
StepState = Literal["done", "failed"]


class StepReport(Model):
    """The newest try of a step: what came of it, when, for how long, and in which run."""

    name: str
    state: StepState
    told: str
    ended_at: str
    seconds: Annotated[float, Field(ge=0)]
    run: Annotated[int, Field(ge=1)]


class RunReport(Model):
    """One run of the command; ``ended_at`` is null of one that was killed."""

    number: Annotated[int, Field(ge=1)]
    asked: Annotated[str, Field(description="execute, until STEP or back")]
    user: str
    host: str
    migrate: Annotated[str, Field(description="its version")]
    python: str
    began_at: str
    ended_at: str | None
    end: Annotated[str | None, Field(description="how it ended, in words")]


class FlinkReport(Model):
    """The job that was stopped; null what is not known."""

    host: str | None
    version: str | None
    job_id: str | None
    job_name: str | None
    savepoints: Annotated[
        str | None, Field(description="the folder that the stop was asked to write to, a URI")
    ]
    savepoint: str | None
    savepoint_sha256: Annotated[Sha256 | None, Field(description="of its _metadata")]
    finished: Annotated[bool, Field(description="whether Flink said that the job has FINISHED")]
    ended_ms: Annotated[
        int | None, Field(description="when, by Flink's clock, in milliseconds of the epoch")
    ]


class PartitionReport(Model):
    """Before: the checkpoint and the log. After: where the target started, and has come to.

    ``lost`` and ``repeated`` count where ``outcome`` is known; where it is "cannot tell" both are 0
    and ``reason`` says why.
    """

    topic: str
    partition: PartitionNumber
    verdict: Verdict
    checkpoint: Offset | Marker | None
    planned: Offset | None
    log_start: Offset | None
    log_end: Offset | None
    held: Annotated[
        Offset | None, Field(description="what the group held when the plan was made")
    ] = None
    log_start_seen: Annotated[
        Offset | None, Field(description="the log start at the newest look at the target")
    ] = None
    members_seen: Annotated[
        bool, Field(description="whether the group had members while our commit still stood")
    ] = False
    first_commit: Annotated[
        Offset | None, Field(description="the first commit by others that was seen")
    ] = None
    began_right: Annotated[
        bool, Field(description="whether it was seen after the start that it began at the plan")
    ] = False
    started: Offset | None = None
    outcome: StartOutcome | None = None
    reason: Annotated[str | None, Field(description="why the outcome cannot be told")] = None
    lost: Offset = 0
    repeated: Offset = 0
    reached: Annotated[Offset | None, Field(description="after the newest committed batch")] = None


class PlanReport(Model):
    """The plan, as it was saved."""

    sha256: Sha256
    made_at: str
    cluster_id: str | None
    policies: dict[str, str]
    findings: list[str]
    warnings: list[str]
    states: Annotated[list[str], Field(description="what becomes of each keyed state")]
    streams: Annotated[
        dict[str, list[str]],
        Field(description="the topics of each stream of the query, where it has several"),
    ]


class VerificationReport(Model):
    """Whether the target started where it should: ``after`` its first batch, or before."""

    when: Literal["before", "after"]
    verified: bool
    partitions: Annotated[int, Field(ge=0)]
    unknown: Annotated[int, Field(ge=0, description="partitions whose start cannot be told")]
    lost: Offset
    repeated: Offset


class StartReport(Model):
    """The command that starts the query; ``returned`` is null as long as it runs."""

    at: str
    returned: int | None


class CutOverRecord(Model):
    """A cut-over, as far as it has come."""

    kind: Literal["flink-offset-migrate cut-over"]
    version: Literal[2]
    id: Annotated[str, Field(pattern="^[0-9a-f]{16}$", description="marks a group's commits")]
    name: str
    state: State
    spec_sha256: Sha256
    brokers: str
    target: str
    sink: str | None
    moved_with: Annotated[
        dict[str, str] | None,
        Field(description="what of the spec the target was written with; null before"),
    ]
    written: Annotated[
        str | None, Field(description="when the target was written completely; null before")
    ]
    query_id: Annotated[
        str | None, Field(description="the id of the query in the checkpoint location")
    ]
    flink: FlinkReport
    plan: PlanReport | None
    primed: Annotated[
        int | None, Field(ge=0, description="the last batch that the priming has left")
    ]
    start: StartReport | None
    verifications: list[VerificationReport]
    partitions: OncePerPartition[PartitionReport]
    steps: list[StepReport]
    runs: list[RunReport]

    @property
    def lost(self) -> int:
        return sum(row.lost for row in self.partitions)

    @property
    def repeated(self) -> int:
        return sum(row.repeated for row in self.partitions)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record."""
    return schema_of(CutOverRecord, "The record of migrate cut-over")


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
