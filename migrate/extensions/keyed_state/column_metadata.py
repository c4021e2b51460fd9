"""Column metadata for a state that is read in Spark: the state's savepoint and name."""

from __future__ import annotations

from migrate.extensions.keyed_state.views import Table

SAVEPOINT, OPERATOR, STATE = "flink.savepoint", "flink.operator", "flink.state"
TRUNCATE = "flink.truncateKeys"
EXTERNAL, MAY_EXPIRE = "flink.externalFiles", "flink.mayExpire"


def metadata_of(table: Table) -> dict[str, str | bool]:
    """Return the metadata for a table's columns; empty for a list of states or for timers."""
    if table.state is None:
        return {}
    return {
        SAVEPOINT: table.pointer,
        OPERATOR: table.state.operator_id,
        STATE: table.state.name,
        EXTERNAL: table.allow_external_files,
        TRUNCATE: table.truncate_keys,
        MAY_EXPIRE: table.state.ttl,
    }
