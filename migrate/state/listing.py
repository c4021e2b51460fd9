"""What is told of a keyed state: the same by ``migrate state`` and by Spark's ``view=states``."""

from __future__ import annotations

from typing import NamedTuple

from decoder.keyed_state import KeyedState
from migrate.state.columns import ColumnType, column_type, namespace_type, value_type


class Listed(NamedTuple):
    """The command contract has these names. A type is None where there is none, or where its
    values cannot be read; ``name`` is the operator's."""

    operator_id: str
    uid: str | None
    name: str | None
    state: str
    kind: str
    key_type: str | None
    namespace_type: str | None
    value_type: str | None
    ttl: bool
    readable: bool
    reason: str | None


def listed(state: KeyedState) -> Listed:
    return Listed(
        state.operator_id,
        state.uid,
        state.operator_name,
        state.name,
        state.kind.value,
        ddl(column_type(state.key)),
        ddl(namespace_type(state)),
        ddl(value_type(state)),
        state.ttl,
        state.readable,
        state.reason,
    )


def ddl(type_: ColumnType | None) -> str | None:
    return type_.ddl if type_ is not None else None
