"""The JSON format of ``migrate inspect``, and the schemas of all reports.

``python -m migrate.report.schemas inspect`` (or ``state``, ``diff``, ``cut-over``) prints a schema
in ``docs/schemas``. No command imports this module, because importing pydantic takes longer than
reading a checkpoint.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict

from decoder import CheckpointKind, StopKind
from migrate.inputs.flink.source import SourceKind
from migrate.model.extensions import declared
from migrate.model.finding import Severity
from migrate.model.positions import PositionState
from migrate.report.diff import DiffReport
from migrate.storage.json_models import TopicName, schema_of

OperatorId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
_LIST = SourceKind.POSITION_LIST  # not in a checkpoint, so not in a report
SourceClass = Annotated[
    str,
    Field(json_schema_extra={"enum": [kind.value for kind in SourceKind if kind != _LIST]}),
]
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
    """A Kafka source, with its positions sorted by cluster, topic, and partition."""

    operator_id: OperatorId
    name: str | None
    uid: str | None
    kind: SourceClass
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
    """A checkpoint: its sources' positions, its operators' state, and the findings about it."""

    checkpoint: CheckpointReport
    sources: list[SourceReport]
    operators: list[OperatorReport]
    findings: list[FindingReport]


_REPORTS = {
    "inspect": (InspectReport, "migrate inspect --format json"),
    "diff": (DiffReport, "migrate diff --format json"),
}


def json_schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema of a command's report; the command can belong to an extension."""
    if command in _REPORTS:
        return schema_of(*_REPORTS[command])
    module, name, title = declared("SCHEMAS")[command]
    return schema_of(getattr(import_module(module), name), title)


if __name__ == "__main__":
    print(json.dumps(json_schema(sys.argv[1]), indent=2))
