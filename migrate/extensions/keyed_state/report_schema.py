"""The JSON format of ``migrate state``.

No command imports this module, because importing pydantic takes longer than reading a checkpoint.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from decoder.keyed_state import StateKind
from migrate.report.schemas import OperatorId

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
        Ddl | None,
        Field(description="the type of the column `value`; for a map, the type of its values"),
    ]
    ttl: bool
    readable: bool
    reason: Annotated[str | None, Field(description="the reason if the state cannot be read")]


class StatesReport(TypedDict):
    """The keyed states in a checkpoint, by operator."""

    states: list[StateReport]
