"""The golden checkpoints: what each is of, and what its state must show to be adopted.

The jobs themselves are in `tests/support/java/flink`, under the same names.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.golden import checks
from tests.support.flink import RELEASES, RUN_BY_TESTS, STANDALONE_JOBS


@dataclass(frozen=True, slots=True)
class Scenario:
    """One job of GoldenJobs.java and how it is stopped; `check` says what its state must show."""

    name: str
    description: str
    check: checks.Check
    versions: tuple[str, ...] = RUN_BY_TESTS
    extra: str | None = None
    two_clusters: bool = False


EVERY = tuple(version for version in RELEASES if version not in STANDALONE_JOBS)
# The oldest and the newest whose connector has a FlinkKafkaConsumer.
LEGACY = ("1.15", "1.20")

# Each kind of snapshot, of one job.
SNAPSHOTS = (
    Scenario(
        "retained",
        "retained aligned checkpoint, inline state: two topics in one source, parallelism 2, uids; "
        "fully read, partly read and empty partitions; exactly-once file sink",
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

# Where state is, and how it is spread.
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
        "RocksDB, incremental: keyed state in shared/, under absolute URIs",
        checks.keyed,
        versions=("1.20", "2.2"),
        extra="rocksdb",
    ),
    Scenario(
        "changelog",
        "changelog backend: changes of keyed state in a log, nothing materialized yet",
        checks.keyed,
        versions=("1.20", "2.2"),
        extra="changelog",
    ),
    Scenario(
        "changelog-materialized",
        "changelog backend: keyed state materialized, and the changes since",
        checks.keyed,
        versions=("1.20", "2.2"),
        extra="changelog",
    ),
    Scenario(
        "file-merging",
        "small files merged: states are segments of files in taskowned/ and shared/, "
        "under absolute URIs",
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
        "unaligned retained checkpoint: the source is at the end of every partition, most of the "
        "records are in channel state before a slow operator",
        checks.in_flight,
    ),
    Scenario(
        "unaligned-recovery",
        "the same as unaligned, taken while the job still recovers from such a checkpoint "
        "(FLIP-547): the recovered records are in channel state again",
        checks.in_flight,
        versions=("2.3",),
    ),
    Scenario(
        "async-io",
        "stop-with-savepoint of a job with async I/O and a FileSink of rows: records wait for "
        "requests, and files are open",
        checks.waiting,
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "async-io-drain",
        "the same as async-io, drained: nothing waits and no file is open",
        checks.drained,
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "max-parallelism",
        "max parallelism 32768 (without keyed state, which would be long lists of key groups)",
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

# What reads and writes Kafka, and what does not.
SOURCES = (
    Scenario(
        "starting-offsets",
        "sources that start from committed and from the latest offsets: markers where nothing has "
        "been read yet",
        checks.markers,
    ),
    Scenario(
        "numeric-starts",
        "sources that start from a timestamp and from specific offsets; a partition without a "
        "record as young, and one without an offset of its own",
        checks.numeric_starts,
        # 1.15's connector fails where no record is as young as the timestamp.
        versions=("1.20", "2.2"),
    ),
    Scenario(
        "pattern",
        "a source that finds its topics by a pattern",
        checks.midway,
    ),
    Scenario(
        "bounded",
        "bounded source, parallelism 1: payments-0 is finished (18), payments-1 is being read",
        checks.split_finished,
    ),
    Scenario(
        "bounded-subtask-finished",
        "bounded source, parallelism 2: the reader of payments-0 is a finished subtask",
        checks.subtask_finished,
    ),
    Scenario(
        "source-finished",
        "a bounded source that is fully finished beside an unbounded one",
        checks.source_finished,
    ),
    Scenario(
        "two-sources",
        "two sources read one topic from different starts; keyed state counts records",
        checks.two_sources,
    ),
    Scenario(
        "table",
        "a SQL query on a Kafka table: its source's uid is the planner's",
        checks.table_source,
        versions=("1.20", "2.2"),
        extra="table",
    ),
    Scenario(
        "upsert-kafka",
        "a SQL query on an upsert-kafka table",
        checks.table_source,
        versions=("1.20", "2.2"),
        extra="table",
    ),
    Scenario(
        "dynamic",
        "DynamicKafkaSource: two streams on two clusters, whose topics have the same names; with "
        "connector 5.0, one of the clusters has a starting offsets initializer of its own",
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
        "HybridSource (files, then Kafka) that has come to Kafka",
        checks.in_kafka,
    ),
    Scenario(
        "legacy",
        "FlinkKafkaConsumer, three topics, parallelism 2: it stores the offsets it has read last, "
        "-1 where nothing has been read; keyed state counts records",
        checks.legacy,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-names",
        "FlinkKafkaConsumer of topics whose names are as short and as long as Kafka allows",
        checks.legacy_names,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-starts",
        "FlinkKafkaConsumers that start from a group's, the latest and specific offsets and from a "
        "timestamp: once they read, each is a number",
        checks.legacy_starts,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-not-started",
        "FlinkKafkaConsumers caught before they read: the markers of their starts",
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
        "FlinkKafkaConsumer, stopped with a savepoint after 40 records of orders-1 or more: it "
        "keeps the offsets of the checkpoint before",
        checks.legacy_stopped,
        versions=LEGACY,
    ),
    Scenario(
        "legacy-drain",
        "the same as legacy-stop, drained",
        checks.legacy_stopped,
        versions=LEGACY,
    ),
    Scenario(
        "kafka-sink",
        "exactly-once KafkaSink: the retained checkpoint holds transactions to be committed",
        checks.transactions,
    ),
    Scenario(
        "other-kinds",
        "NumberSequenceSource, FileSource (monitoring), a source of shards laid out like those of "
        "Kinesis's, HybridSource (files, then Kafka) and, but for 1.15, DataGeneratorSource: none "
        "of them a KafkaSource",
        checks.no_kafka,
    ),
    Scenario(
        "beam",
        "a Beam pipeline that reads Kafka by an UnboundedSource (experiment use_deprecated_read): "
        "with Beam 2.62 as a source of Flink's, with 2.50 in Beam's wrapper",
        checks.beam,
        versions=("beam", "beam-2.50"),
    ),
    Scenario(
        "beam-sdf",
        "a Beam pipeline that reads Kafka by a splittable DoFn (experiment use_sdf_read): its "
        "positions are in keyed state, and are not read",
        checks.beam_sdf,
        versions=("beam-sdf",),
    ),
)

# Layouts that no supported Flink writes.
NO_MORE_WRITTEN = (
    Scenario(
        "old",
        "retained checkpoint in a layout that is no more written: of Flink 1.10 (metadata 2, "
        "FlinkKafkaConsumer) and of 1.12.0 (the first KafkaSource, enumerator state 0)",
        checks.old,
        versions=("1.10", "1.12"),
    ),
)

SCENARIOS = (*SNAPSHOTS, *STATE, *SOURCES, *NO_MORE_WRITTEN)
