"""The messages of the fleet extension; ``migrate.model.catalog`` describes catalogs."""

from __future__ import annotations

from migrate.model.message import input_error, refusal, service_error, warning

CHECKPOINT_UNREADABLE = input_error(
    "checkpoint-unreadable",
    "a checkpoint cannot be read: {problem} ({kind})",
    "fix the checkpoint, or set mode to PERMISSIVE or DROPMALFORMED to continue without it",
)
NO_POSITIONS = refusal(
    "no-positions",
    "the checkpoint contains no positions of Kafka sources",
    "choose a checkpoint of a job that reads from Kafka",
)
PLANS_DIRECTORY_NOT_EMPTY = refusal(
    "plans-directory-not-empty",
    "{directory} is not empty",
    "choose a new directory for the plans",
)
ROOTS_UNREADABLE = input_error(
    "roots-unreadable",
    "none of the directories can be read: {failures}",
    "pass directories that exist and that this machine can read",
)
TABLES_DIRECTORY_NOT_EMPTY = refusal(
    "tables-directory-not-empty",
    "{output} is not empty",
    "choose a new directory for the tables",
)
WORKERS_ENDED = service_error(
    "workers-ended",
    "{attempts} successive worker processes ended unexpectedly while reading the same checkpoint; "
    "the machine may not have enough memory",
    "run the scan on a machine with more memory, or on Spark with {option.master}",
)
WORKERS_KILLED = service_error(
    "workers-killed",
    "{attempts} successive worker processes ended unexpectedly while reading the same checkpoint "
    "(the last was killed by signal {signal}); the machine may not have enough memory",
    "run the scan on a machine with more memory, or on Spark with {option.master}",
)

# Warnings. Several messages can have the same code, because ``explanations.md`` explains codes, not
# messages.

NO_CHECKPOINT = warning(
    "no-checkpoint",
    "found no checkpoints or savepoints",
)
POSSIBLY_SUPERSEDED = warning(
    "possibly-superseded",
    "{count} may not be the newest of the job; for example, {first} may be superseded by {later}, "
    "which has the same operators, the same topics, and a higher number",
)
