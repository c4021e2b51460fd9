"""The messages of the stateful_query extension; ``migrate.model.catalog`` describes catalogs."""

from __future__ import annotations

from migrate.model.message import input_error, refusal, warning

CHECKPOINTS_REVERSED = refusal(
    "checkpoints-reversed",
    "`earlier` is {earlier}, and `later` is {later}, but `later` must have the higher checkpoint "
    "number",
    "swap these arguments",
)
COPY_INSIDE_QUERY = refusal(
    "copy-inside-query",
    "{copy} is inside the checkpoint location of the query",
    "choose a directory outside this location",
)
EXPECTED_STATE_AMBIGUOUS = refusal(
    "expected-state-ambiguous",
    "{streams} streams have rows from Flink's state, but migrate can compute the expected Spark "
    "state from only one such stream",
    "pass the expected Spark state as `expected`",
)
EXPECTED_STATE_UNKNOWN = refusal(
    "expected-state-unknown",
    "the query stores the state of {operator}, and migrate cannot compute the expected contents "
    "of this state from the rows",
    "create the rows of this query yourself, and pass the expected Spark state as `expected`",
)
EXPIRY_DEPENDS_ON_STOP = refusal(
    "expiry-depends-on-stop",
    "it cannot be determined whether {entries:entry|entries} had expired when the job stopped, "
    "because the checkpoint is a copy of {original} and does not show when that was; the job may "
    "have stopped at any time between the last access ({last_access}) and the time _metadata was "
    "written ({written})",
    "pass the time the job stopped with {option.stopped_at_ms}",
)
FIELDS_DIFFER = refusal(
    "fields-differ",
    "the query's state has the fields {fields}, but the rows have the values {values}",
    "pass a value for each field, or pass the expected Spark state as `expected`",
)
FILE_SOURCE_LOG_UNKNOWN = input_error(
    "file-source-log-unknown",
    "the file source log {path} cannot be read; migrate requires a log of version v1 with files "
    "from one directory (the first line of this log is {version!r})",
    "prime the query with a Spark version that migrate supports",
)
FILES_NOT_SHARED = refusal(
    "files-not-shared",
    "{location}: Spark did not write the query's files to this disk",
    "choose a directory on a disk shared by this program, the executors, and the Spark driver (or "
    "the Spark Connect server)",
)
FIRED_WINDOWS_UNKNOWN = refusal(
    "fired-windows-unknown",
    "the job keeps fired windows for {lateness_ms} ms to accept late records, but migrate cannot "
    "recognize fired windows without the columns `key` and `namespace`",
    "keep the columns `key` and `namespace` of the state",
)
HOPPING_WINDOWS_UNEXPECTED = refusal(
    "hopping-windows-unexpected",
    "Spark's state has windows that Flink's state lacks, because Spark adds a row to every window "
    "that contains the row's time",
    "for hopping windows, pass both `slide_ms` and a `watermark_ms` at or after the end of the "
    "last window that Flink has fired",
)
IN_FLIGHT_IN_REHEARSAL = refusal(
    "in-flight-in-rehearsal",
    "{checkpoint} contains in-flight records ({finding}); the positions are already past these "
    "records, but the operators' state does not include them yet",
    "choose an aligned checkpoint or a savepoint",
)
INITIAL_STATE_IGNORED = refusal(
    "initial-state-ignored",
    "{location} has a committed batch, so Spark would silently ignore the state",
    "for a query that continues from its own state, pass None as `state`",
)
INITIAL_STATE_MISSING = refusal(
    "initial-state-missing",
    "{location} has no committed batch, so the query would start without Flink's state",
    "pass Flink's state as `state`",
)
INITIAL_STATE_WITHOUT_SEED = refusal(
    "initial-state-without-seed",
    "{location} has no start offsets, so the query would not start at Flink's positions",
    "write the location with to_spark(…, checkpoint_dir=…)",
)
JOBS_DIFFER = refusal(
    "jobs-differ",
    "{earlier} and {later} seem to be from different jobs; only one of them has the operators "
    "{operators:5}",
    "pass two checkpoints of the same job",
)
JOIN_STATE = refusal(
    "join-state",
    "the query stores the state of a stream-stream join, and this state cannot be primed",
    "prime a query without a stream-stream join",
)
KEY_NAMES_DIFFER = refusal(
    "key-names-differ",
    "dropDuplicates stores its key as {spark_key}, but Flink's key is {flink_key}",
    "use the same column names, or use {option.expect} (in Python, `expected`) to pass the "
    "expected Spark state, with its columns in Spark's order",
)
KEY_TYPES_DIFFER = refusal(
    "key-types-differ",
    "the key of Spark's state is {spark_key}, but the key of the rows is {row_key}",
    "pass exactly the keys of the query's groupBy, in the same order",
)
KEYS_MERGED = refusal(
    "keys-merged",
    "{entries:entry|entries} from Flink would have the same key as another entry",
    "make the keys unique, or merge the entries ({option.merge_keys:true})",
)
LOG_METADATA_DAMAGED = input_error(
    "log-metadata-damaged",
    "{path}: the metadata in this log entry cannot be read: {problem}",
    "restore the checkpoint location from a backup, or create it again",
)
NO_KEY_IN_ROWS = refusal(
    "no-key-in-rows",
    "the rows contain none of the keys in Flink's state, so the query would start with an empty "
    "state",
    "check the filters on the state; if Flink's state is empty, pass a DataFrame without rows as "
    "`expected`",
)
NO_RECORD_BETWEEN = refusal(
    "no-record-between",
    "the job read no record between {earlier} and {later}",
    "choose a newer checkpoint as `later`",
)
NO_STATE_STORE = refusal(
    "no-state-store",
    "the query stores no state, so it cannot be primed",
    "write its checkpoint location with to_spark(…, checkpoint_dir=…)",
)
NO_WINDOW_PENDING = refusal(
    "no-window-pending",
    "none of the {windows:window} in Flink's state has a timer at its end; either Flink has fired "
    "all of them, or the job has a trigger that Spark does not support (CountTrigger)",
    "take a savepoint while a window is pending, or pass your own rows for the query",
)
OPERATOR_METADATA_DAMAGED = input_error(
    "operator-metadata-damaged",
    "{path}: the file is not the metadata of a stateful operator ({problem})",
    "restore the checkpoint location from a backup, or move to a new query (migrate to-spark)",
)
OPERATOR_METADATA_VERSION_UNKNOWN = input_error(
    "operator-metadata-version-unknown",
    "{path}: the operator metadata has version {version!r}, but the only supported version is v2",
    "upgrade migrate, or move to a new query (migrate to-spark)",
)
PARTITION_ONLY_IN_EARLIER = refusal(
    "partition-only-in-earlier",
    "{partition}: the later checkpoint does not contain the partition",
    "choose two checkpoints that both contain the partition",
)
PARTITION_ONLY_IN_LATER = refusal(
    "partition-only-in-later",
    "{partition}: the earlier checkpoint does not contain this partition, and does not specify at "
    "which offset new partitions start",
    "choose an earlier checkpoint that contains the partition",
)
POSITION_NOT_AN_OFFSET = refusal(
    "position-not-an-offset",
    "{partition}: the {side} checkpoint contains {start} instead of an offset",
    "choose checkpoints that the job took after it read a record from the partition",
)
POSITION_REWOUND = refusal(
    "position-rewound",
    "{partition}: the position was rewound from {start} in the earlier checkpoint to {end} in the "
    "later checkpoint",
    "choose two checkpoints without a rewind between them",
)
POSITIONS_FOR_OTHER_SOURCES = refusal(
    "positions-for-other-sources",
    "the query reads {sources:source}, but positions for {positions} were passed",
    "pass positions for each source of the query",
)
PRIMING_BATCH_MISSING = refusal(
    "priming-batch-missing",
    "{location}: the log does not show a priming batch; either the first batch read records from "
    "Kafka, or Spark has deleted the log entry of the priming batch",
    "verify the state of a query soon after you prime it",
)
PRIMING_BATCHES_DIFFER = refusal(
    "priming-batches-differ",
    "the {log} log contains the batches {present}, but priming requires exactly the batches "
    "{required}",
    "pass a function that returns the query and does not start it",
)
PRIMING_BATCHES_MISSING = refusal(
    "priming-batches-missing",
    "the {log} log contains no batch, but priming requires exactly the batches {required}",
    "pass a function that returns the query and does not start it",
)
PROCESSOR_STATE = refusal(
    "processor-state",
    "the query stores the state of a processor (transformWithState), and such state cannot be "
    "primed",
    "pass Flink's state as initialState of the query (migrate.spark.initial_state)",
)
QUERY_BATCH_NOT_COMMITTED = refusal(
    "query-batch-not-committed",
    "{query}: batch {batch} has started, but is not committed; a copy would rerun the batch from "
    "its old start offsets",
    "run the query with the availableNow trigger until the query ends, and then copy the query",
)
QUERY_IS_CONTINUOUS = refusal(
    "query-is-continuous",
    "{query}: the query runs with the continuous trigger, but only queries with micro-batches can "
    "be copied",
    "move to a new query (migrate to-spark)",
)
QUERY_RAN_DURING_COPY = refusal(
    "query-ran-during-copy",
    "{query}: the query ran during the copy",
    "stop the query, and copy it again",
)
QUERY_STORES_NO_STATE = refusal(
    "query-stores-no-state",
    "{query}: the query cannot be copied, because it either stores no state or tracks its "
    "progress asynchronously",
    "move to a new query (migrate to-spark)",
)
QUERY_WITHOUT_BATCH = refusal(
    "query-without-batch",
    "{query}: the query has no committed batch",
    "move to a new query (migrate to-spark)",
)
RECORDS_DELETED = refusal(
    "records-deleted",
    "Kafka no longer has all records between the checkpoints: {failure}",
    "choose newer checkpoints",
)
ROWS_REQUIRED = refusal(
    "rows-required",
    "the query stores state, but `rows` is None",
    "set `rows` to a function that takes the path of a checkpoint and returns the rows of each "
    "stream",
)
SESSION_LACKS_RECORDS = refusal(
    "session-lacks-records",
    "the session from {start} to {end} has {records} records, but with a session gap of {gap_ms} "
    "ms, a session of this length must have at least {least} records",
    "pass the total number of records as `count`, and the job's session gap as `session_gap_ms`",
)
SEVERAL_STATE_STORES = refusal(
    "several-state-stores",
    "the query stores state in {stores} stores ({operators}), but priming supports only one store",
    "prime a query with one stateful operator",
)
SEVERAL_WINDOWS = refusal(
    "several-windows",
    "the query groups by {windows} windows, but priming supports only one window",
    "prime a query that groups by one window",
)
SOURCE_OF_PARTITIONS_UNKNOWN = refusal(
    "source-of-partitions-unknown",
    "{sources} sources of the query read different partitions of topic {topic}, so migrate cannot "
    "determine which source reads {partitions}",
    "with {option.partitions}, pass only the partitions that the query already reads",
)
SOURCE_WITHOUT_ROWS = refusal(
    "source-without-rows",
    "source {source} of the query received none of the rows",
    "in the query function, use only the streams that are passed to it",
)
SPARK_FAILED_TO_PRIME = refusal(
    "spark-failed-to-prime",
    "Spark failed to run the query on the rows: {failure}",
    "fix the query or its rows, and prime again",
)
SPARK_FAILED_TO_REHEARSE = refusal(
    "spark-failed-to-rehearse",
    "Spark failed to run the rehearsal: {failure}",
    "fix the query, its rows, or the Kafka options, and rehearse again",
)
START_DIFFERS_FROM_SAVEPOINT = refusal(
    "start-differs-from-savepoint",
    "{partition} would start at {starts}, but the savepoint that contains the state has offset "
    "{offsets}",
    "use positions and state from the same savepoint",
)
START_MISSING = refusal(
    "start-missing",
    "{partition} has no start offset, but the savepoint that contains the state has offset "
    "{offsets}",
    "use positions and state from the same savepoint",
)
STATE_DIFFERS = refusal(
    "state-differs",
    "Spark's state differs from Flink's: {proof}",
    "check that the query and the expressions for its rows match the job",
)
STATE_FILES_WITH_IDS = refusal(
    "state-files-with-ids",
    "Spark {spark} cannot read state whose files have IDs",
    "set spark.sql.streaming.stateStore.checkpointFormatVersion to 1 when you prime the query",
)
STATE_SCHEMA_ELSEWHERE = input_error(
    "state-schema-elsewhere",
    "{path}: the state schema {schema!r} is outside the directory of the operator",
    "move to a new query (migrate to-spark)",
)
STATE_SCHEMA_VERSION_UNKNOWN = refusal(
    "state-schema-version-unknown",
    "{path}: the state schema has the unknown version {version!r}, and the only known version is "
    "v2",
    "use a Spark version that migrate supports",
)
STOP_BEFORE_LAST_ACCESS = refusal(
    "stop-before-last-access",
    "the state was used at {last_access}, so the job cannot have stopped at {stopped_at}",
    "pass the time the job stopped with {option.stopped_at_ms}",
)
STREAM_NOT_READ = refusal(
    "stream-not-read",
    "the query does not read its stream {stream}",
    "use each stream that the query function receives, or pass fewer streams",
)
SYMBOLIC_LINK_IN_QUERY = refusal(
    "symbolic-link-in-query",
    "{path} is a symbolic link, and symbolic links are not copied",
    "replace the link with its target",
)
TOO_MANY_ROWS = refusal(
    "too-many-rows",
    "the state requires {rows} rows, but `most_rows` limits them to {most_rows}",
    "in the query, replace count(*) with the sum of a weight column, and set the weight to 1 for "
    "each record from Kafka (sums={{'weight': …}})",
)
TTL_MISSING = refusal(
    "ttl-missing",
    "state {state} of operator {operator} has a TTL; Flink drops a key after the TTL, but Spark "
    "does not",
    "pass the TTL from the job's code (StateTtlConfig, table.exec.state.ttl) as {option.ttl_ms}; "
    "to keep every entry, pass None (on the command line, none)",
)
TTL_OF_ROWS_MISSING = refusal(
    "ttl-of-rows-missing",
    "the rows come from a state with a TTL; Flink drops a key after the TTL, but Spark does not",
    "pass the TTL from the job's code (StateTtlConfig, table.exec.state.ttl) as {option.ttl_ms}; "
    "to keep every entry, pass None (on the command line, none)",
)
UNPRIMED_LOCATION = refusal(
    "unprimed-location",
    "{location}: no query has run from this location, so it contains no state",
    "pass the checkpoint location of a primed query",
)
WATERMARK_TOO_HIGH = refusal(
    "watermark-too-high",
    "`watermark_ms` {watermark_ms} is too high, because Flink stores a window that ends at "
    "{window_end}; Spark would drop later records of this window",
    "pass a `watermark_ms` below {window_end}",
)
WATERMARK_TOO_LOW = refusal(
    "watermark-too-low",
    "`watermark_ms` {watermark_ms} is too low, because Flink has fired a window that ends at "
    "{window_end}; after a late record, Spark would fire this window a second time",
    "pass a `watermark_ms` of at least {window_end}",
)
WINDOW_ONLY_IN_QUERY = refusal(
    "window-only-in-query",
    "the query groups by a window, but the rows have no window",
    "pass `window` and `time` when you create the rows",
)
WINDOW_ONLY_IN_ROWS = refusal(
    "window-only-in-rows",
    "the rows have a window, but the query does not group by a window",
    "omit `window` and `time` when you create the rows, or group the query by the window",
)
WINDOWS_IN_LOCAL_TIME = refusal(
    "windows-in-local-time",
    "the first window ends at {window_end}, but its timer is at {timer}; Flink SQL stores windows "
    "over TIMESTAMP_LTZ in the time zone of table.local-time-zone",
    "in the expression for `window`, convert the times with to_utc_timestamp",
)

# Warnings. Several messages can have the same code, because ``explanations.md`` explains codes, not
# messages.

ANOTHER_RUN = warning(
    "another-run",
    "the checkpoints are from two runs, {earlier} and {later}",
    "check that run {later} was restored from the earlier checkpoint, or from a newer checkpoint "
    "of run {earlier}",
)
EARLY_WINDOWS = warning(
    "early-windows",
    "the query has already fired {count:window} that Flink still stores, because Spark's watermark "
    "is {watermark} and Flink's is before {window_end}; Spark would drop late records of these "
    "windows",
)
EMPTY_STATE = warning(
    "empty-state",
    "the expected state contains no keys, so the query starts with an empty state",
)
EXPIRED_STATE = warning(
    "expired-state",
    "{count:expired entry is|expired entries are} not migrated, because they were last used "
    "{ttl_ms} ms or more before the stop at {time}",
)
EXPIRY_DOUBTFUL = warning(
    "expiry-doubtful",
    "{count:entry is|entries are} treated as expired, because the TTL ended before the "
    "checkpoint's modification time; this is wrong if the job stopped earlier",
    "if the checkpoint is a copy, pass the time at which the job stopped ({option.stopped_at_ms})",
)
EXPIRY_ENDS = warning(
    "expiry-ends",
    "Flink drops an entry {ttl_ms} ms after its last access, but Spark never drops it",
)
EXPIRY_IGNORED = warning(
    "expiry-ignored",
    "the state has a TTL, but expired entries are also migrated (ttl_ms=None), so Spark continues "
    "from expired values",
)
FIRED_WINDOWS = warning(
    "fired-windows",
    "Flink still accepts late records for {count:fired window}, but Spark drops these records",
)
LATE_RECORDS = warning(
    "late-records",
    "the query's delay (withWatermark) of {delay_ms} ms is too short for {count:record} "
    "({examples}); the query accepts these records if one batch reads all records, but may drop "
    "them in smaller batches; a delay of {needed_ms} ms accepts all records",
)
LOG_START = warning(
    "log-start",
    "{partition}: Flink started at the log start offset, which is now {start}; Kafka may have "
    "deleted earlier records in the meantime",
)
NO_WATERMARK = warning(
    "watermark",
    "the query has no watermark (withWatermark), so it accepts every late record and never "
    "removes a window",
)
OFFSET_GAPS = warning(
    "offset-gaps",
    "{partition}: the range of {offsets:offset} from {start} to {end} contains {records:record}; "
    "the remaining offsets belong to control records, or to records that compaction has removed; "
    "Flink may have read the removed records",
)
QUERY_COPIED = warning(
    "query-copied",
    "the copy has the same query ID as the original",
    "from now on, run only one of the two queries",
)
RECORDS_NOT_MOVED = warning(
    "records-not-moved",
    "Flink's state has a record for each key, but the query's state has only keys, so records are "
    "not compared; if the job replaces records, dropDuplicates may keep a "
    "different record for a key than the job does",
)
STATES_LEFT_BEHIND = warning(
    "state-left-behind",
    "{count:state is not migrated, because it is|states are not migrated, because they are} not "
    "selected: {states}",
)
TIMERS_LEFT_BEHIND = warning(
    "state-left-behind",
    "pending timers are not migrated: {timers}",
)
TIME_TO_LIVE = warning(
    "time-to-live",
    "state {state} has a TTL",
    "find the TTL in the job's code, and pass it to `prime` as `ttl_ms`",
)
TOPIC_NOT_READ = warning(
    "topic-not-read",
    "the job has read {count:partition} that no stream of the rehearsal reads ({topics}); if the "
    "state depends on records of these partitions, the states will differ",
)
UNFINISHED_RUN = warning(
    "unfinished-run",
    "the directory {path} belongs to another run that primed or read {target}",
    "if that run is no longer active, remove the directory",
)
UNREADABLE_STATE_LEFT_BEHIND = warning(
    "state-left-behind",
    "a state cannot be read, so it is not migrated: {reason}",
)
UNREAD_TIMERS_LEFT_BEHIND = warning(
    "state-left-behind",
    "timers are not migrated, and migrate cannot determine whether they are pending: {timers}",
)
WATERMARK_REOPENS_WINDOWS = warning(
    "watermark",
    "with `watermark_ms` {watermark_ms}, a late record can reopen a fired window that ends later "
    "than this watermark but before {window_end}, the end of the first pending window",
)
WATERMARK_WITHOUT_LIMIT = warning(
    "watermark",
    "migrate cannot check that `watermark_ms` {watermark_ms} is low enough, because Flink stores "
    "no pending window; if Flink's watermark was lower, Spark drops records that Flink would have "
    "accepted",
)
WRONG_FROM_THE_START = warning(
    "wrong-from-the-start",
    "Spark's state already differs from Flink's at the earlier checkpoint, before Spark has read "
    "any records: {proof}; {examples}",
)
