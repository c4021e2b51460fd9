"""Show keyed state as a list of states, as JSON, as Arrow batches, and as tables for Spark."""

from migrate.model.extensions import READ, CommandText

COMMANDS = {
    "state": CommandText(
        READ,
        "Show the keyed states of a checkpoint, and with --state the entries of one of them.",
        """\
# Which keyed states there are
$ migrate state savepoint-1
# The first entries of one
$ migrate state savepoint-1 --operator orders --state totals --limit 10
# All of its entries, for a program
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
