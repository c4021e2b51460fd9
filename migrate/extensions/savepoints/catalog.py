"""The messages of the savepoints extension; ``migrate.model.catalog`` describes catalogs."""

from __future__ import annotations

from migrate.model.message import MessageTemplate as refusal

IN_FLIGHT_IN_SAVEPOINT = refusal(
    "in-flight-in-savepoint",
    "the savepoint contains in-flight records (operators {operators}); Flink processes them first "
    "at any start position, and rewound positions reprocess them",
    "take an aligned checkpoint, or stop the job with a savepoint (with async I/O with --drain); "
    "or add {option.allow_in_flight:true} to let it process them",
)
SAVEPOINT_CLUSTERS_UNNAMED = refusal(
    "savepoint-clusters-unnamed",
    "the savepoint reads several Kafka clusters, including {clusters!r}",
    "the positions do not identify their cluster; choose it with {option.cluster:ID}",
)
SAVEPOINT_OF_OTHER_CLUSTER = refusal(
    "savepoint-of-other-cluster",
    "the savepoint reads cluster {own!r}, but the positions belong to {others!r}",
    "choose a cluster of both with {option.cluster:ID}; or pass the positions as json:FILE, so "
    "that migrate assumes the savepoint's cluster",
)
STATE_DOES_NOT_FIT = refusal(
    "state-does-not-fit",
    "the job's state ({state_bytes} bytes in {operators:operator}) belongs to the savepoint's own "
    "positions: {changes}",
    "to use this state anyway, add {option.allow_state_mismatch:true}",
)
