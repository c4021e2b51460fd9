"""Keyed states for programs: as JSON and CSV, in the shape of ``state_schema``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decoder.keyed_state import KeyedState
from migrate.state.columns import ColumnType, column_type, namespace_type, value_type

if TYPE_CHECKING:
    from migrate.report.state_schema import StateReport

_COLUMNS = (
    *("operator_id", "uid", "name", "state", "kind"),
    *("key_type", "namespace_type", "value_type", "ttl", "readable", "reason"),
)


def states_json(states: Sequence[KeyedState]) -> str:
    return json.dumps({"states": list(map(state_report, states))}, indent=2)


def states_csv(states: Sequence[KeyedState]) -> str:
    from migrate.report.text import csv_text  # which takes what draws tables along

    return csv_text(_COLUMNS, (tuple(state_report(state).values()) for state in states))


def state_report(state: KeyedState) -> StateReport:
    """What is told of a state, the same by ``migrate state`` and by Spark's ``view=states``."""
    return {
        "operator_id": state.operator_id,
        "uid": state.uid,
        "name": state.operator_name,
        "state": state.name,
        "kind": state.kind.value,
        "key_type": ddl(column_type(state.key)),
        "namespace_type": ddl(namespace_type(state)),
        "value_type": ddl(value_type(state)),
        "ttl": state.ttl,
        "readable": state.readable,
        "reason": state.reason,
    }


def ddl(type_: ColumnType | None) -> str | None:
    return type_.ddl if type_ is not None else None
