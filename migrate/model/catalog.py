"""The core's messages, one for each reason to stop a move.

``migrate explain CODE`` shows a message, and docs/reference/refusals.md lists all of them. An
extension has its own catalog. The messages are sorted by code, and the name of a message is its
code. ``migrate.model.message`` describes the templates.
"""

from __future__ import annotations

from migrate.model.message import input_error, refusal, service_error

ABORTED_TRANSACTION = refusal(
    "aborted-transaction",
    "{transactions} of a KafkaSink was aborted on the brokers; its output is lost, and a start "
    "from this checkpoint does not reprocess the records that produced it",
    "move from an older checkpoint, and accept duplicates of the output committed after that "
    "checkpoint; or add {option.allow_in_flight:true} to accept the loss",
)
ALREADY_EXISTS = refusal(
    "already-exists",
    "{path} already exists",
    "choose a new {kind}",
)
AT_LATEST_MARKER = refusal(
    "at-latest-marker",
    "the job has not read any records from this partition, so the position is still the 'latest' "
    "marker; a start at the current log end offset would skip the records written since the job "
    "started",
    "wait until the partition has a record, and move from a later checkpoint; or choose a start "
    "offset with {option.unresolved:earliest|latest|committed|timestamp:T}",
)
AUTHENTICATION_FAILED = service_error(
    "authentication-failed",
    "access denied at {servers}: {reason}",
    "check the user name, the password, and the mechanism",
)
BATCH_AND_COMMITS_MISSING = input_error(
    "batch-and-commits-missing",
    "in {location}, commits/ has no batch, the newest batch in offsets/ is {planned}, and "
    "offsets/{missing} is missing; unless the query uses asynchronous progress tracking, Spark "
    "would fail (batch {missing} doesn't exist)",
    "restore commits/ and offsets/{missing} from a backup",
)
BATCH_MISSING = input_error(
    "batch-missing",
    "in {location}, the newest batch in offsets/ is {planned}, but offsets/{missing} is missing; "
    "Spark would fail (batch {missing} doesn't exist)",
    "restore offsets/{missing} from a backup",
)
BATCH_NOT_IN_LOG = input_error(
    "batch-not-in-log",
    "{directory}: the offset log of the query no longer contains batch {batch}",
    "create a new plan from the current batch of the query",
)
BEYOND_END = refusal(
    "beyond-end",
    "next offset {next_offset} is higher than the log end offset {log_end}; either the topic was "
    "recreated, or these brokers belong to a different cluster",
    "pass the job's brokers with {option.bootstrap_servers}, or skip to the log end with "
    "{option.on_beyond_end:latest}",
)
BROKER_TIMEOUT = service_error(
    "broker-timeout",
    "no broker answered at {servers} within {seconds} s",
    "check the address, security.protocol, and the network between this machine and the broker",
)
BROKER_TIMEOUT_WITH_REASON = service_error(
    "broker-timeout-with-reason",
    "no broker answered at {servers} within {seconds} s ({reason})",
    "check the address, security.protocol, and the network between this machine and the broker",
)
CANNOT_READ_FILE = input_error(
    "cannot-read-file",
    "the file {path} cannot be read: {reason}",
    "check the path and the permissions",
)
CHANGE_NOT_CONFIRMED = refusal(
    "change-not-confirmed",
    "the change was not confirmed",
    "rerun the command and answer y, or add {option.yes:true}",
)
CLUSTER_NOT_IDENTIFIED = refusal(
    "cluster-not-identified",
    "the state of some sources does not identify their Kafka cluster (operators {operators}); "
    "their cluster may differ from the other sources' cluster {clusters}",
    "move these sources one at a time with {option.source}",
)
COMMITS_AFTER_CHANGE = refusal(
    "commits-after-change",
    "group {group} has newer commits; after the change that you want to roll back, {count:offset} "
    "changed again (the first is {partition}: {current}); they were committed either by another "
    "client, or by a run of migrate whose rollback file is in a different directory",
    "keep the newer commits; or add {option.force:true} to roll back anyway ({cost})",
)
COMMITS_BEYOND_OFFSETS = input_error(
    "commits-beyond-offsets",
    "in {location}, the newest batch in commits/ is {committed}, but the newest batch in offsets/ "
    "is {planned}; Spark would rerun a committed batch and then fail",
    "restore offsets/ from a backup",
)
COMMITS_BEYOND_POSITIONS = refusal(
    "commits-beyond-positions",
    "the job kept running after this checkpoint; the committed offsets of Flink's group are "
    "{records:record} ahead of the checkpoint in {partitions:partition} (the first is {first}: "
    "committed {committed}, checkpoint {next_offset}); Flink's output for these records would be "
    "duplicated",
    "stop the job with a savepoint, and move from that savepoint; if the job has ended, move from "
    "its newest checkpoint; or add {option.allow_ran_on:true} to accept the duplicates",
)
COMMITS_MISSING = input_error(
    "commits-missing",
    "in {location}, the newest batch in commits/ is {committed}, but the newest batch in offsets/ "
    "is {planned}; Spark would resume after an uncommitted batch",
    "restore commits/ from a backup",
)
COMMITTED_MARKER_OFFLINE = refusal(
    "committed-marker-offline",
    "the job has not read any records from this partition, so the position is still the "
    "'committed' marker; only a broker can resolve this marker",
    "pass Flink's own group with {option.bootstrap_servers:HOST:PORT} and "
    "{option.source_group:GROUP}, or choose a start offset with "
    "{option.unresolved:earliest|latest|committed|timestamp:T}",
)
CONNECTION_CLOSED = service_error(
    "connection-closed",
    "{servers} closed the connection; the port may not be a Kafka listener, or it may require TLS "
    "or credentials (security.protocol is {protocol})",
    "check the address and that the broker is running, or pass {option.kafka_config:FILE} "
    "(docs/how-to/secured-kafka.md)",
)
CONTROL_BATCH = input_error(
    "control-batch",
    "the file {path} belongs to a control batch, which reads no records; migrate cannot determine "
    "the offsets from which the query will resume",
    "rerun the command after the query has committed another batch",
)
COORDINATOR_NOT_READY = service_error(
    "coordinator-not-ready",
    "group {group}: the group coordinator was not ready within {seconds} s ({reason})",
    "rerun the command",
)
COPY_AMBIGUOUS = refusal(
    "copy-ambiguous",
    "several offsets in the target's log match the position in the job's log",
    "to start at the first of these offsets, add {option.on_ambiguous:first}; this loses no "
    "records, but duplicates {records}",
)
COPY_DUPLICATED = refusal(
    "copy-duplicated",
    "the target's log contains duplicates from the position onward",
    "if the mirror is still copying, wait with {option.wait:5m}; otherwise, start at the first "
    "matching offset with {option.on_ambiguous:first}; this loses no records, but duplicates "
    "{records}",
)
COPY_DUPLICATED_SINCE_PLAN = refusal(
    "copy-duplicated-since-plan",
    "{partition}: the planned offset may be too low ({outcome}), so starting at this offset may "
    "duplicate records",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
COPY_ELSEWHERE_SINCE_PLAN = refusal(
    "copy-elsewhere-since-plan",
    "{partition}: the plan starts at offset {next_offset}, but the record that follows {position} "
    "in the job's cluster has offset {found} in the target's cluster",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
COPY_EXPIRED = refusal(
    "copy-expired",
    "the target's log starts {records} after the position, so it lacks records that the job has "
    "not read",
    "mirror the topic again, or move from a newer checkpoint if the target's log contains every "
    "record after that checkpoint",
)
COPY_FILTERED = refusal(
    "copy-filtered",
    "the mirror skipped {records} of the log in the job's cluster, but copied a later record",
    "mirror all records of the topic to a new topic, in their original order",
)
COPY_FOREIGN = refusal(
    "copy-foreign",
    "the target's log contains {records} that the log in the job's cluster does not contain",
    "other clients write to the topic, or wrote to it before the mirror finished; mirror the "
    "job's topic to a topic without other writers",
)
COPY_LAGGING = refusal(
    "copy-lagging",
    "the mirror has not copied {records} yet",
    "wait for the mirror with {option.wait:5m}",
)
COPY_LOST_SINCE_PLAN = refusal(
    "copy-lost-since-plan",
    "{partition}: the planned offset cannot be matched with certainty ({reason})",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
COPY_MISSING = refusal(
    "copy-missing",
    "the position was not found in the copy of the topic: {reason}",
    "check that {option.topic_map} specifies the correct copy of the topic, and that the mirror "
    "keeps each record in the same partition",
)
COPY_NOT_STARTED = refusal(
    "copy-not-started",
    "the mirror has not copied any records yet",
    "wait for the mirror with {option.wait:5m}",
)
COPY_REPARTITIONED = refusal(
    "copy-repartitioned",
    "the mirror copied {records} to partitions other than the original partitions",
    "mirror the job's topic to a new topic, and configure the mirror to keep each record's "
    "partition",
)
COPY_TOPIC_MISSING = refusal(
    "copy-topic-missing",
    "the copy of topic {topic} should be topic {name}, but the target's cluster has no topic "
    "{name}{alike:did you mean}",
    "specify the copy with {option.topic_map:{topic}=NAME}",
)
COPY_WITH_OTHER_PARTITIONS = refusal(
    "copy-with-other-partitions",
    "topic {topic} has {partitions:partition}, but {name} in the target's cluster has {copied}; "
    "the partition of a copied record cannot be determined",
    "copy topic {topic} to a topic with the same number of partitions",
)
CREDENTIALS_IN_URI = input_error(
    "credentials-in-uri",
    "migrate refuses credentials in a URL, because it would print and save them ({uri})",
    "remove the credentials from the URL, and set them where the object store's library reads "
    "them (AWS_PROFILE, AZURE_STORAGE_…, Hadoop's configuration)",
)
CREDENTIALS_WITH_QUOTES = service_error(
    "credentials-with-quotes",
    "access denied at {servers}: {reason}",
    "check {properties}; quotes and ${{…}} are taken literally, as part of the value",
)
CSV_HEADER = input_error(
    "csv-header",
    "line {line} of {path} is a header",
    "remove this line",
)
CSV_LINE_TOO_LONG = input_error(
    "csv-line-too-long",
    "line {line} of {path} is longer than {limit} characters",
    "pass a file exported by kafka-consumer-groups, in which each line has the form "
    "topic,partition,offset",
)
CSV_PASSED_AS_JSON = input_error(
    "csv-passed-as-json",
    "the file {path} is CSV, not JSON",
    "pass it as csv:{path}",
)
CUT_OVER_RECORD_SHOWN = input_error(
    "cut-over-record-shown",
    "{name}: this file is the record of a cut-over",
    "to read the record, open record.html in the same directory; the plan is in plan.json, also "
    "in that directory",
)
DESCRIBE_DENIED = service_error(
    "describe-denied",
    "access to {subject} is denied",
    "grant this user DESCRIBE on {resource}",
)
DESCRIBE_OUTPUT = input_error(
    "describe-output",
    "the file {path} is the table that kafka-consumer-groups --describe prints",
    "pass the group as group:NAME, or export the offsets with --reset-offsets --to-current "
    "--dry-run --export",
)
EARLIER_OFFSET_BEYOND_END = refusal(
    "earlier-offset-beyond-end",
    "{partition}: the group's earlier offset {offset} is higher than the log end offset; the log "
    "now contains offsets {start} to {end}",
    "add {option.force:true} to restore the offset anyway",
)
EARLIER_OFFSET_EXPIRED = refusal(
    "earlier-offset-expired",
    "{partition}: the group's earlier offset {offset} is below the log start offset; the log now "
    "contains offsets {start} to {end}",
    "add {option.force:true} to restore the offset anyway",
)
EARLIER_PARTITION_GONE = refusal(
    "earlier-partition-gone",
    "{partition}: the group's earlier offset {offset} belongs to a partition that no longer exists",
    "add {option.force:true} to omit the offset",
)
EARLIER_TOPIC_RECREATED = refusal(
    "earlier-topic-recreated",
    "{partition}: the group's earlier offset {offset} belongs to a topic that was recreated; the "
    "log now contains offsets {start} to {end}",
    "add {option.force:true} to restore the offset anyway",
)
EARLIEST_MARKER_OFFLINE = refusal(
    "earliest-marker-offline",
    "the job has not read any records from this partition, so the position is still the "
    "'earliest' marker; only a broker can resolve this marker",
    "add {option.bootstrap_servers:HOST:PORT}",
)
EARLIEST_NOT_RESOLVED = refusal(
    "earliest-not-resolved",
    "{side}: the position of {partition} is earliest, not an offset",
    "to resolve the position, add {option.bootstrap_servers:HOST:PORT}",
)
EXPECTED_POSITIONS_AMBIGUOUS = refusal(
    "expected-positions-ambiguous",
    "{chk}: {sources} sources read topic {topic} ({readers}), and their state does not identify "
    "their Kafka cluster; if the clusters differ, these are different topics with the same name",
    "choose one source with {option.source:OPERATOR_ID}, add {option.one_cluster:true} if the "
    "sources read the same Kafka cluster, or verify the plan that was applied (plan:FILE)",
)
EXPECTED_POSITIONS_DIFFER = refusal(
    "expected-positions-differ",
    "{chk}: {sources} sources of topic {topic} have different positions in {count} of its "
    "partitions (operators {operators}; {partition}: {starts})",
    "choose one source with {option.source:OPERATOR_ID}, or verify the plan that was applied "
    "(plan:FILE)",
)
EXPIRED = refusal(
    "expired",
    "next offset {next_offset} is below the log start offset {log_start}; up to {lost} records "
    "were deleted",
    "move from a newer checkpoint, or continue after the gap with {option.on_expired:earliest}",
)
FILE_EDITED = input_error(
    "file-edited",
    "the {kind} {path} was edited (its checksum does not match)",
    "{way_out}",
)
FILE_EMPTY = input_error(
    "file-empty",
    "the file {path} is empty, so it is not a {name}",
    "{way_out}",
)
FILE_INSIDE_CHECKPOINT = refusal(
    "file-inside-checkpoint",
    "{path} is inside a Flink checkpoint or savepoint ({directory}), so Flink may delete it",
    "choose a path outside of checkpoints and savepoints",
)
FILE_INVALID = input_error(
    "file-invalid",
    "the file {path} is not a valid {name} ({field}: {problem})",
    "{way_out}",
)
FILE_MISSING = input_error(
    "file-missing",
    "the file {path} does not exist{alike:did you mean}",
    "{way_out}",
)
FILE_NOT_JSON = input_error(
    "file-not-json",
    "the file {path} is not a {name}, because it is not valid JSON ({problem})",
    "{way_out}",
)
FILE_OF_MIGRATE = input_error(
    "file-of-migrate",
    "the file {path} was written by `migrate`, so it does not contain startingOffsets",
    "to show it, run `migrate show {path}`",
)
FILE_OF_OTHER_KIND = input_error(
    "file-of-other-kind",
    "the file {path} is a {other}, not a {name}",
    "{way_out}; to show this {other}, run `migrate show {path}`",
)
FILE_OF_OTHER_VERSION = input_error(
    "file-of-other-version",
    "the file {path} has version {version}, but this release of `migrate` requires a {name}",
    "use the release that wrote the file",
)
FILE_OF_UNKNOWN_KIND = input_error(
    "file-of-unknown-kind",
    "the file {path} is not a {name}",
    "{way_out}",
)
FILE_TOO_LARGE = refusal(
    "file-too-large",
    "the file {path} would be {size} bytes long, but `migrate` reads at most {limit} bytes",
    "move fewer partitions at a time with {option.partitions}",
)
FIRST_BATCH_UNCOMMITTED = refusal(
    "first-batch-uncommitted",
    "the query at {location} has started its first batch but not committed it, and may have "
    "written some records of the batch",
    "start the query once with trigger(availableNow=True) to commit the batch; if the batch cannot "
    "succeed, discard this location, and pass the checkpoint or savepoint from which `migrate "
    "to-spark` wrote it, which duplicates the records that the batch has written",
)
FLINK_CHECKPOINT_AS_QUERY = input_error(
    "flink-checkpoint-as-query",
    "{path} is a Flink checkpoint, not the checkpoint location of a Spark query",
    "pass the checkpoint location of a query as spark:DIR; or, where a Flink checkpoint is "
    "accepted, omit the prefix spark:",
)
FLINK_ERROR = service_error(
    "flink-error",
    "{option.flink_rest:{address}}: Flink answered {status} {reason}",
    "check that this is the address of the JobManager, and read the JobManager's log",
)
FLINK_NOT_QUERIED_SINCE_PLAN = refusal(
    "flink-not-queried-since-plan",
    "the plan was made with {option.flink_rest}; without this option, migrate cannot determine "
    "whether the job was restarted after the plan was made",
    "add {option.flink_rest:URL}; or make a new plan without this option, and check for a restart "
    "with {option.source_group:G} (the job's group)",
)
FLINK_TIMEOUT = service_error(
    "flink-timeout",
    "{option.flink_rest:{address}}: no complete answer within {seconds} s",
    "check that this is the address of the JobManager, and that the JobManager is running",
)
FLINK_UNREACHABLE = service_error(
    "flink-unreachable",
    "{option.flink_rest:{address}}: no answer ({reason})",
    "check that this is the address of the JobManager, and that the JobManager is running",
)
GROUP_ACTIVE = refusal(
    "group-active",
    "group {group} has {count:member} ({members:5})",
    "first stop all members of the group (a killed member stays in the group until its session "
    "times out, by default after 45 s)",
)
GROUP_AHEAD_OF_QUERY = refusal(
    "group-ahead-of-query",
    "group {group} is ahead of the query in {count:partition} (the first is {partition}: "
    "{current}, but the query is at {next_offset}); another client or a different migrate command "
    "has committed for the group, or the query restarted from scratch",
    "add {option.allow_moved_on:true} to rewind the group, or choose a different group",
)
GROUP_BECAME_ACTIVE = refusal(
    "group-became-active",
    "members joined group {group} before the commit ({reason})",
    "stop all members of the group, and rerun the command",
)
GROUP_CHANGED = refusal(
    "group-changed",
    "{count:offset} of group {group} changed after the group was read (the first is {partition}: "
    "from {old} to {new})",
    "stop all clients that commit for the group, and rerun the command",
)
GROUP_CHANGED_SINCE_PLAN = refusal(
    "group-changed-since-plan",
    "the group's offsets have changed: {partitions:5}",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
GROUP_HAS_NEWER_COMMITS = refusal(
    "group-has-newer-commits",
    "group {group} has newer commits, by another client or by a run of migrate whose rollback "
    "file is in a different directory; the planned commit would rewind {count:offset} (the first "
    "is {partition}: from {current} to {next_offset}), and consumers would reprocess up to "
    "{records:record}",
    "add {option.allow_moved_on:true} to rewind the group",
)
GROUP_LEADER_EPOCH_CHANGED = refusal(
    "group-leader-epoch-changed",
    "{count:offset} of group {group} changed after the group was read (the first is {partition}: "
    "{offset} with a different leader epoch)",
    "stop all clients that commit for the group, and rerun the command",
)
GROUP_METADATA_CHANGED = refusal(
    "group-metadata-changed",
    "{count:offset} of group {group} changed after the group was read (the first is {partition}: "
    "{offset} with different metadata)",
    "stop all clients that commit for the group, and rerun the command",
)
GROUP_METADATA_NOT_UTF_8 = refusal(
    "group-metadata-not-utf-8",
    "group {group}: the metadata of {partition} is not UTF-8; a rollback file cannot store it, so "
    "a change could not be undone",
    "choose a different group",
)
GROUP_MISSING = refusal(
    "group-missing",
    "group {group} does not exist{alike:did you mean}, so it has no committed offsets",
    "pass the name of an existing group, or move from a checkpoint of the job",
)
GROUP_OFFSET_UNREADABLE = service_error(
    "group-offset-unreadable",
    "group {group}: the offset of {partition} cannot be read: {reason}",
    "check the state of the brokers, and rerun the command",
)
GROUP_OVERWRITTEN = service_error(
    "group-overwritten",
    "group {group}: after the commit, {failed} of {count:offset} in the group differ from the "
    "committed offsets (the first is {partition}), so another client may be committing offsets for "
    "the group",
    "stop the other client, or choose a different group",
)
GROUP_TRANSACTION_OPEN = service_error(
    "group-transaction-open",
    "group {group}: an open transaction contains offsets of {count:partition} (the first is "
    "{partition}) and did not end within {seconds} s; until the transaction ends, the offsets of "
    "the group cannot be determined",
    "stop the producer of the transaction, and rerun the command after Kafka has ended the "
    "transaction",
)
JOB_HAS_LATER_OUTPUT = refusal(
    "job-has-later-output",
    "the job has written output after this checkpoint; {evidence}",
    "{how_to_stop}, and move from that savepoint; or add {option.allow_ran_on:true} to accept "
    "duplicates of this output",
)
JOB_HAS_LATER_OUTPUT_AFTER_PLAN = refusal(
    "job-has-later-output-after-plan",
    "the job has written output after this checkpoint; {evidence}",
    "{how_to_stop}, and move from that savepoint; or make a new plan with "
    "{option.allow_ran_on:true} to accept duplicates of this output",
)
JOB_HAS_NEWER_OFFSETS = refusal(
    "job-has-newer-offsets",
    "the job has written output after this checkpoint; {evidence}",
    "{how_to_stop}, and move from that savepoint",
)
JOB_KEPT_RUNNING = refusal(
    "job-kept-running",
    "the job kept running; {sign}",
    "{how_to_stop}, and move from that savepoint",
)
JOB_MAY_HAVE_RESTARTED = refusal(
    "job-may-have-restarted",
    "the job may be running again; {evidence}",
    "if the job is running, {how_to_stop}, and move from that savepoint; otherwise, add "
    "{option.allow_ran_on:true}",
)
JOB_MAY_HAVE_RESTARTED_AFTER_PLAN = refusal(
    "job-may-have-restarted-after-plan",
    "the job may be running again; {evidence}",
    "if the job is running, {how_to_stop}, and move from that savepoint; otherwise, make a new "
    "plan with {option.allow_ran_on:true}",
)
JOB_OVERWRITES_GROUP = refusal(
    "job-overwrites-group",
    "a job is still running; {evidence}",
    "{how_to_stop} first, because the job overwrites the group's offsets{if_different}",
)
JOB_RUNNING = refusal(
    "job-running",
    "a job is still running; {evidence}",
    "{how_to_stop} first, or add {option.allow_ran_on:true} to accept duplicates of its output"
    "{if_different}",
)
JOB_RUNNING_AFTER_PLAN = refusal(
    "job-running-after-plan",
    "a job is still running; {evidence}",
    "{how_to_stop} first, or make a new plan with {option.allow_ran_on:true} to accept duplicates "
    "of its output{if_different}",
)
JSON_PASSED_AS_CSV = input_error(
    "json-passed-as-csv",
    "the file {path} is JSON, not CSV",
    "pass it as json:{path}",
)
KAFKA_REQUEST_FAILED = service_error(
    "kafka-request-failed",
    "a Kafka request for {subject} failed ({reason})",
    "check the state of the brokers, and rerun the command",
)
KEPT_PARTITIONS = refusal(
    "kept-partitions",
    "operator {operator} would keep its offsets for {partitions}, but these are offsets in the "
    "job's cluster, not in the target's cluster",
    "take a savepoint while the source reads all its partitions, or start the job without the "
    "state of this source",
)
LATER_CHANGE = refusal(
    "later-change",
    "after the change that you want to roll back, migrate changed {count:offset} of group {group} "
    "again (the first is {partition}: {current}; rollback file {newest})",
    "first run `migrate rollback {newest}`; or add {option.force:true} to undo both changes "
    "({cost})",
)
LATEST_MARKER_OFFLINE = refusal(
    "latest-marker-offline",
    "the job has not read any records from this partition, so the position is still the 'latest' "
    "marker; only a broker can resolve this marker",
    "wait until the partition has a record, and move from a later checkpoint; or choose a start "
    "offset with {option.unresolved:earliest|latest|committed|timestamp:T}",
)
LOCATION_AND_SINK_OVERLAP = refusal(
    "location-and-sink-overlap",
    "{directory} and the sink {sink} are the same directory, or one contains the other",
    "choose two separate directories",
)
LOCATION_IN_USE = refusal(
    "location-in-use",
    "{directory} is already the checkpoint location of a query",
    "choose a new directory",
)
LOCATION_INSIDE_CHECKPOINT = refusal(
    "location-inside-checkpoint",
    "{directory} is inside a Flink checkpoint or savepoint ({path}), so Flink may delete it",
    "choose a directory outside of checkpoints and savepoints",
)
LOCATION_INSIDE_QUERY = refusal(
    "location-inside-query",
    "{directory} is inside the checkpoint location of a Spark query ({path}), so the files of the "
    "two queries would be mixed",
    "choose a directory outside of this location",
)
LOCATION_INSIDE_TABLE = refusal(
    "location-inside-table",
    "{directory} is inside a directory or table of output ({path} contains {log}), so readers of "
    "the output may read its files, and a cleanup of the output, such as VACUUM, may delete them",
    "choose a directory outside of this output, or a name that starts with _",
)
LOCATION_IS_CHECKPOINT = refusal(
    "location-is-checkpoint",
    "{directory} is a Flink savepoint or checkpoint directory, which is the input of a move",
    "pass it as CHK, and choose a new directory for {option.checkpoint_dir}",
)
LOCATION_NOT_A_DIRECTORY = refusal(
    "location-not-a-directory",
    "{directory} is a file or a symbolic link, or one of its parent directories is a file",
    "choose a directory",
)
LOCATION_NOT_EMPTY = refusal(
    "location-not-empty",
    "{directory} is not empty",
    "choose a new directory",
)
LOCATION_UNFINISHED = refusal(
    "location-unfinished",
    "{directory} is an unfinished checkpoint location; a run is still writing it, or a run was "
    "interrupted",
    "if no run is active, remove the directory",
)
LOG_END_DECREASED = refusal(
    "log-end-decreased",
    "log end offsets have decreased: {partitions:5}; records were lost, or a topic was recreated "
    "(before Kafka 2.8, topics have no IDs that would show this)",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
LOG_ENTRY_DAMAGED = input_error(
    "log-entry-damaged",
    "the file {path} is damaged: {problem}",
    "restore it from a backup of the checkpoint location",
)
LOG_ENTRY_EMPTY = input_error(
    "log-entry-empty",
    "the file {path} is empty; either a query is still writing it, or a crash of the object store "
    "left it behind",
    "rerun the command; if the file is still empty, remove it, because Spark fails on it",
)
LOG_VERSION_UNKNOWN = input_error(
    "log-version-unknown",
    "the file {path} has the unknown version {version!r}; the known versions are {known}",
    "use a release of `migrate` that reads the files of this Spark version",
)
NEW_PARTITION = refusal(
    "new-partition",
    "the partition is not {where}",
    "choose a start offset with {option.new_partitions:earliest} or latest",
)
NO_BATCH_COMMITTED = refusal(
    "no-batch-committed",
    "the query at {location} has not committed a batch",
    "pass the checkpoint or savepoint from which `migrate to-spark` wrote this location; if the "
    "query runs in Real-Time Mode, starting from that checkpoint duplicates the query's output",
)
NO_BROKER = service_error(
    "no-broker",
    "no broker answered at {servers} ({reason})",
    "check the address, and check that the broker is running",
)
NO_CHECKPOINT_LOCATION = input_error(
    "no-checkpoint-location",
    "the directory {location} does not exist{alike:did you mean}",
    "pass the checkpointLocation of a query",
)
NO_COMMITTED_OFFSET = refusal(
    "no-committed-offset",
    "the job has not read any records from this partition, so the position is still the "
    "'committed' marker, but group {group!r} has no committed offset for this partition",
    "pass Flink's own group with {option.source_group:GROUP}, or choose a start offset with "
    "{option.unresolved:earliest|latest|timestamp:T}",
)
NO_COMMITTED_OFFSET_TO_START_AT = refusal(
    "no-committed-offset-to-start-at",
    "{problem}, and the group in {option.source_group} has no offset for "
    "{option.unresolved:committed}",
    "pass Flink's own group with {option.source_group:GROUP}, or choose a start offset with "
    "{option.unresolved:earliest|latest|timestamp:T}",
)
NO_COMMITTED_OFFSETS = refusal(
    "no-committed-offsets",
    "group {group} has no committed offsets",
    "check the name of the group, or move from a checkpoint of the job",
)
NO_COMPLETE_CHECKPOINT = input_error(
    "no-complete-checkpoint",
    "{chk} contains no complete checkpoint (chk-N)",
    "pass a job's checkpoint directory",
)
NO_KAFKA_SEED = input_error(
    "no-kafka-seed",
    "{location} contains no start offsets of a Kafka source (sources/0/0)",
    "pass a checkpoint location that migrate to-spark has written",
)
NO_KAFKA_SOURCE_IN_QUERY = input_error(
    "no-kafka-source-in-query",
    "the query at {location} reads no Kafka source",
    "pass the checkpointLocation of a query that reads Kafka",
)
NO_OFFSET = refusal(
    "no-offset",
    "no partition has an offset, so there is nothing to move",
    "choose a checkpoint that the job took after it read its first record",
)
NO_OFFSET_TO_WRITE = refusal(
    "no-offset-to-write",
    "{side} has no offset to write",
    "choose a side with offsets",
)
NO_OFFSETS_IN_FILE = input_error(
    "no-offsets-in-file",
    "the file {path} contains no offsets",
    "pass a file with at least one offset",
)
NO_POSITION = refusal(
    "no-position",
    "{side} has no position for {partitions}, but {reader} reads these partitions",
    "to leave them unchanged, pass only the other partitions with {option.partitions}; to choose "
    "start offsets for them, add {option.bootstrap_servers} and {option.new_partitions:earliest} "
    "or latest",
)
NO_QUERY_AT_LOCATION = input_error(
    "no-query-at-location",
    "{location} contains neither a committed batch nor the initial offsets of a Kafka source "
    "(sources/0/0){alike:did you mean}",
    "pass the checkpointLocation of a micro-batch query",
)
NO_QUERY_ID = input_error(
    "no-query-id",
    "the file {location}/metadata with the query's ID is missing; Spark either does not start the "
    "query, or starts it with a new ID",
    "restore this file from a backup",
)
NO_SASL_AT_LISTENER = service_error(
    "no-sasl-at-listener",
    "access denied at {servers}, because this listener offers no SASL: {reason}",
    "check security.protocol and the port",
)
NO_SOURCE_GROUP = refusal(
    "no-source-group",
    "the job has not read any records from this partition, so the position is still the "
    "'committed' marker; only Flink's own consumer group has the start offset",
    "pass Flink's own group with {option.source_group:GROUP}, or choose a start offset with "
    "{option.unresolved:earliest|latest|timestamp:T}",
)
NO_SUCH_PARTITION = refusal(
    "no-such-partition",
    "{option.partitions} lists {partitions:1}, but neither the checkpoint nor the broker has such "
    "partitions",
    "pass existing partitions",
)
NOT_A_CONSUMER_GROUP = refusal(
    "not-a-consumer-group",
    "group {group} is not a consumer group; it may be a share group or a streams group",
    "choose a different group",
)
NOT_A_JOB_MANAGER = service_error(
    "not-a-job-manager",
    "{option.flink_rest:{address}}: the service at this address is not a JobManager",
    "pass the address of the Flink web UI",
)
NOT_AMONG_POSITIONS = refusal(
    "not-among-positions",
    "the positions do not contain the partition, and the start offset of its reader is unknown",
    "choose a start offset with {option.new_partitions:earliest} or latest",
)
NOT_OFFSETS = input_error(
    "not-offsets",
    "{place} does not contain valid offsets: {problem}",
    "use the format {format}",
)
NOT_ON_BROKER = refusal(
    "not-on-broker",
    "the broker does not have {partitions}, but {reader} reads these partitions",
    "pass the job's brokers with {option.bootstrap_servers}, or remove these partitions from the "
    "state with {option.gone:skip}",
)
NOT_UTF_8 = input_error(
    "not-utf-8",
    "the file {path} is not UTF-8 text ({reason})",
    "save it as UTF-8",
)
NOTHING_SELECTED = refusal(
    "nothing-selected",
    "no partition in {option.partitions} has an offset; the checkpoint contains {partitions:3}",
    "pass some of these partitions in the form TOPIC:PARTITIONS ({option.partitions:{example}})",
)
OTHER_JOB_MAY_OVERWRITE_GROUP = refusal(
    "other-job-may-overwrite-group",
    "{evidence}; however, {other_running}; if that job commits for the group, it overwrites the "
    "group's offsets, and Flink does not show the group of a job",
    "stop that job first; or, if it commits for a different group, omit {option.flink_rest} (also "
    "when you save a plan); to check for a restart without this option, add "
    "{option.source_group:G}, where G is the group of the job that you move",
)
OFFSETS_NOT_COMMITTED = service_error(
    "offsets-not-committed",
    "group {group}: {failed} of {count:offset} could not be committed (the first is {partition}: "
    "{reason})",
    "fix the cause, and rerun the command",
)
ONE_CLUSTER_FOR_BOTH = refusal(
    "one-cluster-for-both",
    "the brokers of the job and the brokers of the target belong to the same cluster ({cluster}), "
    "so topic {topics:5} would be compared with itself",
    "pass the brokers of the target's cluster with {option.to_bootstrap_servers} or "
    "{option.to_kafka_config}; if the target reads the job's cluster, omit both options",
)
ONE_GROUP_FOR_SEVERAL_SOURCES = refusal(
    "one-group-for-several-sources",
    "{count} sources are still at the 'committed' marker (operators {operators}), but "
    "{option.source_group} specifies the group of one source",
    "move these sources one at a time with {option.source}",
)
OPEN_TRANSACTION = refusal(
    "open-transaction",
    "{transactions} of a KafkaSink is still open on the brokers; its output will be lost when the "
    "transaction times out",
    "restore the job from this checkpoint once, let it commit, and stop it with a new savepoint; "
    "or add {option.allow_in_flight:true} to accept the loss",
)
PARTITION_CREATED_SINCE_PLAN = refusal(
    "partition-created-since-plan",
    "some partitions did not exist when the plan was created, but exist now: {partitions}",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
PARTITION_DELETED_SINCE_PLAN = refusal(
    "partition-deleted-since-plan",
    "partitions were deleted since the plan was created: {partitions}",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
PARTITION_GONE = refusal(
    "partition-gone",
    "the broker has no such partition",
    "pass the job's brokers with {option.bootstrap_servers}, or omit the partition with "
    "{option.gone:skip}",
)
PARTITION_NEW_SINCE_PLAN = refusal(
    "partition-new-since-plan",
    "partitions are new since the plan was created: {partitions}",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
PARTITION_OF_MAP_MISSING = refusal(
    "partition-of-map-missing",
    "topic {new} has no such partition",
    "add partitions to topic {new}, or correct {option.topic_map:{old}={new}}",
)
PATH_IS_DIRECTORY = input_error(
    "path-is-directory",
    "{path} is a directory, not a file",
    "{way_out}",
)
PLAN_ALREADY_APPLIED = refusal(
    "plan-already-applied",
    "the group already has every offset in the plan, so the plan was already applied",
    "to move the group again, create a new plan with {option.plan_out}",
)
PLAN_ALREADY_IN_LOCATION = refusal(
    "plan-already-in-location",
    "{directory} contains exactly the start offsets of the plan, so the plan was already applied, "
    "and no query has started from this location",
    "start the query from it, or choose a new directory",
)
PLAN_FOR_OTHER_CLUSTER = refusal(
    "plan-for-other-cluster",
    "the brokers belong to cluster {cluster}, but the plan is for cluster {planned}",
    "check the value of {option.bootstrap_servers}, and create a new plan only if the job has "
    "moved to this cluster",
)
PLAN_FOR_OTHER_TARGET_CLUSTER = refusal(
    "plan-for-other-target-cluster",
    "the target's brokers belong to cluster {cluster}, but the target of the plan reads cluster "
    "{planned}",
    "pass the brokers of cluster {planned} with {option.to_bootstrap_servers} or "
    "{option.to_kafka_config}, and create a new plan only if the target has moved",
)
PLAN_OF_VERSION_1 = input_error(
    "plan-of-version-1",
    "an older release wrote the plan {path} (version 1), so the plan has no checksum",
    "create a new plan with {option.plan_out}",
)
PLANNED_OFFSET_OUTSIDE_LOG = refusal(
    "planned-offset-outside-log",
    "the logs no longer contain next offsets of the plan: {partitions:5}",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
PLANNED_RECORDS_DELETED = refusal(
    "planned-records-deleted",
    "{partition}: the records that were compared for the plan are no longer in the job's cluster",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
POSITION_NOT_RESOLVED = refusal(
    "position-not-resolved",
    "{side}: the position of {partition} is {state}, not an offset",
    "choose a side with known offsets, or omit {option.format}",
)
POSITION_UNKNOWN = refusal(
    "position-unknown",
    "the next offset is unknown: {reason}",
    "choose a start offset with {option.unresolved:earliest|latest|committed|timestamp:T}",
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
    "cluster, add {option.one_cluster:true} and {option.merge_sources:min} to use the lower "
    "offsets",
)
POSITIONS_NOT_READABLE_AGAIN = input_error(
    "positions-not-readable-again",
    "{pointer}: the positions from which the plan was created can no longer be read",
    "create a new plan",
)
PROGRESS_REPORT = input_error(
    "progress-report",
    "the file {path} is a progress report of a Spark query",
    "save the endOffset of its Kafka source to a new file, and pass this file (endOffset has the "
    "format of startingOffsets)",
)
QUERY_BEYOND_END = refusal(
    "query-beyond-end",
    "{partition}: the query's next offset {next_offset} is higher than the log end offset "
    "{log_end}; either these brokers belong to a different cluster, or the topic was recreated",
    "pass the brokers of the query's cluster with {option.bootstrap_servers}; or, if the topic "
    "was recreated, start the query with a new checkpoint location",
)
QUERY_ID_UNREADABLE = input_error(
    "query-id-unreadable",
    "the file {path} does not contain a query ID",
    "restore it from a backup",
)
QUERY_IS_FILE = input_error(
    "query-is-file",
    "{path} is a file, not the checkpoint location of a query{alike:did you mean}",
    "pass the checkpointLocation of a query",
)
QUERY_METADATA_MISSING = input_error(
    "query-metadata-missing",
    "{directory}: the checkpoint location has no metadata file, so the query cannot be identified",
    "pass the complete checkpoint location of the query",
)
QUERY_PARTITIONS_MISSING = refusal(
    "query-partitions-missing",
    "{partition}: these brokers have neither this partition nor any other partition that the "
    "query reads",
    "pass the brokers of the query's cluster with {option.bootstrap_servers}",
)
QUERY_PROGRESS_UNKNOWN = refusal(
    "query-progress-unknown",
    "cannot determine whether the query has continued since the plan; {problem}",
    "create a new plan from the query's checkpoint location with {option.plan_out}",
)
QUERY_START_UNKNOWN = input_error(
    "query-start-unknown",
    "the start positions of the query at {location} are unknown, because the file with the "
    "initial offsets of its Kafka source (sources/0/0) is missing",
    "restore this file from a backup",
)
READ_DENIED = service_error(
    "read-denied",
    "`migrate` has to compare the records of topic {topic}, but access to them is denied",
    "grant this user READ on topic {topic}",
)
READER_CLUSTER_UNKNOWN = refusal(
    "reader-cluster-unknown",
    "migrate cannot determine whether operator {operator} reads {partitions}, because the state "
    "of operator {operator} or {others} does not identify the Kafka cluster",
    "choose a source with {option.source}, and its partitions with {option.partitions}",
)
READER_KEPT_RUNNING = refusal(
    "reader-kept-running",
    "the {reader} kept running; {sign}",
    "stop the {reader}, and move again from its new positions",
)
READER_UNKNOWN = refusal(
    "reader-unknown",
    "{count} sources read other partitions of the topic, so migrate cannot determine which source "
    "reads {partition}",
    "choose a source with {option.source}, and its partitions with {option.partitions}",
)
READERS_OVERLAP = refusal(
    "readers-overlap",
    "operators {operator} and {others} have partitions in common, so migrate cannot determine "
    "whether operator {operator} reads {partitions}",
    "choose a source with {option.source}, and its partitions with {option.partitions}",
)
RECORDS_TIMEOUT = service_error(
    "records-timeout",
    "no records of {partition} were read within {seconds} s",
    "check that this machine can reach the leader of the partition",
)
ROLLBACK_FILE_WITHOUT_CHECKSUM = input_error(
    "rollback-file-without-checksum",
    "{path}: the rollback file has no checksum, so it may have been edited",
    "pass the original file; for a file from release 0.2.0 or earlier, use the release that wrote "
    "it",
)
ROLLBACK_FOR_OTHER_CLUSTER = refusal(
    "rollback-for-other-cluster",
    "the brokers belong to cluster {cluster}, but the rollback file was written for cluster "
    "{saved}",
    "pass the brokers of cluster {saved} with {option.bootstrap_servers} (the file contains "
    "{servers})",
)
SAME_TOPIC_TWO_CLUSTERS = refusal(
    "same-topic-two-clusters",
    "{sources} sources read topic {topic} ({readers}), and their state does not identify their "
    "Kafka cluster; if the clusters differ, these are different topics with the same name",
    "choose one source with {option.source:OPERATOR_ID}, or add {option.one_cluster:true} if all "
    "sources read the same Kafka cluster",
)
SAVEPOINT_AGED = refusal(
    "savepoint-aged",
    "this savepoint was written {days:day} ago; if the job has been restarted from it, the job's "
    "later output will be duplicated",
    "to check for a restart, add {option.flink_rest:URL} (Flink's JobManager) or "
    "{option.source_group:G} (the job's group); if you know that the job was not restarted, add "
    "{option.allow_ran_on:true}",
)
SAVEPOINT_AGED_AFTER_PLAN = refusal(
    "savepoint-aged-after-plan",
    "this savepoint was written {days:day} ago; if the job has been restarted from it, the job's "
    "later output will be duplicated",
    "to check for a restart, add {option.flink_rest:URL} (Flink's JobManager), or make a new plan "
    "with {option.source_group:G} (the job's group); if you know that the job was not restarted, "
    "make a new plan with {option.allow_ran_on:true}",
)
SAVEPOINT_AGED_NOT_IN_FLINK = refusal(
    "savepoint-aged-not-in-flink",
    "this savepoint was written {days:day} ago, and the JobManager does not show whether the job "
    "has been restarted from it; if it has, the job's later output will be duplicated",
    "to check for a restart, add {option.source_group:G} (the job's group); if you know that the "
    "job was not restarted, add {option.allow_ran_on:true}",
)
SAVEPOINT_AGED_NOT_IN_FLINK_AFTER_PLAN = refusal(
    "savepoint-aged-not-in-flink-after-plan",
    "this savepoint was written {days:day} ago, and the JobManager does not show whether the job "
    "has been restarted from it; if it has, the job's later output will be duplicated",
    "to check for a restart, make a new plan with {option.source_group:G} (the job's group); if "
    "you know that the job was not restarted, make a new plan with {option.allow_ran_on:true}",
)
SAVEPOINT_NOT_AT_PATH = refusal(
    "savepoint-not-at-path",
    "{savepoint} is no longer at {path}",
    "if you moved it, make a new plan from its new path; if a job was restored from it in CLAIM "
    "mode, Flink has deleted it after newer checkpoints: {how_to_stop}, and move from that "
    "savepoint",
)
SEED_IN_USE = refusal(
    "seed-in-use",
    "{directory} contains more than start offsets, so a query has already started from this "
    "directory",
    "stop the query; if you no longer need its progress, remove the directory yourself",
)
SEVERAL_CLUSTERS = refusal(
    "several-clusters",
    "the positions belong to {count} Kafka clusters ({clusters!r}), but a target reads only one",
    "choose the cluster with {option.cluster:ID}",
)
SEVERAL_GROUPS_IN_FILE = refusal(
    "several-groups-in-file",
    "the file {path} contains the offsets of {count} groups",
    "choose one of {choices:10}",
)
SEVERAL_TOPICS_FOR_HUDI = refusal(
    "several-topics-for-hudi",
    "the positions belong to {count} topics ({topics}), but a Hudi Streamer checkpoint contains "
    "only one topic",
    "choose a topic with {option.source:topic:NAME}",
)
SHOWN_FILE_MISSING = input_error(
    "shown-file-missing",
    "{name}: no such file or directory",
    "pass a plan, a rollback file, or a checkpoint location of a Spark query",
)
SHOWN_FILE_NOT_JSON = input_error(
    "shown-file-not-json",
    "{name} is not a plan ({option.plan_out}) or a rollback file (commit-group with "
    "{option.execute:true}), because it is not valid JSON ({problem})",
    "pass the complete file; use `migrate inspect` for Flink checkpoints",
)
SHOWN_FILE_UNKNOWN = input_error(
    "shown-file-unknown",
    "{name} is not a plan ({option.plan_out}), a rollback file (commit-group with "
    "{option.execute:true}), or the checkpoint location of a Spark query",
    "use `migrate inspect` for Flink checkpoints",
)
SHOWN_FILE_UNREADABLE = input_error(
    "shown-file-unreadable",
    "{path} cannot be read: {reason}",
    "check the permissions of the file",
)
SIDE_IN_SEVERAL_CLUSTERS = refusal(
    "side-in-several-clusters",
    "{label} has positions in several clusters ({clusters!r})",
    "choose a cluster with {option.cluster:ID}, or a source with {option.source:OPERATOR_ID}",
)
SINK_AHEAD = refusal(
    "sink-ahead",
    "{sink} has already recorded batch {last}, but the query would continue with batch {next}, so "
    "the sink would skip the query's output",
    "choose a new directory for the sink",
)
SINK_DELTA_TXN_APP_ID = refusal(
    "sink-delta-txn-app-id",
    "{sink} is a Delta table that has already recorded version {last} of txnAppId {identifier!r}; "
    "the sink would silently skip batches 0 to {last} of a new query, and their records would be "
    "lost",
    "choose a new txnAppId, and pass it with {option.sink_writer} too",
)
SINK_FILES_AHEAD = refusal(
    "sink-files-ahead",
    "the last batch in the file sink {sink} is {last}, but the query would continue with batch "
    "{next}, so the sink would skip the query's output",
    "copy the checkpoint location of the query that wrote to the sink",
)
SINK_FILES_BEHIND = refusal(
    "sink-files-behind",
    "{sink} is a file sink with batches up to {last}, but the query would continue with batch "
    "{next}; Spark cannot read a file sink without the batches in between",
    "pass the sink to which the query itself writes",
)
SINK_HUDI_DEFAULT_IDENTIFIER = refusal(
    "sink-hudi-default-identifier",
    "{sink} is a Hudi table that has already recorded batch {last} under the checkpoint identifier "
    "{identifier!r}, the default identifier; the sink would silently skip batches 0 to {last} of "
    "a new query, and their records would be lost",
    "set hoodie.datasource.write.streaming.checkpoint.identifier to a new name, and pass this "
    "name with {option.sink_writer} too",
)
SINK_HUDI_IDENTIFIER = refusal(
    "sink-hudi-identifier",
    "{sink} is a Hudi table that has already recorded batch {last} under the checkpoint identifier "
    "{identifier!r}; the sink would silently skip batches 0 to {last} of a new query, and their "
    "records would be lost",
    "set hoodie.datasource.write.streaming.checkpoint.identifier to a new name, and pass this "
    "name with {option.sink_writer} too",
)
SINK_IS_NO_OUTPUT = refusal(
    "sink-is-no-output",
    "{option.sink:{sink}} is {is_a}, not a sink",
    "pass the directory or table to which the query or job writes its output",
)
SINK_OF_OTHER_QUERY = refusal(
    "sink-of-other-query",
    "{sink} is the file sink of a different query, which has already written batches up to {last} "
    "(_spark_metadata); the sink would silently skip batches 0 to {last} of a new query, and their "
    "records would be lost",
    "choose a new directory for the sink, and have its consumers read both directories",
)
SINK_UNREADABLE = refusal(
    "sink-unreadable",
    "{option.sink:{sink}}: {error}",
    "pass a sink that this machine can read; to move without this check, omit {option.sink}",
)
SOURCES_AT_DIFFERENT_POSITIONS = refusal(
    "sources-at-different-positions",
    "two sources in {label} read {partition} from different positions ({first} and {second})",
    "choose a source with {option.source:OPERATOR_ID}",
)
SPARK_FAILED = service_error(
    "spark-failed",
    "Spark failed: {failure}",
    "fix the reported problem, and rerun the command",
)
SPARK_NOT_STARTED = service_error(
    "spark-not-started",
    "Spark did not start: {failure}",
    "check the Spark settings and the cluster, and rerun the command",
)
SPARK_SOURCES_TWO_CLUSTERS = refusal(
    "spark-sources-two-clusters",
    "{sources} sources read topic {topic} ({readers}), and their state does not identify their "
    "Kafka cluster; if the clusters differ, these are different topics with the same name",
    "if the sources read the same Kafka cluster, add {option.one_cluster:true}; otherwise, omit "
    "{option.bootstrap_servers}, so that each Spark source starts at its own positions without a "
    "check",
)
START_DEPENDS_ON_JOB = refusal(
    "start-depends-on-job",
    "the partition is not in the checkpoint; the job's starting policy determines the start "
    "offset, but the state does not contain this policy",
    "choose a start offset with {option.new_partitions:earliest} or latest",
)
STARTS_DIFFER_BETWEEN_SOURCES = refusal(
    "starts-differ-between-sources",
    "{query}: two sources of the query start reading {partition} at different offsets",
    "compare the start offsets of each source (sources/N/0) with the positions",
)
STREAMS_AT_DIFFERENT_POSITIONS = refusal(
    "streams-at-different-positions",
    "two sources of the query at {location} read {partition} and are at different positions "
    "({first} and {second})",
    "save the offsets of one of these sources to a file, and pass it as json:FILE",
)
STREAMS_GROUP = refusal(
    "streams-group",
    "group {group} belongs to a Kafka Streams application, and the application's local state "
    "would not match the new offsets",
    "choose a different group",
)
TARGET_ON_OTHER_CLUSTER = refusal(
    "target-on-other-cluster",
    "the offsets of {target} belong to a different cluster than the offsets in the checkpoint",
    "verify the plan that was applied (plan:FILE), and add {option.to_kafka_config:FILE}",
)
TLS_FAILED = service_error(
    "tls-failed",
    "TLS failed at {servers}: {reason}",
    "check security.protocol, the port, and the client certificate",
)
TLS_VERIFICATION_FAILED = service_error(
    "tls-verification-failed",
    "TLS verification failed at {servers}: {reason}",
    "check that ssl.ca.location contains the certificate authority, and that the certificate is "
    "for this host",
)
TOO_MANY_OFFSETS = input_error(
    "too-many-offsets",
    "the file {path} contains more than {limit} offsets",
    "split the file by topic",
)
TOPIC_GONE = refusal(
    "topic-gone",
    "the broker has no such topic{alike:did you mean}",
    "pass the job's brokers with {option.bootstrap_servers}, or omit the topic with "
    "{option.gone:skip}",
)
TOPIC_NAME_TAKEN = refusal(
    "topic-name-taken",
    "{option.topic_map:{old}={new}} renames topic {old}, but the checkpoint already has a topic "
    "{new}",
    "rename topic {new} too, or omit it with {option.partitions}",
)
TOPIC_NOT_ASSIGNED = refusal(
    "topic-not-assigned",
    "topic {topic} of operator {operator} is not assigned to a Spark source, so the query would "
    "not read its records",
    "add {option.spark_source:N=topic:{topic}}, or choose the topics with {option.source} or "
    "{option.partitions}",
)
TOPIC_OF_MAP_MISSING = refusal(
    "topic-of-map-missing",
    "the broker has no topic {new}{alike:did you mean}",
    "create topic {new}, or correct {option.topic_map:{old}={new}}",
)
TOPIC_RECREATED_SINCE_PLAN = refusal(
    "topic-recreated-since-plan",
    "topic {topic} was recreated after the plan was created",
    "if you are applying a saved plan, create a new one with {option.plan_out}; then rerun the "
    "command",
)
TOPICS_LEFT_OUT = refusal(
    "topics-left-out",
    "{side} has positions for topics {topics}, but {no_source} reads these topics; after the "
    "move, their records would either not be read, or be read from the start by a source that "
    "discovers topics by pattern",
    "pass the source's pattern with {option.topic_pattern}, or list the partitions to move with "
    "{option.partitions}",
)
TRANSACTION_LOG_DENIED = service_error(
    "transaction-log-denied",
    "access to topic {topic} is denied",
    "grant this user READ on topic {topic}",
)
TRANSACTION_LOG_TIMEOUT = service_error(
    "transaction-log-timeout",
    "topic {topic} was not read within {seconds} s",
    "rerun the command when the brokers are less busy",
)
UNCOMMITTED_BATCH_BEHIND = input_error(
    "uncommitted-batch-behind",
    "in {location}, the uncommitted batch {batch} ends at offset {offset} of {partition}, but the "
    "committed batch {committed} ends at offset {committed_offset}; a repartitioning of the "
    "query's state is unfinished, or the topic was recreated",
    "if a repartitioning is unfinished, let it finish before you continue",
)
UNCOMMITTED_BATCH_WITHOUT_PARTITION = input_error(
    "uncommitted-batch-without-partition",
    "in {location}, the uncommitted batch {batch} does not include {partition}, but in the "
    "committed batch {committed}, this partition ends at offset {committed_offset}; either a "
    "repartitioning of the query's state is unfinished, or the topic was recreated",
    "if a repartitioning is unfinished, let it finish before you continue",
)
URI_NOT_SUPPORTED = input_error(
    "uri-not-supported",
    "URIs of this kind are not supported ({uri})",
    "{way_out}",
)
