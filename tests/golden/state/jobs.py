"""List the jobs of the golden files of keyed state, with their contents and Flink versions.

The jobs themselves are in `tests/support/java/keyed`, under the same names.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.flink import PATCHES, RELEASES, RUN_BY_TESTS, STANDALONE_JOBS
from tests.support.keyed_jobs import ASYNC_STATE


@dataclass(frozen=True, slots=True)
class KeyedJob:
    name: str
    description: str
    versions: tuple[str, ...] = RUN_BY_TESTS


# Fewer snapshots of the oldest version, to keep the total size small.
SINCE_1_20 = ("1.20", "2.2")
EVERY = tuple(version for version in RELEASES if version not in {*STANDALONE_JOBS, *PATCHES})
BETWEEN = tuple(version for version in EVERY if version not in RUN_BY_TESTS)

# Every shape of key, namespace and value.
SHAPES = (
    KeyedJob(
        "kinds",
        "every kind of state, with and without a TTL, and timers; Long keys",
    ),
    KeyedJob("types", "value state of every simple type"),
    KeyedJob("composites", "nested tuples, rows, lists, maps, arrays, POJOs, and nullable values"),
    KeyedJob(
        "pojos",
        "POJOs with containers, arrays, and JDK types; with a registered subclass, with a nested "
        "POJO of the same class, and with a Kryo class; a record; a set",
    ),
    KeyedJob(
        "evolved",
        "POJO with added and removed fields, in a state that was used after the "
        "change, and in one that was not",
    ),
    KeyedJob("avro", "Avro records, generic and specific"),
    KeyedJob("kryo", "Kryo values of JDK classes and of a user's class"),
    KeyedJob(
        "jdk",
        "Kryo keys, fields, and elements (UUID, Duration)",
        versions=SINCE_1_20,
    ),
    KeyedJob("keys", "keys of every type", versions=SINCE_1_20),
    KeyedJob(
        "namespaces", "an operator's own namespaces, with keys and namespaces of variable length"
    ),
    KeyedJob(
        "windows",
        "DataStream windows (tumbling, sliding, session, count, with an evictor, with allowed "
        "lateness); an interval join",
    ),
    KeyedJob("sql-groups", "GROUP BY, COUNT(DISTINCT), COLLECT, nested GROUP BY, DISTINCT"),
    KeyedJob("sql-windows", "TUMBLE, HOP, and CUMULATE; GROUP BY with TUMBLE and with SESSION"),
    KeyedJob(
        "sql-ranks", "ROW_NUMBER() = 1 with four sort orders, top n, OVER", versions=SINCE_1_20
    ),
    KeyedJob("sql-joins", "joins, an interval join, IN"),
    KeyedJob("sql-rows", "rows with every SQL type"),
    KeyedJob(
        "small",
        "a state of each kind, with and without a TTL; strings, a row, POJOs with an enum and "
        "containers; timers; a session window",
        versions=BETWEEN,
    ),
    KeyedJob("sql-small", "GROUP BY, TUMBLE", versions=BETWEEN),
)

# The same few states, in every place where Flink can store them.
STORAGE = (
    KeyedJob("files", "heap backend with every state in a file"),
    KeyedJob("compressed", "heap backend, snapshot compression, parallelism 2", versions=("1.20",)),
    KeyedJob("compressed-files", "heap backend, snapshot compression, state in files"),
    KeyedJob(
        "wide", "heap backend, max parallelism 300, with two-byte key groups", versions=("1.20",)
    ),
    KeyedJob("rescaled-up", "heap backend, parallelism 3, restored from 1", versions=SINCE_1_20),
    KeyedJob("rescaled-down", "heap backend, parallelism 1, restored from 3"),
    KeyedJob("rocksdb", "RocksDB, incremental"),
    KeyedJob("rocksdb-few", "RocksDB, incremental; a few states", versions=BETWEEN),
    KeyedJob("rocksdb-full", "RocksDB, full checkpoints", versions=EVERY),
    KeyedJob("rocksdb-compressed", "RocksDB, snapshot compression", versions=("1.20",)),
    KeyedJob(
        "rocksdb-heap-timers",
        "RocksDB with timers on the heap, and raw keyed state in checkpoints",
        versions=SINCE_1_20,
    ),
    KeyedJob("rocksdb-wide", "RocksDB, max parallelism 300", versions=("1.20",)),
    KeyedJob("rocksdb-rescaled-up", "RocksDB, parallelism 2, restored from 1", versions=("1.20",)),
    KeyedJob("file-merging", "heap backend with merged small files", versions=SINCE_1_20),
    KeyedJob(
        "changelog", "changelog of the heap backend without materialized state", versions=SINCE_1_20
    ),
    KeyedJob("changelog-materialized", "changelog with materialized state", versions=SINCE_1_20),
    KeyedJob("forst", "ForSt, states of the synchronous API", versions=ASYNC_STATE),
    KeyedJob("async", "heap backend, states of the asynchronous API", versions=ASYNC_STATE),
    KeyedJob("async-rocksdb", "RocksDB, states of the asynchronous API", versions=ASYNC_STATE),
    KeyedJob("async-forst", "ForSt, states of the asynchronous API", versions=ASYNC_STATE),
    KeyedJob(
        "sql-async-forst",
        "ForSt, SQL with table.exec.async-state.enabled (GROUP BY, TUMBLE, a join)",
        versions=ASYNC_STATE,
    ),
    KeyedJob(
        "changelog-rocksdb", "changelog of RocksDB with materialized state", versions=("1.20",)
    ),
)

JOBS = (*SHAPES, *STORAGE)
