"""The messages of the core: each reason that stops a move.

``migrate explain CODE`` shows a message, and docs/reference/refusals.md lists all of them. An
extension has its own catalog. The messages are sorted by code, and the name of a message is its
code. ``migrate.model.message`` describes the templates.
"""

from __future__ import annotations

from functools import partial

from migrate.model.message import Kind
from migrate.model.message import MessageTemplate as refusal

input_error = partial(refusal, kind=Kind.INPUT_ERROR)
service_error = partial(refusal, kind=Kind.SERVICE_ERROR)

ABORTED_TRANSACTION = refusal(
    "aborted-transaction",
    "{transactions} of a KafkaSink was aborted on the brokers; its output is lost, and a start "
    "from here does not reprocess the records behind it",
    "move from an older checkpoint, and accept duplicates of the output committed after it; or "
    "add {option.allow_in_flight:true} to accept the loss",
)
AT_LATEST_MARKER = refusal(
    "at-latest-marker",
    "the job has read no record, so the position is still the 'latest' marker; a start at today's "
    "log end would skip the records written after the job's start",
    "wait until the partition has a record, and move from a later checkpoint, or choose a start "
    "with {option.unresolved:earliest|latest|committed|timestamp:T}",
)
BEYOND_END = refusal(
    "beyond-end",
    "next offset {next_offset} is higher than the log end offset {log_end}; the topic was "
    "recreated, or this is a different cluster",
    "pass the job's brokers with {option.bootstrap_servers}, or skip to the log end with "
    "{option.on_beyond_end:latest}",
)
CLUSTER_NOT_IDENTIFIED = refusal(
    "cluster-not-identified",
    "the state of some sources does not identify their Kafka cluster (operators {operators}); "
    "their cluster may differ from the other sources' cluster {clusters}",
    "move these sources one at a time with {option.source}",
)
COMMITS_BEYOND_POSITIONS = refusal(
    "commits-beyond-positions",
    "the job kept running after this checkpoint; Flink's group has committed {records:record} "
    "beyond the positions of {partitions:partition} (the first is {first}: committed {committed}, "
    "next offset {next_offset}), and Flink's output for these records would be duplicated",
    "move from a newer checkpoint, or add {option.allow_ran_on:true} to accept the duplicates",
)
COMMITTED_MARKER_OFFLINE = refusal(
    "committed-marker-offline",
    "the job has read no record, so the position is still the 'committed' marker; only a broker "
    "can resolve it",
    "pass Flink's own group with {option.bootstrap_servers:HOST:PORT} and "
    "{option.source_group:GROUP}, or choose a start with "
    "{option.unresolved:earliest|latest|committed|timestamp:T}",
)
COPY_AMBIGUOUS = refusal(
    "copy-ambiguous",
    "several offsets in the target's log agree with the job's log",
    "start at the first of these offsets with {option.on_ambiguous:first}; this loses no records "
    "and duplicates {records}",
)
COPY_DUPLICATED = refusal(
    "copy-duplicated",
    "the target's log contains duplicates from the position onward",
    "if the mirror is still copying, wait with {option.wait:5m}; otherwise, start at the first of "
    "these offsets with {option.on_ambiguous:first}; this loses no records and duplicates "
    "{records}",
)
COPY_EXPIRED = refusal(
    "copy-expired",
    "the target's log starts {records} later",
    "mirror the topic again, or move while both clusters have the records",
)
COPY_FILTERED = refusal(
    "copy-filtered",
    "the mirror skipped {records} of the job's log, and copied a later record",
    "mirror all records of the topic to a new topic, in their order",
)
COPY_FOREIGN = refusal(
    "copy-foreign",
    "the job's log does not contain {records} of the target's log",
    "other clients write to the topic, or wrote to it before the mirror finished; mirror to a "
    "topic without other writers",
)
COPY_LAGGING = refusal(
    "copy-lagging",
    "{records} not copied yet",
    "wait for the mirror with {option.wait:5m}",
)
COPY_MISSING = refusal(
    "copy-missing",
    "no copy of the position was found: {reason}",
    "check that {option.topic_map} specifies the copy of the topic, and that the mirror keeps "
    "each record's partition",
)
COPY_NOT_STARTED = refusal(
    "copy-not-started",
    "no record is copied yet",
    "wait for the mirror with {option.wait:5m}",
)
COPY_REPARTITIONED = refusal(
    "copy-repartitioned",
    "{records} in a different partition than in the job's log",
    "mirror to a new topic, and configure the mirror to keep each record's partition",
)
COPY_TOPIC_MISSING = refusal(
    "copy-topic-missing",
    "the target's cluster has no topic {name}{alike:did you mean} for topic {topic}",
    "specify the copy with {option.topic_map:{topic}=NAME}",
)
COPY_WITH_OTHER_PARTITIONS = refusal(
    "copy-with-other-partitions",
    "topic {topic} has {partitions:partition}, but {name} in the target's cluster has {copied}; "
    "the partition of a copied record cannot be determined",
    "mirror it to a topic with the same number of partitions",
)
EARLIEST_MARKER_OFFLINE = refusal(
    "earliest-marker-offline",
    "the job has read no record, so the position is still the 'earliest' marker; only a broker "
    "can resolve it",
    "add {option.bootstrap_servers:HOST:PORT}",
)
EXPIRED = refusal(
    "expired",
    "next offset {next_offset} is below the log start offset {log_start}; up to {lost} records "
    "were deleted",
    "move from a newer checkpoint, or continue after the gap with {option.on_expired:earliest}",
)
KEPT_PARTITIONS = refusal(
    "kept-partitions",
    "operator {operator} keeps {partitions}, whose offsets belong to the job's cluster",
    "take a savepoint while the source reads all its partitions, or start the job without the "
    "state of this source",
)
LATEST_MARKER_OFFLINE = refusal(
    "latest-marker-offline",
    "the job has read no record, so the position is still the 'latest' marker; only a broker can "
    "resolve it",
    "wait until the partition has a record, and move from a later checkpoint, or choose a start "
    "with {option.unresolved:earliest|latest|committed|timestamp:T}",
)
NEW_PARTITION = refusal(
    "new-partition",
    "the partition is not {where}",
    "choose a start with {option.new_partitions:earliest} or latest",
)
NO_COMMITTED_OFFSET = refusal(
    "no-committed-offset",
    "the job has read no record, so the position is still the 'committed' marker, and group "
    "{group!r} has no committed offset for it",
    "pass Flink's own group with {option.source_group:GROUP}, or choose a start with "
    "{option.unresolved:earliest|latest|committed|timestamp:T}",
)
NO_COMMITTED_OFFSET_TO_START_AT = refusal(
    "no-committed-offset-to-start-at",
    "{problem}, and {option.unresolved:committed} finds no offset of {option.source_group}",
    "pass Flink's own group with {option.source_group:GROUP}, or choose a start with "
    "{option.unresolved:earliest|latest|committed|timestamp:T}",
)
NO_KAFKA_SEED = input_error(
    "no-kafka-seed",
    "{location} contains no seed of a Kafka source (sources/0/0)",
    "pass a checkpoint location that migrate to-spark has written",
)
NO_OFFSET = refusal(
    "no-offset",
    "there is nothing to move; no partition has an offset",
    "choose a checkpoint that the job took after it read its first record",
)
NO_POSITION = refusal(
    "no-position",
    "{reader} reads {partitions}, for which {side} has no position",
    "to keep the positions of these partitions, use {option.partitions} to pass only the other "
    "partitions; to choose a start, use {option.bootstrap_servers} and "
    "{option.new_partitions:earliest} or latest",
)
NO_SOURCE_GROUP = refusal(
    "no-source-group",
    "the job has read no record, so the position is still the 'committed' marker; only Flink's "
    "own consumer group has its start offset",
    "pass Flink's own group with {option.source_group:GROUP}, or choose a start with "
    "{option.unresolved:earliest|latest|committed|timestamp:T}",
)
NO_SUCH_PARTITION = refusal(
    "no-such-partition",
    "neither the checkpoint nor the broker has {partitions:1}, which {option.partitions} names",
    "pass existing partitions",
)
NOT_AMONG_POSITIONS = refusal(
    "not-among-positions",
    "the partition is not among the positions; the start offset of its reader cannot be determined",
    "choose a start with {option.new_partitions:earliest} or latest",
)
NOT_ON_BROKER = refusal(
    "not-on-broker",
    "{reader} reads {partitions}, which the broker does not have",
    "use {option.bootstrap_servers} to pass the job's brokers, or {option.gone:skip} to remove "
    "these partitions from the state",
)
NOTHING_SELECTED = refusal(
    "nothing-selected",
    "no partition in {option.partitions} has an offset; the checkpoint contains {partitions:3}",
    "pass some of these partitions",
)
ONE_GROUP_FOR_SEVERAL_SOURCES = refusal(
    "one-group-for-several-sources",
    "{count} sources are still at the 'committed' marker (operators {operators}), but "
    "{option.source_group} specifies the group of one source",
    "move these sources one at a time with {option.source}",
)
OPEN_TRANSACTION = refusal(
    "open-transaction",
    "{transactions} of a KafkaSink is still open on the brokers; its output will be lost when it "
    "times out",
    "restore the job from here once, let it commit, and stop it with a new savepoint; or add "
    "{option.allow_in_flight:true} to accept the loss",
)
PARTITION_GONE = refusal(
    "partition-gone",
    "the broker has no such partition",
    "pass the job's brokers with {option.bootstrap_servers}, or omit it with {option.gone:skip}",
)
PLAN_FOR_OTHER_CLUSTER = refusal(
    "plan-for-other-cluster",
    "the brokers belong to cluster {cluster}, but the plan is for cluster {planned}",
    "check the value of {option.bootstrap_servers}, and create a new plan only if the job has "
    "moved to this cluster",
)
POSITION_UNKNOWN = refusal(
    "position-unknown",
    "the next offset is unknown: {reason}",
    "choose a start with {option.unresolved:earliest|latest|committed|timestamp:T}",
)
POSITIONS_DIFFER = refusal(
    "positions-differ",
    "{sources} sources of topic {topic} have different positions in {count} of its partitions "
    "(operators {operators}; {partition}: {starts})",
    "choose one source with {option.source:OPERATOR_ID}, or add {option.merge_sources:min} to use "
    "the lower offsets",
)
POSITIONS_DIFFER_CLUSTER_UNKNOWN = refusal(
    "positions-differ-cluster-unknown",
    "{sources} sources of topic {topic} have different positions in {count} of its partitions "
    "(operators {operators}; {partition}: {starts})",
    "choose one source with {option.source:OPERATOR_ID}; or, if all sources read the same Kafka "
    "cluster (their state does not show whether they do), add {option.one_cluster:true} and "
    "{option.merge_sources:min} to use the lower offsets",
)
READER_CLUSTER_UNKNOWN = refusal(
    "reader-cluster-unknown",
    "operator {operator} may not be the reader of {partitions}, because it or operator {others} "
    "does not identify its Kafka cluster",
    "use {option.source} to choose a source, and {option.partitions} to choose the partitions "
    "that it reads",
)
READER_UNKNOWN = refusal(
    "reader-unknown",
    "none of {count} sources is certain to read {partition}, because they read other partitions "
    "of its topic",
    "use {option.source} to choose a source, and {option.partitions} to choose the partitions "
    "that it reads",
)
READERS_OVERLAP = refusal(
    "readers-overlap",
    "operator {operator} may not be the reader of {partitions}, because its partitions of the "
    "topic overlap with those of operator {others}",
    "use {option.source} to choose a source, and {option.partitions} to choose the partitions "
    "that it reads",
)
SAME_TOPIC_TWO_CLUSTERS = refusal(
    "same-topic-two-clusters",
    "{sources} sources read topic {topic} ({readers}), and their state does not identify their "
    "Kafka cluster; in two clusters, these are two topics",
    "choose one source with {option.source:OPERATOR_ID}, or add {option.one_cluster:true} if all "
    "sources read the same Kafka cluster",
)
SEVERAL_CLUSTERS = refusal(
    "several-clusters",
    "the positions belong to {count} Kafka clusters ({clusters!r}), but a target reads only one",
    "choose the cluster with {option.cluster:ID}",
)
SPARK_FAILED = service_error(
    "spark-failed",
    "Spark failed: {failure}",
    "fix the reported problem, and run the command again",
)
SPARK_NOT_STARTED = service_error(
    "spark-not-started",
    "Spark did not start: {failure}",
    "check the Spark settings and the cluster, and run the command again",
)
SPARK_SOURCES_TWO_CLUSTERS = refusal(
    "spark-sources-two-clusters",
    "{sources} sources read topic {topic} ({readers}), and their state does not identify their "
    "Kafka cluster; in two clusters, these are two topics",
    "if they read the same Kafka cluster, add {option.one_cluster:true}; otherwise, omit "
    "{option.bootstrap_servers}, so that each Spark source starts at its own positions without a "
    "check",
)
START_DEPENDS_ON_JOB = refusal(
    "start-depends-on-job",
    "the partition is not in the checkpoint; Flink's start offset depends on the job's starting "
    "policy, and the state does not contain this policy",
    "choose a start with {option.new_partitions:earliest} or latest",
)
STARTS_DIFFER_BETWEEN_SOURCES = refusal(
    "starts-differ-between-sources",
    "{query}: two sources of the query start {partition} at different offsets",
    "compare the seed of each source (sources/N/0) with the positions",
)
TOPIC_GONE = refusal(
    "topic-gone",
    "the broker has no such topic{alike:did you mean}",
    "pass the job's brokers with {option.bootstrap_servers}, or omit it with {option.gone:skip}",
)
TOPIC_NAME_TAKEN = refusal(
    "topic-name-taken",
    "the checkpoint already has a topic {new}, to which {option.topic_map:{old}={new}} renames a "
    "topic",
    "rename that topic too, or omit it with {option.partitions}",
)
TOPICS_LEFT_OUT = refusal(
    "topics-left-out",
    "{side} has positions of topics {topics}, but {reader} reads these topics; after the move "
    "nothing would read the records, or a source that finds topics by a pattern would read them "
    "from the start",
    "pass that pattern with {option.topic_pattern}, or name the partitions that move with "
    "{option.partitions}",
)
