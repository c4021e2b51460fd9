"""The warnings of the core: each has a code, facts, and a sentence.

Several warnings may share a code, because ``explanations.md`` has one explanation for each code,
not for each warning. The warnings are sorted by name. ``migrate.model.message`` describes the
templates.
"""

from __future__ import annotations

from migrate.model.finding import Code
from migrate.model.message import warning

ABORTED_COPIES = warning(
    "aborted-copies",
    "{partitions}: at least {records:record} of aborted transactions follow the position; a target "
    "with isolation.level=read_uncommitted (Spark's default) reads these records",
)
AGE_OF_COPY_UNKNOWN = warning(
    "age-unknown",
    "the checkpoint is a copy of {origin}, and its metadata file is dated {time}; if this is the "
    "time of the copy instead of the checkpoint, migrate cannot detect a recreated topic",
)
AGE_UNKNOWN = warning(
    "age-unknown",
    "the age of the checkpoint is unknown, so migrate cannot detect a recreated topic",
)
ALL_MAYBE_RECREATED = warning(
    "maybe-recreated",
    "{count:partition} may belong to a recreated topic or to a different cluster (the first is "
    "{partition}), and a start at these offsets would then lose or duplicate records; a different "
    "cluster is more likely, because all partitions are affected",
    "check that {option.bootstrap_servers} specifies the job's brokers",
)
BELOW_LOG_START = warning(
    "below-log-start",
    "{count:position is|positions are} below the log start offset (the first is {partition} at "
    "{offset}, but the log starts at {log_start}), so the records in between were deleted; a query "
    "that starts there fails, and a consumer starts according to auto.offset.reset",
)
BATCHES_DELETED = warning(
    "look-failed",
    "batch {batch} was committed, but {query} now has no committed batch; polling again in "
    "{seconds} s",
)
EARLIER_OFFSETS_OMITTED = warning(
    "earlier-offsets-omitted",
    "the earlier offsets of {count:partition} are not restored, because these partitions no longer "
    "exist ({partitions:10})",
)
GROUP_BEYOND_POSITIONS = warning(
    Code.RAN_ON,
    "the job kept running after this checkpoint; the committed offsets of Flink's group are "
    "{records:record} ahead of the checkpoint in {partitions:partition} (the first is {first}: "
    "committed {committed}, checkpoint {next_offset}); these records will be duplicated",
)
GROUP_MOVED_AHEAD = warning(
    "group-moved",
    "group {group!r} will be moved ahead in {count:partition} (the first is {partition}: from "
    "{current} to {next_offset}); up to {records:record} will be skipped",
)
GROUP_MOVED_AHEAD_OF_READER = warning(
    "group-moved",
    "group {group!r} will be moved ahead in {count:partition} (the first is {partition}: from "
    "{current} to {next_offset}); up to {records:record} that {reader} has read will be skipped",
)
GROUP_NOT_COMMITTED = warning(
    "group-not-committed",
    "no offsets were committed for group {group}: {error}",
)
GROUP_OFFSETS_LOST = warning(
    "group-offsets-lost",
    "the group has lost {count:offset} that the change did not affect (the first is for "
    "{partition}); the rollback restores the offsets that these partitions had at {time}",
)
GROUP_ORIGIN_UNKNOWN = warning(
    "group-origin-unknown",
    "migrate assumes that the offsets of {side} belong to the job's cluster, because no rollback "
    "file in this directory shows that they were translated to a different cluster",
)
GROUP_REWOUND = warning(
    "group-moved",
    "group {group!r} will be rewound in {count:partition} (the first is {partition}: from "
    "{current} to {next_offset}); up to {records:record} will be reprocessed",
)
HISTORY_NOT_COMPARABLE = warning(
    "history-sampled",
    "{partitions}: up to {records:record} could not be compared, because the topic is compacted, "
    "or its log in the job's cluster has lost records; the target's log may lack some of these "
    "records, or may contain records from other clients",
)
HISTORY_SAMPLED = warning(
    "history-sampled",
    "{partitions}: up to {records:record was|records were} not compared; the target's log may "
    "lack some of these records, or may contain records from other clients",
    "to compare them, add {option.compare:all}",
)
JOB_MAY_RUN = warning(
    "job-may-run",
    "{evidence}",
)
JOB_MAY_RUN_AND_OVERWRITE = warning(
    "job-may-run",
    "{evidence}; if the job is still running, it will overwrite these offsets at its next "
    "checkpoint",
)
JOB_MAY_RUN_ELSEWHERE = warning(
    "job-may-run",
    "{evidence}; this does not prove that the job has stopped, because a job takes no checkpoints "
    "while it recovers, and a job that was restarted from this checkpoint writes to a different "
    "directory",
)
JOB_RAN_ON = warning(
    Code.RAN_ON,
    "{evidence}; the job's output since the checkpoint will be duplicated",
)
KEPT_RUNNING_SINCE_PLAN = warning(
    Code.RAN_ON,
    "the {reader} kept running; {sign}; the move duplicates more records than planned",
)
MAYBE_RECREATED = warning(
    "maybe-recreated",
    "{count:partition} may belong to a recreated topic or to a different cluster (the first is "
    "{partition})",
    "check that {option.bootstrap_servers} specifies the job's brokers",
)
MERGED_POSITIONS = warning(
    "merged-positions",
    "{option.merge_sources:min}: {records:record} in {count:partition} will be reprocessed (the "
    "first is {partition}: from offset {next_offset}, although one source had reached offset "
    "{job_reached})",
)
MERGED_POSITIONS_MISSING = warning(
    "merged-positions",
    "{option.merge_sources:min}: one source of the topic has no position for {count:partition} "
    "(the first is {partition}); the move starts these partitions at the other source's position, "
    "so the source without a position loses all earlier records",
)
METADATA_DISCARDED = warning(
    "metadata-discarded",
    "the commit discards the metadata of {count:offset} of group {group} (the first is "
    "{partition}); the group's client may need it",
)
METADATA_DISCARDED_UNTIL_ROLLBACK = warning(
    "metadata-discarded",
    "the commit discards the metadata of {count:offset} of group {group} (the first is "
    "{partition}); the group's client may need it",
    "a rollback restores the metadata",
)
METADATA_OF_CLIENT = warning(
    "metadata-of-client",
    "group {group} has client metadata in {count:offset} (the first is {partition}); Parallel "
    "Consumer uses such metadata to list the records that it has processed beyond the offset",
)
MISSING_OFFSETS = warning(
    "missing-offsets",
    "{side} has no offset for {partitions}; the client that uses the output starts these "
    "partitions at its own default",
)
MISSING_PARTITIONS = warning(
    "missing-partitions",
    "the query has read {partitions:5}, but these brokers do not have these partitions, so "
    "migrate commits no offsets for them",
)
MORE_NEW_TOPICS = warning(
    "new-topic",
    "{count:more topic matches|more topics match} {option.topic_pattern} and will also be treated "
    "as new topics",
)
NEW_GROUP = warning(
    "new-group",
    "group {group!r} does not exist and will be created{alike:did you mean}",
    "check the name",
)
NEW_TOPIC = warning(
    "new-topic",
    "topic {topic} matches {option.topic_pattern} and is not in the checkpoint taken at {time} "
    "({evidence}); it will be treated as a new topic that the job had not discovered",
)
NOT_CHECKED = warning(
    "not-checked",
    "not checked against Kafka",
    "add {option.bootstrap_servers:HOST:PORT}",
)
NO_SUCH_GROUP = warning(
    "no-such-group",
    "{side}: the group does not exist{alike:did you mean}",
)
NO_TOPIC_IDS = warning(
    "no-topic-ids",
    "topics have no IDs on these brokers (Kafka < 2.8), so migrate cannot detect whether a topic "
    "was recreated after the plan was created",
)
OLD_SAVEPOINT = warning(
    "old-savepoint",
    "this savepoint was written {days:day} ago; if the job was restarted from it, the job's later "
    "output will be duplicated",
    "to check for a restart, add {option.flink_rest} or {option.source_group}",
)
OLD_SAVEPOINT_NOT_IN_FLINK = warning(
    "old-savepoint",
    "this savepoint was written {days:day} ago; if the job was restarted from it, the job's later "
    "output will be duplicated",
    "to check for a restart, add {option.source_group}",
)
OLD_SAVEPOINT_OF_PLAN = warning(
    "old-savepoint",
    "this savepoint was written {days:day} ago; if the job was restarted from it, the job's later "
    "output will be duplicated",
    "to check for a restart, add {option.flink_rest}",
)
OLD_SAVEPOINT_UNCHECKED = warning(
    "old-savepoint",
    "this savepoint was written {days:day} ago; if the job was restarted from it, the job's later "
    "output will be duplicated",
)
ONE_CLUSTER = warning(
    "one-cluster",
    "{option.one_cluster:true}: migrate assumes that {readers} read topic {topic} of the same "
    "Kafka cluster, because their state does not identify the cluster",
)
OTHER_BROKERS = warning(
    "other-brokers",
    "the job reads cluster {cluster!r} at {brokers:3}, but {servers} was queried; in a different "
    "cluster, the offsets refer to different records",
)
PARTIAL_TOPIC = warning(
    "partial-topic",
    "{option.partitions} omits partitions of {count:topic} (the first is {topic})",
    "in the query, use the option assign, and list exactly the partitions to move",
)
PARTITIONS_ABSENT = warning(
    "partitions-absent",
    "{side}: the broker does not have {count:partition} (the first is {partition})",
)
PARTITION_ADVANCED = warning(
    "position-changed",
    "{partition} advances from {current} to {next_offset}, so Flink skips up to {records:record}",
)
PARTITION_ADVANCED_BEFORE_READER = warning(
    "position-changed",
    "{partition} advances from {current} to {next_offset}, so Flink skips up to {records:record} "
    "that {reader} has read",
)
PARTITION_ADVANCED_UNDER_STATE = warning(
    "position-changed",
    "{partition} advances from {current} to {next_offset}, so up to "
    "{records:record is|records are} missing from the state",
)
PARTITION_REWOUND = warning(
    "position-changed",
    "{partition} rewinds from {current} to {next_offset}, so Flink reprocesses up to "
    "{records:record}",
)
PARTITION_REWOUND_UNDER_STATE = warning(
    "position-changed",
    "{partition} rewinds from {current} to {next_offset}, so up to {records:record is|records are} "
    "double-counted",
)
PARTITION_STAYS = warning(
    "partition-stays",
    "{partition} stays with operator {holders}; operator {operator} reads other partitions of the "
    "topic, but will not read {partition}",
)
PATTERN_UNMATCHED = warning(
    "pattern-unmatched",
    "{option.topic_pattern} {pattern!r} matches no topic of the checkpoint",
    "check that it is the job's pattern",
)
POLL_FAILED = warning(
    "look-failed",
    "{problem}; polling again in {seconds} s",
)
POSITION_SET = warning(
    "position-changed",
    "{partition} resumes from {next_offset}",
)
POSITION_SET_UNDER_STATE = warning(
    "position-changed",
    "{partition} resumes from {next_offset}, and migrate cannot determine how many of its records "
    "are in the state",
)
QUERY_MAY_RUN = warning(
    "query-may-run",
    "cannot determine whether the query is still running; if the query is running, the records "
    "that it reads from now on will be duplicated",
    "stop the query before the move",
)
REMAINING_FILES = warning(
    "remaining-files",
    "{location}: the write was interrupted",
    "remove the remaining files: {files}",
)
RENAMED_TOPIC = warning(
    "renamed-topic",
    "{option.topic_map:{old}={new}}: the same offset may refer to a different record in the new "
    "topic",
    "compare the records first",
)
ROLLBACK_FILE_IGNORED = warning(
    "rollback-file-ignored",
    "{reason}, so this file was ignored, and changes of group {group} that only this file records "
    "count as commits by other clients",
    "restore the original file, or move this file to a different directory",
)
SINK_HIDES_FILES_OF_COPY = warning(
    "sink-hides-files",
    "{sink} contains no batch of the query, so batches 0 to {batch} are missing; if the query "
    "writes files (without foreachBatch), Spark will not be able to read this directory, and the "
    "query will fail when it compacts _spark_metadata",
    "pass the query's own sink, or copy its _spark_metadata to this directory before you start "
    "the query",
)
SINK_HIDES_FILES_OF_JOB = warning(
    "sink-hides-files",
    "{sink} is the file sink of a Spark query (_spark_metadata); Spark does not read files that "
    "Flink adds to this directory",
)
SINK_OF_UNKNOWN_KIND = warning(
    "sink-unknown",
    "{sink} is an unknown kind of sink; it may skip batches whose numbers it has already recorded",
    "if an earlier query or job wrote to it, find out whether it records batch numbers, or choose "
    "a new sink",
)
SINK_PARTLY_READ = warning(
    "sink-unknown",
    "{sink} was not read completely: {reason}",
    "if an earlier query or job wrote to it, choose a new sink",
)
SINK_REMEMBERS_IDENTIFIERS = warning(
    "sink-writer",
    "{sink} remembers the last batch number of each of these Hudi checkpoint identifiers: "
    "{writers}; if the query sets one of these identifiers, the sink skips the query's batches up "
    "to the number remembered for that identifier",
)
SINK_REMEMBERS_JOBS = warning(
    Code.SINK_MEMORY,
    "{sink} remembers checkpoints of these Flink jobs: {writers}; if a job with one of these IDs "
    "starts without its state, the sink may drop the job's records",
)
SINK_REMEMBERS_TRANSACTIONS = warning(
    "sink-writer",
    "{sink} remembers the last batch number of each of these Delta transaction IDs (txnAppId): "
    "{writers}; if the query's foreachBatch function writes with one of these IDs, the sink skips "
    "the query's batches up to the number remembered for that ID",
)
SOURCE_GROUP_EMPTY = warning(
    "source-group-empty",
    "group {group!r}{alike:did you mean} has committed no offset for these topics, so the group "
    "does not show whether the job kept running",
)
STALE_POSITION_CHANGED = warning(
    "position-changed",
    "{partition} {verb} from {current} to {next_offset}; the job may have processed records "
    "beyond {current}, so migrate cannot determine how many records Flink reprocesses or skips",
)
STALE_POSITION_CHANGED_UNDER_STATE = warning(
    "position-changed",
    "{partition} {verb} from {current} to {next_offset}; the job may have processed records "
    "beyond {current}, so migrate cannot determine how many records are double-counted or missing",
)
UNFINISHED_SEED = warning(
    "remaining-files",
    "{location} may be unfinished, and Spark fails on an unfinished checkpoint location",
    "remove the directory",
)
UNLISTED_PARTITION = warning(
    "unlisted-partition",
    "{count:partition is|partitions are} missing from the checkpoint, but already had records when "
    "it was taken (the first is {partition}, with up to {records:record})",
    "if the job reads only certain partitions, pass them with {option.partitions}",
)
UNSEEDED_STREAM = warning(
    "unseeded-stream",
    "the checkpoint location has start offsets for stream {last} of the query, but not for "
    "{count:stream} before it ({streams:5}); if such a stream reads Kafka, it starts at its own "
    "startingOffsets",
)
YOUNG_TOPIC = warning(
    "young-topic",
    "{count:new topic with a name similar to the job's topics is|new topics with names similar to "
    "the job's topics are} not in the checkpoint taken at {time} "
    "(the first is {topic}: {evidence})",
    "if the job discovers topics by a pattern, pass the pattern with {option.topic_pattern}, for "
    "example '{pattern}'",
)
