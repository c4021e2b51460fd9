"""The shape of ``migrate inspect --format json``, and its JSON Schema.

The command contract: other programs read it. ``docs/schemas/inspect.schema.json`` is generated
from here (``python -m migrate.report.inspection_schema``). What writes the report is held to these
types by mypy alone, and what it wrote to the schema by tests: while a command runs, none of this is
imported, as pydantic takes longer to start than a checkpoint to be read.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict

from decoder import CheckpointKind, StopKind
from migrate.flink.extract import Severity, SourceKind
from migrate.positions import PositionState
from migrate.storage.json_models import schema_of

OperatorId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]


class CheckpointReport(TypedDict):
    pointer: str
    id: Count
    kind: CheckpointKind
    stop: StopKind
    metadata_version: Annotated[int, Field(ge=2)]


@with_config(
    ConfigDict(
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
)
class PositionReport(TypedDict):
    cluster: str | None
    topic: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    partition: Count
    state: PositionState
    next_offset: Count | None
    stopping_offset: int | None
    subtask: Count | None


class SourceAlone(TypedDict):
    """What is said of a source beside its positions."""

    operator_id: OperatorId
    name: str | None
    uid: str | None
    kind: SourceKind
    parallelism: AtLeastOne
    max_parallelism: AtLeastOne
    initial_discovery_finished: bool | None


class SourceReport(SourceAlone):
    """A Kafka source, its positions sorted by cluster, topic and partition."""

    positions: list[PositionReport]


class OperatorReport(TypedDict):
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


class FindingReport(TypedDict):
    code: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]
    severity: Severity
    operator_id: str | None
    message: Annotated[str, StringConstraints(min_length=8)]


class InspectReport(TypedDict):
    """One checkpoint: its sources' positions, its operators' state, and the findings about it."""

    checkpoint: CheckpointReport
    sources: list[SourceReport]
    operators: list[OperatorReport]
    findings: list[FindingReport]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of ``migrate inspect --format json``."""
    return schema_of(InspectReport, "migrate inspect --format json")


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
