"""The messages of the savepoints extension; ``migrate.model.catalog`` describes catalogs."""

from __future__ import annotations

from migrate.model.finding import Code
from migrate.model.message import refusal, warning

BEAM_POSITIONS = refusal(
    "beam-positions",
    "operator {operator} is the KafkaIO of an Apache Beam pipeline, and migrate cannot write "
    "positions for KafkaIO",
    "choose other sources with {option.source}, or start the pipeline from the offsets of a "
    "consumer group",
)
ENUMERATOR_MISSING = refusal(
    "enumerator-missing",
    "operator {operator}: migrate cannot add {partition}, because the savepoint does not contain "
    "the enumerator's state; if migrate added the partition, Flink would also discover it, and "
    "read it twice",
    "omit the partition with {option.partitions}, or take a new savepoint",
)
ENUMERATOR_TOO_OLD = refusal(
    "enumerator-too-old",
    "migrate cannot add or remove partitions, because the state has enumerator version 0 "
    "(connector 1.12.0 to 1.12.2)",
    "restore the job with a later connector, and take a new savepoint",
)
IN_FLIGHT_IN_SAVEPOINT = refusal(
    "in-flight-in-savepoint",
    "the savepoint contains in-flight records (operators {operators}); Flink always "
    "processes these records first, and reprocesses them if the positions are rewound",
    "take an aligned checkpoint, or stop the job with a savepoint (for async I/O, with --drain); "
    "or add {option.allow_in_flight:true} to let Flink process these records",
)
NAME_TOO_LONG = refusal(
    "name-too-long",
    "a name in the new state is {length} bytes long, but Flink's formats store at most {limit} "
    "bytes",
    "if the name is a topic, omit the topic with {option.partitions}",
)
NO_COMMON_TOPIC = refusal(
    "no-common-topic",
    "{side} has positions for {topics}, but the savepoint has positions for {own}",
    "check that the savepoint belongs to the same job, or add {option.topic_map:OLD=NEW} for "
    "renamed topics",
)
NO_CURRENT_KAFKA_SOURCE = refusal(
    "no-current-kafka-source",
    "operator {operator} does not currently read a Kafka source ({reason})",
    "choose other sources with {option.source}",
)
NO_ENUMERATOR_FOR_CLUSTER = refusal(
    "no-enumerator-for-cluster",
    "no partition can be added for cluster {cluster!r}, because the source has not read this "
    "cluster yet and has no enumerator for it",
    "take the savepoint after the source has discovered the cluster, or omit the cluster's "
    "partitions with {option.partitions}",
)
OUTPUT_INSIDE_SAVEPOINT = refusal(
    "output-inside-savepoint",
    "{directory} is inside the original savepoint",
    "choose a directory outside the savepoint",
)
PARTITION_ALREADY_FINISHED = refusal(
    "partition-already-finished",
    "operator {operator}: the bounded source has read {partitions:1} to the end, and finished "
    "partitions no longer have a reader",
    "omit finished partitions with {option.partitions}",
)
READER_STATE_MISSING = refusal(
    "reader-state-missing",
    "operator {operator}: {partition} cannot be added, because none of the {count:subtask} has "
    "reader state",
    "take the savepoint while the subtasks are running",
)
SAVEPOINT_CLUSTERS_UNNAMED = refusal(
    "savepoint-clusters-unnamed",
    "the savepoint reads several Kafka clusters, including {clusters!r}, but the positions do not "
    "identify their cluster",
    "choose the cluster with {option.cluster:ID}",
)
SAVEPOINT_FILE_NAMED_TWICE = refusal(
    "savepoint-file-named-twice",
    "two file handles in the savepoint use different names for the file {path!r}",
    "take a new savepoint",
)
SAVEPOINT_FORMAT_TOO_OLD = refusal(
    "savepoint-format-too-old",
    "the savepoint has metadata version {version}, and a copy of such a savepoint would share its "
    "files with the original",
    "restore the job with Flink 1.11 or later, and take a new savepoint",
)
SAVEPOINT_HANDLE_OUTSIDE = refusal(
    "savepoint-handle-outside",
    "a file handle in the savepoint points to {path!r}, outside of the savepoint",
    "take a new savepoint",
)
SAVEPOINT_OF_OTHER_CLUSTER = refusal(
    "savepoint-of-other-cluster",
    "the source in the savepoint reads cluster {own!r}, but the positions belong to {others!r}",
    "use {option.cluster:ID} to specify a cluster that is in both the savepoint and the "
    "positions; or pass the positions as json:FILE, in which case migrate assumes that they "
    "belong to the savepoint's cluster",
)
SEVERAL_READERS = refusal(
    "several-readers",
    "operator {operator}: {partition} is assigned to {readers} readers, and each of them would "
    "read it",
    "omit the partition with {option.partitions}, or take a new savepoint",
)
STATE_DOES_NOT_FIT = refusal(
    "state-does-not-fit",
    "the job's state ({state_bytes} bytes in {operators:operator}) matches only the positions in "
    "the savepoint, but the new positions differ: {changes}",
    "to use this state anyway, add {option.allow_state_mismatch:true}",
)
STOP_OFFSET_MISSING = refusal(
    "stop-offset-missing",
    "operator {operator} is bounded, but its state does not contain the stop offset of {partition}",
    "omit the partition with {option.partitions}",
)

# Warnings. Several messages can have the same code, because ``explanations.md`` explains codes, not
# messages.

IN_FLIGHT_ALLOWED = warning(
    Code.IN_FLIGHT_RECORDS,
    "the savepoint contains in-flight records (operators {operators}); Flink always "
    "processes these records first, and reprocesses them if the positions are rewound",
)
STATE_MISMATCH = warning(
    "state-mismatch",
    "the job's state ({state_bytes} bytes in {operators:operator}) matches only the positions in "
    "the savepoint, but the new positions differ",
)
