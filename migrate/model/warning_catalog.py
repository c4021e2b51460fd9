"""The warnings that are data: each has a code, facts, and a sentence.

Several warnings may share a code, because ``explanations.md`` explains the code. The warnings are
sorted by name. ``migrate.model.message`` describes the templates.
"""

from __future__ import annotations

from migrate.model.finding import Code
from migrate.model.message import Kind, MessageTemplate
from migrate.model.warning import WarningCode


def _warning(code: Code | WarningCode, what: str, way_out: str = "") -> MessageTemplate:
    return MessageTemplate(str(code), what, way_out, Kind.WARNING)


ABORTED_COPIES = _warning(
    WarningCode.ABORTED_COPIES,
    "{partitions}: at least {records:record} of aborted transactions after the position; a target "
    "with isolation.level=read_uncommitted (Spark's default) reads them",
)
AGE_OF_COPY_UNKNOWN = _warning(
    WarningCode.AGE_UNKNOWN,
    "the checkpoint is a copy of {origin}, and its file is dated {time}; if this is the time of "
    "the copy, a recreated topic cannot be detected",
)
AGE_UNKNOWN = _warning(
    WarningCode.AGE_UNKNOWN,
    "the age of the checkpoint is unknown, so a recreated topic cannot be detected",
)
ALL_MAYBE_RECREATED = _warning(
    WarningCode.MAYBE_RECREATED,
    "{count:partition} may belong to a recreated topic or to a different cluster (the first is "
    "{partition}); all partitions are affected, so this is probably a different cluster, where "
    "these offsets would lose or duplicate records",
    "check that {option.bootstrap_servers} specifies the job's brokers",
)
GROUP_BEYOND_POSITIONS = _warning(
    Code.RAN_ON,
    "the job kept running after this checkpoint; Flink's group has committed {records:record} "
    "beyond the positions of {partitions:partition} (the first is {first}: committed {committed}, "
    "next offset {next_offset}); these records will be duplicated",
)
GROUP_MOVED_AHEAD = _warning(
    WarningCode.GROUP_MOVED,
    "group {group!r} will be moved ahead in {count:partition} (the first is {partition}: from "
    "{current} to {next_offset}); up to {records:record} will be skipped",
)
GROUP_MOVED_AHEAD_OF_READER = _warning(
    WarningCode.GROUP_MOVED,
    "group {group!r} will be moved ahead in {count:partition} (the first is {partition}: from "
    "{current} to {next_offset}); up to {records:record} that {reader} has read will be skipped",
)
GROUP_REWOUND = _warning(
    WarningCode.GROUP_MOVED,
    "group {group!r} will be rewound in {count:partition} (the first is {partition}: from "
    "{current} to {next_offset}); up to {records:record} will be reprocessed",
)
JOB_MAY_RUN = _warning(
    WarningCode.JOB_MAY_RUN,
    "{evidence}",
)
JOB_MAY_RUN_AND_OVERWRITE = _warning(
    WarningCode.JOB_MAY_RUN,
    "{evidence}; if it is, it will overwrite these offsets at its next checkpoint",
)
JOB_MAY_RUN_ELSEWHERE = _warning(
    WarningCode.JOB_MAY_RUN,
    "{evidence}; a job that recovers from a failure takes no checkpoint, and a job that was "
    "restarted from this checkpoint writes to a different directory",
)
JOB_RAN_ON = _warning(
    Code.RAN_ON,
    "{evidence}; its output since the checkpoint will be duplicated",
)
MAYBE_RECREATED = _warning(
    WarningCode.MAYBE_RECREATED,
    "{count:partition} may belong to a recreated topic or to a different cluster (the first is "
    "{partition})",
    "check that {option.bootstrap_servers} specifies the job's brokers",
)
MERGED_POSITIONS = _warning(
    WarningCode.MERGED_POSITIONS,
    "{option.merge_sources:min}: {records:record} in {count:partition} will be reprocessed (the "
    "first is {partition}: from offset {next_offset}, although one source had reached offset "
    "{job_reached})",
)
MERGED_POSITIONS_MISSING = _warning(
    WarningCode.MERGED_POSITIONS,
    "{option.merge_sources:min}: one source of the topic has no position for {count:partition} "
    "(the first is {partition}), and will lose the records below the next offset",
)
METADATA_OF_CLIENT = _warning(
    WarningCode.METADATA_OF_CLIENT,
    "group {group} has client metadata in {count:offset} (the first is {partition}); Parallel "
    "Consumer lists the processed records beyond the offset in this metadata",
)
NEW_GROUP = _warning(
    WarningCode.NEW_GROUP,
    "group {group!r} does not exist and will be created{alike:did you mean}",
    "check the name",
)
NOT_CHECKED = _warning(
    WarningCode.NOT_CHECKED,
    "not checked against Kafka",
    "add {option.bootstrap_servers:HOST:PORT}",
)
NO_SUCH_GROUP = _warning(
    WarningCode.NO_SUCH_GROUP,
    "{side}: the group does not exist{alike:did you mean}",
)
OLD_SAVEPOINT = _warning(
    WarningCode.OLD_SAVEPOINT,
    "this savepoint was written {days:day} ago; if the job was restarted from it, the later "
    "output of the job will be duplicated",
    "to check for a restart, add {option.flink_rest} or {option.source_group}",
)
OLD_SAVEPOINT_NOT_IN_FLINK = _warning(
    WarningCode.OLD_SAVEPOINT,
    "this savepoint was written {days:day} ago; if the job was restarted from it, the later "
    "output of the job will be duplicated",
    "to check for a restart, add {option.source_group}",
)
OLD_SAVEPOINT_OF_PLAN = _warning(
    WarningCode.OLD_SAVEPOINT,
    "this savepoint was written {days:day} ago; if the job was restarted from it, the later "
    "output of the job will be duplicated",
    "to check for a restart, add {option.flink_rest}",
)
OLD_SAVEPOINT_UNCHECKED = _warning(
    WarningCode.OLD_SAVEPOINT,
    "this savepoint was written {days:day} ago; if the job was restarted from it, the later "
    "output of the job will be duplicated",
)
ONE_CLUSTER = _warning(
    WarningCode.ONE_CLUSTER,
    "{option.one_cluster:true}: {readers} are assumed to read topic {topic} of the same Kafka "
    "cluster; their state does not identify the cluster",
)
OTHER_BROKERS = _warning(
    WarningCode.OTHER_BROKERS,
    "the job reads cluster {cluster!r} at {brokers:3}, but {servers} was queried; in a different "
    "cluster, the offsets refer to different records",
)
PARTIAL_TOPIC = _warning(
    WarningCode.PARTIAL_TOPIC,
    "{option.partitions} omits partitions of {count:topic} (the first is {topic})",
    "the query must assign exactly the partitions that move",
)
PARTITION_STAYS = _warning(
    WarningCode.PARTITION_STAYS,
    "{partition} stays with operator {holders}, and is not added to {operator}, which reads other "
    "partitions of the topic",
)
PATTERN_UNMATCHED = _warning(
    WarningCode.PATTERN_UNMATCHED,
    "{option.topic_pattern} {pattern!r} matches no topic of the checkpoint",
    "check that it is the job's pattern",
)
RENAMED_TOPIC = _warning(
    WarningCode.RENAMED_TOPIC,
    "{option.topic_map:{old}={new}}: the same offset may refer to a different record in the new "
    "topic",
    "compare the records first",
)
SOURCE_GROUP_EMPTY = _warning(
    WarningCode.SOURCE_GROUP_EMPTY,
    "group {group!r}{alike:did you mean} has committed no offset for these topics, so the group "
    "does not show whether the job kept running",
)
UNLISTED_PARTITION = _warning(
    WarningCode.UNLISTED_PARTITION,
    "the checkpoint does not contain {count:partition} with records older than the checkpoint "
    "(the first is {partition}: up to {records:record})",
)
