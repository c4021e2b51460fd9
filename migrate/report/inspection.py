"""``migrate inspect --format json``: the models behind it, and its JSON Schema.

The command contract: other programs read it. ``docs/schemas/inspect.schema.json`` is generated
from here (``python -m migrate.report.inspection``).
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from decoder.metadata.model import CheckpointKind, Operator, StopKind
from migrate.extract import Extraction, Finding, Severity, Source
from migrate.positions import Position, PositionState

OperatorId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class CheckpointReport(_Model):
    pointer: str
    id: Count
    kind: CheckpointKind
    stop: StopKind
    metadata_version: Annotated[int, Field(ge=2)]


class PositionReport(_Model):
    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "if": {"properties": {"state": {"const": "next"}}},
            "then": {"properties": {"next_offset": {"type": "integer"}}},
            "else": {
                "if": {
                    "properties": {
                        "state": {"enum": ["earliest", "latest", "committed", "unresolved"]}
                    }
                },
                "then": {"properties": {"next_offset": {"type": "null"}}},
            },
        },
    )

    cluster: str | None
    topic: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    partition: Count
    state: PositionState
    next_offset: Count | None
    stopping_offset: int | None
    subtask: Count | None


class SourceReport(_Model):
    operator_id: OperatorId
    name: str | None
    uid: str | None
    kind: str = Field(
        json_schema_extra={
            "enum": ["KafkaSource", "FlinkKafkaConsumer", "DynamicKafkaSource", "HybridSource"]
        }
    )
    parallelism: AtLeastOne
    max_parallelism: AtLeastOne
    initial_discovery_finished: bool | None
    positions: list[PositionReport]


class OperatorReport(_Model):
    operator_id: OperatorId
    name: str | None
    uid: str | None
    parallelism: int
    max_parallelism: int
    finished: bool
    state_names: list[str]
    keyed_state_bytes: Count | None
    operator_state_bytes: Count | None
    in_flight_bytes: Count | None
    raw_state_bytes: Annotated[Count, Field(description="the part of both that is raw state")]
    finished_subtasks: list[Count]


class FindingReport(_Model):
    code: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]
    severity: Severity
    operator_id: str | None
    message: Annotated[str, StringConstraints(min_length=8)]


class InspectReport(_Model):
    """One checkpoint: its sources' positions, its operators' state, and the findings about it."""

    checkpoint: CheckpointReport
    sources: list[SourceReport]
    operators: list[OperatorReport]
    findings: list[FindingReport]


def inspect_report(extraction: Extraction) -> InspectReport:
    checkpoint = extraction.checkpoint
    return InspectReport(
        checkpoint=CheckpointReport(
            pointer=checkpoint.pointer,
            id=checkpoint.checkpoint_id,
            kind=checkpoint.type.kind,
            stop=checkpoint.type.stop,
            metadata_version=checkpoint.metadata_version,
        ),
        sources=[_source(source) for source in extraction.sources],
        operators=[_operator(operator) for operator in checkpoint.operators],
        findings=[_finding(finding) for finding in extraction.findings],
    )


def _source(source: Source) -> SourceReport:
    return SourceReport(
        operator_id=source.operator_id,
        name=source.name,
        uid=source.uid,
        kind=source.kind.value,
        parallelism=source.parallelism,
        max_parallelism=source.max_parallelism,
        initial_discovery_finished=source.initial_discovery_finished,
        positions=[_position(position) for position in source.positions],
    )


def _position(position: Position) -> PositionReport:
    return PositionReport(
        cluster=position.cluster,
        topic=position.topic,
        partition=position.partition,
        state=position.state,
        next_offset=position.next_offset,
        stopping_offset=position.stopping_offset,
        subtask=position.subtask,
    )


def _operator(operator: Operator) -> OperatorReport:
    return OperatorReport(
        operator_id=operator.operator_id,
        name=operator.name,
        uid=operator.uid,
        parallelism=operator.parallelism,
        max_parallelism=operator.max_parallelism,
        finished=operator.finished,
        state_names=list(operator.state_names),
        keyed_state_bytes=operator.keyed_state_bytes,
        operator_state_bytes=operator.operator_state_bytes,
        in_flight_bytes=operator.in_flight_bytes,
        raw_state_bytes=operator.raw_state_bytes,
        finished_subtasks=sorted(s.index for s in operator.subtasks if s.finished),
    )


def _finding(finding: Finding) -> FindingReport:
    return FindingReport(
        code=finding.code,
        severity=finding.severity,
        operator_id=finding.operator_id,
        message=finding.message,
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of ``migrate inspect --format json``."""
    schema = InspectReport.model_json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "migrate inspect --format json",
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
