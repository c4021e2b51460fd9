"""List the golden checkpoints, with their contents and the checks before their adoption.

The jobs themselves are in `tests/support/java/flink`, under the same names.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.golden import checks
from tests.support.flink import RELEASES, RUN_BY_TESTS, STANDALONE_JOBS


@dataclass(frozen=True, slots=True)
class Scenario:
    """One job of GoldenJobs.java, including how it stops; `check` checks the job's state."""

    name: str
    description: str
    check: checks.Check
    versions: tuple[str, ...] = RUN_BY_TESTS
    extra: str | None = None
    two_clusters: bool = False


EVERY = tuple(version for version in RELEASES if version not in STANDALONE_JOBS)
# The oldest and the newest version whose connector has a FlinkKafkaConsumer.
LEGACY = ("1.15", "1.20")

# Each kind of snapshot, from one job.
SNAPSHOTS = (
    Scenario(
        "retained",
        "retained aligned checkpoint, inline state, with two topics in one source, parallelism 2,"
        " and uids; fully read, partly read, and empty partitions; exactly-once file sink",
        checks.with_type("Checkpoint", None, None),
        versions=EVERY,
    ),
    Scenario(
        "savepoint",
        "canonical savepoint of a running job",
        checks.with_type("Savepoint", "NONE", "CANONICAL"),
        versions=EVERY,
    ),
    Scenario(
        "native-savepoint",
        "native savepoint of a running job",
        checks.with_type("Savepoint", "NONE", "NATIVE"),
        versions=EVERY,
    ),
    Scenario(
        "stop",
        "stop-with-savepoint (suspend)",
        checks.with_type("Suspend Savepoint", "SUSPEND", "CANONICAL"),
        versions=EVERY,
    ),
    Scenario(
        "drain",
        "stop-with-savepoint --drain (terminate)",
        checks.with_type("Terminate Savepoint", "TERMINATE", "CANONICAL"),
        versions=EVERY,
    ),
)

# The places where Flink stores state, and the distribution of state to subtasks.
STATE = (
    Scenario(
        "retained-files",
        "retained checkpoint, every state in a file; no uid; parallelism 3 over 2 partitions",
        checks.empty_reader,
    ),
    Scenario(
        "compressed",
        "snapshot compression on, state in files, 40 partitions",
        checks.many_splits,
    ),
    Scenario(
        "compressed-inline",
        "snapshot compression on, state inline, 40 partitions",
        checks.many_splits,
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "rocksdb-incremental",
        "RocksDB, incremental, with keyed state in shared/, under absolute URIs",
        checks.keyed,
        versions=("1.20", "2.2"),
        extra="rocksdb",
    ),
    Scenario(
        "changelog",
        "changelog backend with all changes of keyed state in a log",
        checks.keyed,
        versions=("1.20", "2.2"),
        extra="changelog",
    ),
    Scenario(
        "changelog-materialized",
        "changelog backend with materialized keyed state and later changes",
        checks.keyed,
        versions=("1.20", "2.2"),
        extra="changelog",
    ),
    Scenario(
        "file-merging",
        "merged small files, with states as segments of files in taskowned/ and shared/, under "
        "absolute URIs",
        checks.midway,
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "file-merging-across",
        "small files merged across checkpoints",
        checks.midway,
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "unaligned",
        "unaligned retained checkpoint with the source at the end of every partition, and most "
        "records in channel state before a slow operator",
        checks.in_flight,
    ),
    Scenario(
        "unaligned-recovery",
        "as unaligned, but taken during recovery from such a checkpoint (FLIP-547), with the "
        "recovered records in channel state",
        checks.in_flight,
        versions=("2.3",),
    ),
    Scenario(
        "async-io",
        "stop-with-savepoint of a job with async I/O and a row-wise FileSink, with waiting "
        "records and open files",
        checks.waiting,
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "async-io-drain",
        "as async-io, but drained, without waiting records or open files",
        checks.drained,
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "max-parallelism",
        "max parallelism 32768; no keyed state, because its handles would contain long lists of "
        "key groups",
        checks.widest,
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "rescaled-up",
        "restored with parallelism 3 from a checkpoint of parallelism 1",
        checks.one_each,
    ),
    Scenario(
        "rescaled-down",
        "restored with parallelism 1 from a checkpoint of parallelism 3",
        checks.one_each,
    ),
)

# Operators that read and write Kafka, and operators that do not.
SOURCES = (
    Scenario(
        "starting-offsets",
        "sources that start from committed and latest offsets, with markers for unread partitions",
        checks.markers,
    ),
    Scenario(
        "numeric-starts",
        "sources that start from a timestamp and from specific offsets; one partition has no "
        "record after the timestamp, and one has no specific offset",
        checks.numeric_starts,
        # The connector of 1.15 fails if all records in a partition are older than the timestamp.
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "pattern",
        "source that discovers topics by a pattern",
        checks.midway,
    ),
    Scenario(
        "bounded",
        "bounded source, parallelism 1, with payments-0 finished (18) and payments-1 in progress",
        checks.split_finished,
    ),
    Scenario(
        "bounded-subtask-finished",
        "bounded source, parallelism 2, with the reader of payments-0 as a finished subtask",
        checks.subtask_finished,
    ),
    Scenario(
        "source-finished",
        "fully finished bounded source and an unbounded source",
        checks.source_finished,
    ),
    Scenario(
        "two-sources",
        "two sources of one topic with different starts; keyed state counts records",
        checks.two_sources,
    ),
    Scenario(
        "table",
        "SQL query on a Kafka table, with a source uid from the planner",
        checks.table_source,
        versions=("1.20", "2.2"),
        extra="table",
    ),
    Scenario(
        "upsert-kafka",
        "SQL query on an upsert-kafka table",
        checks.table_source,
        versions=("1.20", "2.2"),
        extra="table",
    ),
    Scenario(
        "dynamic",
        "DynamicKafkaSource with two streams on two clusters and equal topic names; with "
        "connector 5.0, one cluster has its own starting offsets initializer",
        checks.two_clusters,
        versions=("1.20", "2.2"),
        two_clusters=True,
    ),
    Scenario(
        "hybrid-files",
        "HybridSource (files, then Kafka) that still reads its files",
        checks.in_files,
    ),
    Scenario(
        "hybrid-kafka",
        "HybridSource (files, then Kafka) that has reached Kafka",
        checks.in_kafka,
    ),
    Scenario(
        "legacy",
        "FlinkKafkaConsumer, three topics, parallelism 2, with last processed offsets or -1; "
        "keyed state counts records",
        checks.legacy,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-names",
        "FlinkKafkaConsumer with topic names of minimum and maximum length",
        checks.legacy_names,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-starts",
        "FlinkKafkaConsumers that started from group, latest, and specific offsets, and from a "
        "timestamp; all positions are numbers",
        checks.legacy_starts,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-not-started",
        "FlinkKafkaConsumers before their first record, with the markers of their starts",
        checks.legacy_markers,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-rescaled",
        "FlinkKafkaConsumer, restored with parallelism 3 from a checkpoint of parallelism 1",
        checks.legacy_rescaled,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-stop",
        "FlinkKafkaConsumer at a stop-with-savepoint after at least 40 records of orders-1, with "
        "the offsets of the previous checkpoint",
        checks.legacy_stopped,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-drain",
        "as legacy-stop, but drained",
        checks.legacy_stopped,
        versions=LEGACY,
    ),
    Scenario(
        "kafka-sink",
        "exactly-once KafkaSink with uncommitted transactions in a retained checkpoint",
        checks.transactions,
    ),
    Scenario(
        "other-kinds",
        "sources other than KafkaSource: NumberSequenceSource, FileSource (monitoring), a source "
        "with Kinesis-like shards, HybridSource (files, then Kafka), and DataGeneratorSource (not"
        " with 1.15)",
        checks.no_kafka,
    ),
    Scenario(
        "beam",
        "Beam pipeline that reads Kafka with an UnboundedSource (experiment use_deprecated_read),"
        " as a Flink source in Beam 2.62 and in Beam's wrapper in 2.50",
        checks.beam,
        versions=("beam", "beam-2.50"),
    ),
    Scenario(
        "beam-sdf",
        "Beam pipeline that reads Kafka with a splittable DoFn (experiment use_sdf_read), with "
        "unread positions in keyed state",
        checks.beam_sdf,
        versions=("beam-sdf",),
    ),
)

# Layouts that no supported Flink writes.
NO_MORE_WRITTEN = (
    Scenario(
        "old",
        "retained checkpoint in an obsolete layout of Flink 1.10 (metadata 2, FlinkKafkaConsumer)"
        " or 1.12.0 (the first KafkaSource, enumerator state 0)",
        checks.old,
        versions=("1.10", "1.12"),
    ),
)

SCENARIOS = (*SNAPSHOTS, *STATE, *SOURCES, *NO_MORE_WRITTEN)
