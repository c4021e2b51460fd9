"""The JSON formats of ``migrate inspect`` and ``migrate state``, and the schemas of all reports.

``python -m migrate.report.schemas inspect`` (or ``state``, ``diff``, ``cut-over``) prints a schema
of ``docs/schemas``. No command imports this module, because the import of pydantic takes longer
than reading a checkpoint.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict

from decoder import CheckpointKind, StopKind
from decoder.keyed_state import StateKind
from migrate.extensions.cutover.report import CutOverRecord
from migrate.inputs.flink.source import SourceKind
from migrate.model.finding import Severity
from migrate.model.positions import PositionState
from migrate.report.diff import DiffReport
from migrate.storage.json_models import TopicName, schema_of

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
        }
    )
)
class PositionReport(TypedDict):
    cluster: str | None
    topic: TopicName
    partition: Count
    state: PositionState
    next_offset: Count | None
    stopping_offset: int | None
    subtask: Count | None


class SourceReport(TypedDict):
    """A Kafka source, its positions sorted by cluster, topic and partition."""

    operator_id: OperatorId
    name: str | None
    uid: str | None
    kind: SourceKind
    parallelism: AtLeastOne
    max_parallelism: AtLeastOne
    initial_discovery_finished: bool | None
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
    raw_state_bytes: Annotated[
        Count, Field(description="the raw state in keyed_state_bytes and operator_state_bytes")
    ]
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


Ddl = Annotated[
    str,
    Field(min_length=3, description="a type in Spark's DDL, such as BIGINT or STRUCT<f0: STRING>"),
]


class StateReport(TypedDict):
    """A keyed state. A type is null if the state has none, or if its values cannot be read."""

    operator_id: OperatorId
    uid: str | None
    name: Annotated[str | None, Field(description="the operator's name")]
    state: Annotated[str, Field(description="the state's name")]
    kind: Annotated[str, Field(json_schema_extra={"enum": [kind.value for kind in StateKind]})]
    key_type: Ddl | None
    namespace_type: Ddl | None
    value_type: Annotated[
        Ddl | None, Field(description="the type of the column `value`; for a map, of its values")
    ]
    ttl: bool
    readable: bool
    reason: Annotated[str | None, Field(description="why the state cannot be read")]


class StatesReport(TypedDict):
    """The keyed states of a checkpoint, by operator."""

    states: list[StateReport]


_REPORTS = {
    "inspect": (InspectReport, "migrate inspect --format json"),
    "state": (StatesReport, "migrate state --format json"),
    "diff": (DiffReport, "migrate diff --format json"),
    "cut-over": (CutOverRecord, "The record of migrate cut-over"),
}


def json_schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema of a command's report."""
    return schema_of(*_REPORTS[command])


if __name__ == "__main__":
    print(json.dumps(json_schema(sys.argv[1]), indent=2))
