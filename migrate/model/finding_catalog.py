"""The messages of findings: each has a code, facts, and a sentence.

Several messages may share a code, because ``explanations.md`` explains the code. The messages are
sorted by name. ``migrate.model.message`` describes the templates.
"""

from __future__ import annotations

from migrate.model.finding import Code
from migrate.model.message import finding

_BEAM_RECORDS = "the state of this Apache Beam operator contains {records:record} that "
_COMMITTED_IF_FINISHED = (
    "if `flink list -a` shows the job as FINISHED, the stop committed that output"
)
_DRAIN = (
    "stop the job with --drain, so that the operator waits for the responses; if the job has "
    "already ended, restore it from this checkpoint first"
)
_HIDDEN = "records in unfinished files (.inprogress) stay hidden after a move"
_LOST = (
    "if the job is still running, a stop-with-savepoint commits this output; otherwise, the "
    "output is lost unless the job is restored from this checkpoint"
)
_MAY_BE_OPEN = f"a file sink may have an unfinished file; {_HIDDEN}"
_MAY_ALSO_BE_OPEN = (
    f"if the sink is a file sink, it may also have an unfinished file, and {_HIDDEN}"
)
_MAY_DROP = (
    "a sink that remembers checkpoint IDs may drop records of a Flink job that starts from these "
    "offsets without state"
)
_PENDING_FILES = "a FileSink has {files:finished file} to commit"
_PENDING_OF_PRODUCER = (
    "a FlinkKafkaProducer may have transactions to commit, which migrate does not read"
)
_PENDING_TRANSACTIONS = (
    "a KafkaSink has {transactions:transaction} to commit (transactional ID prefix {prefixes!r})"
)
_PENDING_UNREADABLE = (
    "a sink's state cannot be read ({reason}), so the sink may have output to commit"
)
_RESTORED = "the restored job commits this output, unless the brokers abort its transactions first"
_STALE = (
    "the FlinkKafkaConsumer's positions are from the previous checkpoint, so the job's output "
    "between that checkpoint and the stop would be duplicated"
)
_UNCLEAR_AFTER_STOP = "the savepoint does not show whether the stop committed this output"
_USE_EXACT = (
    "use a checkpoint, or a savepoint that was taken without stopping the job; their positions are "
    "exact"
)

ANOTHER_SOURCE_KIND = finding(
    Code.ANOTHER_SOURCE_KIND,
    "the operator's source state does not belong to a KafkaSource, so the source is not moved "
    "({reason})",
)
ASYNC_JOIN_NOT_READ = finding(
    Code.IN_FLIGHT_RECORDS,
    "migrate cannot check whether the operator's keyed state contains records waiting for "
    "responses (an async join), because the keyed_state extension is not installed; a move would "
    "lose such records",
    _DRAIN,
)
ASYNC_JOIN_RECORDS = finding(
    Code.IN_FLIGHT_RECORDS,
    "the operator's keyed state contains {records:record} waiting for responses (an async join); "
    "a move loses them",
    _DRAIN,
)
ASYNC_JOIN_UNCOUNTED = finding(
    Code.IN_FLIGHT_RECORDS,
    "the operator's keyed state contains records waiting for responses (an async join); a move "
    "loses them",
    _DRAIN,
)
ASYNC_JOIN_UNREADABLE = finding(
    Code.IN_FLIGHT_RECORDS,
    "the operator's keyed state may contain records waiting for responses (an async join), but "
    "this state cannot be read ({reason}); a move loses such records",
    _DRAIN,
)
ASYNC_RECORDS = finding(
    Code.IN_FLIGHT_RECORDS,
    "the operator's queue contains up to {records:record} waiting for responses (async I/O); a "
    "move loses them",
    _DRAIN,
)
BEAM_BUNDLE_RECORDS = finding(
    Code.IN_FLIGHT_RECORDS,
    _BEAM_RECORDS
    + "the operator produced when the checkpoint ended its bundle, and that it has not sent "
    "downstream yet; a move loses them",
    "run the pipeline with --finishBundleBeforeCheckpointing, and take a new checkpoint",
)
BEAM_DISCOVERY = finding(
    Code.INITIAL_DISCOVERY,
    "the operator is a KafkaIO source in an Apache Beam pipeline; such a source reads only the "
    "partitions that existed when the pipeline started",
)
BEAM_FUNCTION = finding(
    Code.ANOTHER_SOURCE_KIND,
    "the operator is an Apache Beam DoFn with keyed state; if the DoFn reads Kafka (a splittable "
    "DoFn), its positions are not moved",
    "run the pipeline with --experiments=use_deprecated_read",
)
BEAM_PUSHED_BACK_RECORDS = finding(
    Code.IN_FLIGHT_RECORDS,
    _BEAM_RECORDS + "are waiting for side inputs; a move loses them",
    "take a new checkpoint once the side inputs of these records are ready "
    "(--finishBundleBeforeCheckpointing does not release them)",
)
BEAM_STABLE_INPUT_RECORDS = finding(
    Code.IN_FLIGHT_RECORDS,
    _BEAM_RECORDS + "are waiting until the checkpoint is complete (@RequiresStableInput); a move "
    "loses them",
    "take a new checkpoint after a checkpoint interval without input "
    "(--finishBundleBeforeCheckpointing does not release them)",
)
COMMITTED_MARKER = finding(
    Code.COMMITTED_MARKER,
    "{count:partition is|partitions are} still at the 'committed' marker, because the job has not "
    "read any records there; only Flink's own consumer group has the start positions of these "
    "partitions",
)
DAMAGED_SOURCE = finding(
    Code.DAMAGED_SOURCE,
    "some of the operator's state belongs to a Kafka source, and some cannot be decoded "
    "({reason}); the source is damaged, or its kind is unsupported",
)
FILES_IN_PROGRESS = finding(
    Code.FILES_IN_PROGRESS,
    "a FileSink has {count:unfinished file} (the first is in {path!r}); " + _HIDDEN,
)
FILE_MAY_BE_IN_PROGRESS = finding(
    Code.FILES_IN_PROGRESS,
    _MAY_BE_OPEN,
)
FINISHED_OPERATORS = finding(
    Code.FINISHED_OPERATORS,
    "{count:operator} had finished and stored no state ({operators}); the positions of a finished "
    "Kafka source are not in the checkpoint",
)
GROUP_READS = finding(
    Code.GROUP_READS,
    "group {group!r} has {members:member}; all records that its consumers read from now on will be "
    "duplicated",
)
HIGHER_NUMBER_IS_EARLIER = finding(
    Code.NUMBERING_BEGAN_ANEW,
    "chk-{other} in the same directory was written before this chk-{number}, although the number "
    "of chk-{other} is higher",
    "find out which checkpoint the job wrote last",
)
HYBRID_SOURCE = finding(
    Code.HYBRID_SOURCE,
    "this HybridSource is reading a Kafka source (source {number} in its list); the state does "
    "not contain the later sources",
)
HYBRID_SOURCE_DAMAGED = finding(
    Code.HYBRID_SOURCE_ELSEWHERE,
    "this HybridSource is reading source {number} in its list; some of the operator's state "
    "belongs to a Kafka source, and some cannot be decoded ({reason})",
)
HYBRID_SOURCE_ELSEWHERE = finding(
    Code.HYBRID_SOURCE_ELSEWHERE,
    "this HybridSource is reading a non-Kafka source (source {number} in its list), so either it "
    "has not reached Kafka yet, or it never reads Kafka; unread data of source {number} is not "
    "moved",
)
HYBRID_SPLITS_LEFT = finding(
    Code.HYBRID_SOURCE_ELSEWHERE,
    "the readers of this HybridSource still have {splits:split} from its other sources; "
    "unread data in these splits is not moved",
)
IDLE_COMMITTER = finding(
    Code.SINK_STATE,
    "the operator is a sink committer without transactions to commit",
)
IDLE_FILE_SINK = finding(
    Code.SINK_STATE,
    "the operator is a FileSink writer with no open file",
)
IDLE_KAFKA_SINK = finding(
    Code.SINK_STATE,
    "the operator is a KafkaSink writer (transactional ID prefix {prefixes!r})",
)
INITIAL_DISCOVERY = finding(
    Code.INITIAL_DISCOVERY,
    "the state does not show that the first discovery of partitions had finished, so partitions "
    "may be missing; the job's starting policy determines their start positions, but the state "
    "does not contain this policy",
)
KAFKA_ASSUMED = finding(
    Code.KAFKA_ASSUMED,
    "the offsets of {count:source} of the query (the first is {source}) have Kafka's format, but "
    "the file with the initial offsets of a Kafka source (sources/{source}/0) is missing; a "
    "different connector may have written these offsets",
)
KAFKA_SINK_WITH_OPEN_TRANSACTIONS = finding(
    Code.SINK_STATE,
    "the operator is a KafkaSink writer (transactional ID prefix {prefixes!r}), with "
    "{count:transaction} in progress",
)
LATER_CHECKPOINT = finding(
    Code.RAN_ON,
    "chk-{newest} in the same directory was written after this chk-{number}, although its number "
    "is lower, so the job kept running after this checkpoint, and its later output would be "
    "duplicated; this may be wrong if the checkpoints were copied without their modification times",
)
LATEST_MARKER = finding(
    Code.LATEST_MARKER,
    "{count:partition is|partitions are} still at the 'latest' marker, because the job has not "
    "read any records there; a start at the current log end offset would skip the records written "
    "since the checkpoint",
)
LEGACY_CONSUMER = finding(
    Code.LEGACY_CONSUMER,
    "the operator's state has the name that FlinkKafkaConsumer (the predecessor of KafkaSource) "
    "uses, but contains no readable position ({reason})",
)
LOWER_NUMBER_IS_LATER = finding(
    Code.NUMBERING_BEGAN_ANEW,
    "chk-{other} in the same directory was written after this chk-{number}, although the number "
    "of chk-{other} is lower",
    "find out which checkpoint the job wrote last",
)
NEWER_CHECKPOINT = finding(
    Code.RAN_ON,
    "the newer complete checkpoint chk-{newest} is in the same directory as this checkpoint, so "
    "the job kept running after this checkpoint, and its later output would be duplicated",
)
NOT_A_STOP = finding(
    Code.NOT_A_STOP,
    "this is {kind}; if the job kept running, its later output will be duplicated",
)
NO_ENUMERATOR = finding(
    Code.NO_ENUMERATOR,
    "the checkpoint contains no enumerator state; if the source is bounded, the partitions that it "
    "has read to the end are missing",
)
OUTPUT_BEYOND = finding(
    Code.OUTPUT_BEYOND,
    "after batch {batch}, the query has logged batch {next_batch} (asyncProgressTrackingEnabled), "
    "so it has written records beyond these positions; these records will be duplicated",
)
OUTPUT_MAY_BE_BEYOND = finding(
    Code.OUTPUT_BEYOND,
    "if the query uses asyncProgressTrackingEnabled or Real-Time Mode, it may have written records "
    "beyond these positions, and these records will be duplicated; the query log does not show "
    "whether it uses these modes",
)
PENDING_FILES = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_FILES}; {_LOST}",
)
PENDING_FILES_AFTER_STOP = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_FILES}; {_COMMITTED_IF_FINISHED}",
)
PENDING_FILES_RESTORED = finding(
    Code.PENDING_TRANSACTIONS,
    _PENDING_FILES + "; the restored job commits these files; if they were already committed when "
    "the job stopped, committing them again has no effect",
)
PENDING_OF_PRODUCER = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_OF_PRODUCER}; {_LOST}",
)
PENDING_OF_PRODUCER_AFTER_STOP = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_OF_PRODUCER}; {_COMMITTED_IF_FINISHED}",
)
PENDING_OF_PRODUCER_RESTORED = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_OF_PRODUCER}; {_RESTORED}",
)
PENDING_TRANSACTIONS = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_TRANSACTIONS}; {_LOST}",
)
PENDING_TRANSACTIONS_AFTER_STOP = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_TRANSACTIONS}; {_UNCLEAR_AFTER_STOP}",
)
PENDING_TRANSACTIONS_RESTORED = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_TRANSACTIONS}; {_RESTORED}",
)
PENDING_UNREADABLE = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_UNREADABLE}; {_LOST}",
)
PENDING_UNREADABLE_AFTER_STOP = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_UNREADABLE}; {_UNCLEAR_AFTER_STOP}",
)
PENDING_UNREADABLE_RESTORED = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_UNREADABLE}; {_RESTORED}",
)
PENDING_UNREADABLE_WITH_FILES = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_UNREADABLE}; {_LOST}; {_MAY_ALSO_BE_OPEN}",
)
PENDING_UNREADABLE_WITH_FILES_AFTER_STOP = finding(
    Code.PENDING_TRANSACTIONS,
    f"{_PENDING_UNREADABLE}; {_UNCLEAR_AFTER_STOP}; {_MAY_ALSO_BE_OPEN}",
)
QUERY_ID_MISSING = finding(
    Code.QUERY_ID_MISSING,
    "the file `metadata`, which contains the query's ID, is missing; Spark versions with "
    "SPARK-55058 do not start the query; older versions start it with a new ID, and a sink that "
    "stores query IDs treats it as a different query",
)
QUERY_STATE = finding(
    Code.QUERY_STATE,
    "query {query} stores the state of {operators:operator} (in state/); this state may contain "
    "rows that were read but not emitted, and these rows are not moved",
)
RETAINED_CLUSTERS = finding(
    Code.RETAINED_CLUSTERS,
    "the job's metadata service has removed {count:cluster} ({clusters!r}); if the service adds "
    "one of them again, the job resumes reading it from the positions in this checkpoint",
)
SHARED_TOPIC = finding(
    Code.SHARED_TOPIC,
    "several sources of the query read {topics:5}, and the query's log does not identify their "
    "Kafka clusters; if the sources read two clusters, the positions of only one are moved",
)
SINK_MEMORY = finding(
    Code.SINK_MEMORY,
    _MAY_DROP,
    "to check the table, add {option.sink:TABLE}",
)
SINK_OF_UNKNOWN_MEMORY = finding(
    Code.SINK_MEMORY,
    "the type of the sink {sinks} cannot be determined; " + _MAY_DROP,
    "to check the table, add {option.sink:TABLE}",
)
STALE_POSITIONS = finding(
    Code.STALE_POSITIONS,
    _STALE,
    _USE_EXACT,
)
STALE_POSITIONS_IF_STOPPED = finding(
    Code.STALE_POSITIONS,
    "if this savepoint was taken when Flink 1.15 stopped the job, or when Flink 1.14 drained it, "
    + _STALE,
    _USE_EXACT,
)
STATEFUL_OUTPUT_MAY_BE_BEYOND = finding(
    Code.OUTPUT_BEYOND,
    "if the query uses Real-Time Mode (Spark 4.3 or later), it may have written records beyond "
    "these positions, and these records will be duplicated; the query log does not show whether "
    "the query uses this mode",
)
STATE_NOT_MOVED = finding(
    Code.STATE_NOT_MOVED,
    "the operator has {sizes} that will not be migrated; this state may contain records that were "
    "read but not emitted",
)
STATE_OF_OPERATORS_NOT_MOVED = finding(
    Code.STATE_NOT_MOVED,
    "{count:operator has|operators have} {bytes} bytes of state that is not migrated; it may "
    "contain records that were read but not emitted",
)
TRANSACTIONS_ABORTED = finding(
    Code.PENDING_TRANSACTIONS,
    "{transactions} of a KafkaSink was aborted on the brokers; its output is lost, and a start "
    "from this checkpoint does not reprocess the records that produced it",
)
TRANSACTIONS_NOT_QUERIED = finding(
    Code.PENDING_TRANSACTIONS,
    "{finding}",
    "add {option.bootstrap_servers:HOST:PORT} to query the sink's brokers",
)
TRANSACTIONS_NOT_REPORTED = finding(
    Code.PENDING_TRANSACTIONS,
    "{finding}; the brokers did not report the outcome of the transactions ({error})",
)
TRANSACTIONS_OPEN = finding(
    Code.PENDING_TRANSACTIONS,
    "{transactions} of a KafkaSink is still open on the brokers; its output will be lost when the "
    "transaction times out",
)
TRANSACTIONS_UNKNOWN = finding(
    Code.PENDING_TRANSACTIONS,
    "{finding}; these brokers have no record of {transactions}",
)
UNALIGNED_RECORDS = finding(
    Code.IN_FLIGHT_RECORDS,
    "the operator's channels contain {bytes} bytes of records that are not yet processed (an "
    "unaligned checkpoint); a move loses them",
    "take an aligned checkpoint, or use stop-with-savepoint",
)
UNCOMMITTED_BATCH = finding(
    Code.UNCOMMITTED_BATCH,
    "the query has started batch {batch} but not committed it; any output that the batch has "
    "already written will be duplicated",
    "to commit the batch before you move, run the query once with trigger(availableNow=True); if "
    "the batch cannot succeed, its output may be duplicated",
)
UNDISCOVERED_TOPICS = finding(
    Code.UNDISCOVERED_TOPICS,
    "{count:topic in the source's streams has|topics in the source's streams have} no partitions "
    "in the state (the first is {topic}), because the job had not discovered these topics; these "
    "topics are not moved",
)
UNRESOLVED_POSITIONS = finding(
    Code.UNRESOLVED_POSITIONS,
    "the state lacks {count} of {total} positions; the first is {partition} ({reason})",
)
WRITTEN_BEFORE_LOWER_NUMBER = finding(
    Code.NUMBERING_BEGAN_ANEW,
    "chk-{other} in the same directory has a higher number but was written earlier; either an "
    "earlier run of the job wrote it, or the checkpoints were copied without their modification "
    "times",
)
WRITTEN_BY = finding(
    Code.WRITTEN_BY,
    "written by {writers}; the state does not record the exact release",
)
