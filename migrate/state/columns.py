"""The columns of a keyed state.

The columns are ``key_group, key, namespace, map_key, value, last_access``. A state may lack some.
"""

from __future__ import annotations

from decoder.keyed_state import KeyedState, StateKind
from migrate.state.column_types import BIGINT, INT, ArrayOf, Column, ColumnType
from migrate.state.json_form import NO_NAMESPACE
from migrate.state.type_mapping import column_type


def columns(state: KeyedState) -> tuple[Column, ...]:
    """Return the columns of a readable state, named as the fields of ``Entry``."""
    by_name: dict[str, ColumnType | None] = {
        "key_group": INT,
        "key": column_type(state.key),
        "namespace": namespace_type(state),
        "map_key": column_type(state.map_key) if state.map_key is not None else None,
        "value": value_type(state),
    }
    if state.ttl:
        by_name["last_access"] = ArrayOf(BIGINT) if state.kind is StateKind.LIST else BIGINT
    return tuple(Column(name, type_) for name, type_ in by_name.items() if type_ is not None)


def namespace_type(state: KeyedState) -> ColumnType | None:
    """Return the namespace type; None if there is no namespace, or if it cannot be read."""
    return None if state.namespace in NO_NAMESPACE else column_type(state.namespace)


def value_type(state: KeyedState) -> ColumnType | None:
    """Return the type of the column ``value``, or None if values cannot be read."""
    value = column_type(state.value)
    return ArrayOf(value) if value is not None and state.kind is StateKind.LIST else value
