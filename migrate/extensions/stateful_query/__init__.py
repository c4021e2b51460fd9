"""Start a Spark query with Flink's keyed state, rehearse it, and verify its state."""

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
