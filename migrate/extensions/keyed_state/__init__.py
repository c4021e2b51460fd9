"""Show keyed state as a list of states, as JSON, as Arrow batches, and as tables for Spark."""

from migrate.model.extensions import READ, CommandText

COMMANDS = {
    "state": CommandText(
        READ,
        "List the keyed states of a checkpoint, or show the entries of one state.",
        """\
# The list of keyed states
$ migrate state savepoint-1
# The first entries of one state
$ migrate state savepoint-1 --operator orders --state totals --limit 10
# All entries of one state, as JSON
$ migrate state s3://bucket/savepoints/savepoint-1 --operator orders --state totals
""",
    ),
}
CALLS = {"migrate.extensions.keyed_state.read_state": ("find_state", "keyed_states", "read_state")}
SPARK_CALLS = {
    "migrate.extensions.keyed_state.data_source": ("FlinkStateDataSource",),
    "migrate.extensions.keyed_state.frames": ("read_keyed_state",),
}
SERVICES = {"decoder.keyed_state": ("read_keyed_states",)}
SCHEMAS = {
    "state": (
        "migrate.extensions.keyed_state.report_schema",
        "StatesReport",
        "migrate state --format json",
    )
}
