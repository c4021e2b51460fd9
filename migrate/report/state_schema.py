"""The shape of ``migrate state --format json``, and its JSON Schema.

The command contract: other programs read it. ``docs/schemas/state.schema.json`` is generated from
here (``python -m migrate.report.state_schema``); what is printed is held to it by tests.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from decoder.keyed_state import StateKind
from migrate.report.inspection_schema import OperatorId
from migrate.storage.json_models import schema_of

Ddl = Annotated[
    str,
    Field(min_length=3, description="a type as Spark's DDL has it: BIGINT, STRUCT<f0: STRING>"),
]


class StateReport(TypedDict):
    """A keyed state. A type is null where there is none, or where its values cannot be read."""

    operator_id: OperatorId
    uid: str | None
    name: Annotated[str | None, Field(description="the operator's")]
    state: Annotated[str, Field(description="its name")]
    kind: Annotated[str, Field(json_schema_extra={"enum": [kind.value for kind in StateKind]})]
    key_type: Ddl | None
    namespace_type: Ddl | None
    value_type: Annotated[
        Ddl | None, Field(description="of the column `value`: of a map, of its values")
    ]
    ttl: bool
    readable: bool
    reason: Annotated[str | None, Field(description="why it cannot be read")]


class StatesReport(TypedDict):
    """The keyed states of a checkpoint, by operator."""

    states: list[StateReport]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of ``migrate state --format json``."""
    return schema_of(StatesReport, "migrate state --format json")


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
