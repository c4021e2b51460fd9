"""Start a Spark query with Flink's keyed state, rehearse the query, and verify its state."""

from migrate.model.extensions import READ, WRITE, CommandText

COMMANDS = {
    "prime": CommandText(
        WRITE,
        "Print a Spark query that starts with Flink's keyed states.",
        """\
# Write a template for a query that starts with one state; then complete the file
$ migrate prime savepoint-1 -b broker:9092 --state totals/total --query-file query.py
# Two states
$ migrate prime savepoint-1 -b broker:9092 --state totals/total --state seen/seen
""",
    ),
    "copy-query": CommandText(
        WRITE,
        "Copy a stateful query, with different positions.",
        """\
# The same query, from the positions of a savepoint
$ migrate copy-query spark:/data/query --from savepoint-2 --checkpoint-dir /data/copy -b broker:9092
# From a file of startingOffsets
$ migrate copy-query spark:/data/query --from json:offsets.json --checkpoint-dir /data/copy
""",
    ),
    "verify-state": CommandText(
        READ,
        "Compare Flink's keyed state with the state of a primed query.",
        """\
# Every key of a state
$ migrate verify-state savepoint-1 spark:/data/query --state totals/total -b broker:9092
# Only some keys
$ migrate verify-state savepoint-1 spark:/data/query --state totals/total --sample 10 -b b:9092
""",
    ),
}
# The commands that replace former options of the core commands.
MOVED_OPTIONS = {
    "to-spark --state": "migrate prime CHK --state OPERATOR/NAME",
    "to-spark --keep-state": "migrate copy-query spark:OLD --from SIDE --checkpoint-dir NEW",
    "verify --state": "migrate verify-state CHK spark:DIR --state OPERATOR/NAME",
}
SERVICES = {
    "migrate.extensions.stateful_query.copy_query": ("copy_query",),
    "migrate.extensions.stateful_query.prime_query": ("prime_query", "take_states_along"),
    "migrate.extensions.stateful_query.taken_states": ("log_states",),
    "migrate.extensions.stateful_query.verify_with_state": ("verify_with_state",),
}
SPARK_CALLS = {
    "migrate.extensions.stateful_query.rehearsal.rehearse": ("rehearse",),
    "migrate.extensions.stateful_query.rehearsal.report": ("Rehearsal",),
    "migrate.extensions.stateful_query.state_proof": ("StateProof",),
    "migrate.extensions.stateful_query.transfer.initial_state": ("initial_state",),
    "migrate.extensions.stateful_query.transfer.prime": ("Primed", "prime"),
    "migrate.extensions.stateful_query.transfer.rows": ("StateRows", "aggregate_rows", "seen_rows"),
    "migrate.extensions.stateful_query.transfer.time_to_live": ("unexpired",),
    "migrate.extensions.stateful_query.transfer.windows": ("session_windows",),
}
