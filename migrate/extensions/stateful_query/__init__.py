"""Start a Spark query with Flink's keyed state, rehearse it, and verify its state."""

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
