"""The state of a DynamicKafkaSource, which contains the state of a KafkaSource for each cluster.

Split version 1: ``UTF clusterId, i32 splitVersion``, then a KafkaPartitionSplit up to the end.
In version 2, ``bool retained`` follows the cluster ID, and ``i64 retainedUntil`` comes next if
``retained`` is true.

Enumerator version 1: ``i32 n`` streams x {``UTF streamId, i32 n`` clusters x {``UTF clusterId, i32
n`` x {``UTF topic``}, ``UTF bootstrapServers``}}; then ``i32 enumeratorVersion, i32 n`` clusters x
{``UTF clusterId, i32 len``, a KafkaSourceEnumState}. In version 2, the initializers of the starting
and of the stopping offsets follow the bootstrap servers, each as ``bool present`` and, if it is
true, ``i32 n`` and n bytes. Version 3 appends ``i32 n`` retained clusters x {``UTF clusterId, i64
retainedUntil, i32 len``, a KafkaSourceEnumState}.

If the metadata service removes a cluster, the cluster's positions stay in the state until
``retainedUntil`` (epoch milliseconds). If the service lists the cluster again, Flink resumes from
these positions.

An initializer is a serialized Java object, which is skipped.

Source: org.apache.flink.connector.kafka.dynamic.source.{split.DynamicKafkaSourceSplitSerializer,
enumerator.DynamicKafkaSourceEnumStateSerializer} @ connector 3.4.0-1.20, 5.0.0-2.2, and the main
branch as of 2026-06-29 (commit eb8ff700; split version 2, enumerator version 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from decoder.cursor import Cursor
from decoder.kafka.enumerator import EnumeratorState, read_enumerator
from decoder.kafka.split import Split, read_split, read_topic

DYNAMIC_SPLIT_VERSIONS = (1, 2)
# The connector's releases, by the enumerator version that they write.
DYNAMIC_ENUMERATOR_WRITTEN_BY = {1: "3.1 to 4.0", 2: "5.0", 3: "later than 5.0"}

# The minimum sizes in bytes of the items. A string has a two-byte length, and a cluster ID or a
# topic has at least one more byte.
_MIN_TOPIC_BYTES = 2 + 1
_MIN_CLUSTER_BYTES = 2 + 1 + 4 + 2
_MIN_STREAM_BYTES = 2 + 4
_MIN_CLUSTER_STATE_BYTES = 2 + 1 + 4
_MIN_RETAINED_CLUSTER_BYTES = _MIN_CLUSTER_STATE_BYTES + 8

_T = TypeVar("_T")


class DynamicSplit(NamedTuple):
    """A split, and the ID of its cluster in the job's metadata service.

    ``retained_until`` (epoch milliseconds) is set if the service no longer lists the cluster.
    """

    cluster: str
    split: Split
    retained_until: int | None


class StreamCluster(NamedTuple):
    """The topics of a stream in one cluster."""

    topics: frozenset[str]
    bootstrap_servers: str


class DynamicEnumeratorState(NamedTuple):
    """DynamicKafkaSourceEnumState.

    Attributes:
        version: the version of this enumerator's serializer, not of the clusters' enumerators.
        streams: the metadata service's last response, by stream ID and then by cluster ID.
        clusters: the enumerator state of each cluster, except clusters whose enumerator Flink could
            not start.
        retained: the enumerator state of clusters that the metadata service no longer lists.
    """

    version: int
    streams: Mapping[str, Mapping[str, StreamCluster]]
    clusters: Mapping[str, EnumeratorState]
    retained: Mapping[str, EnumeratorState]


def read_dynamic_split(cursor: Cursor, version: int) -> DynamicSplit:
    """Read one split that extends to the end of ``cursor``.

    The version must be one of DYNAMIC_SPLIT_VERSIONS.

    Raises:
        DecodeError: the bytes are not exactly a DynamicKafkaSourceSplit.
    """
    cluster = _read_cluster_id(cursor)
    retained = version == 2 and cursor.boolean("retained")
    retained_until = cursor.i64("retained until") if retained else None
    split_version = cursor.i32("split version")
    return DynamicSplit(cluster, read_split(cursor, split_version), retained_until)


def read_dynamic_enumerator(cursor: Cursor, version: int) -> DynamicEnumeratorState:
    """Read a DynamicKafkaSourceEnumState that extends to the end of ``cursor``.

    Raises:
        DecodeError: the bytes are not exactly a DynamicKafkaSourceEnumState.
    """
    cursor.check_version(
        version, "DynamicKafkaSource's enumerator", DYNAMIC_ENUMERATOR_WRITTEN_BY, back=0
    )
    streams = _by_name(cursor, "streams", _MIN_STREAM_BYTES, lambda: _read_stream(cursor, version))
    cluster_version = cursor.i32("version of the clusters' enumerators")
    clusters = _by_name(
        cursor,
        "clusters",
        _MIN_CLUSTER_STATE_BYTES,
        lambda: _read_cluster_state(cursor, cluster_version, retained=False),
    )
    retained: dict[str, EnumeratorState] = {}
    if version >= 3:
        retained = _by_name(
            cursor,
            "retained clusters",
            _MIN_RETAINED_CLUSTER_BYTES,
            lambda: _read_cluster_state(cursor, cluster_version, retained=True),
        )
    cursor.finish("enumerator state")
    return DynamicEnumeratorState(version, streams, clusters, retained)


def _by_name(
    cursor: Cursor, label: str, item_bytes: int, read_item: Callable[[], tuple[str, _T]]
) -> dict[str, _T]:
    """Read a serialized Java map (a count and the items); refuse duplicate names."""
    count = cursor.count(label, item_bytes)
    items = dict(read_item() for _ in range(count))
    if len(items) != count:
        cursor.fail(f"a name is listed twice among the {label}", label)
    return items


def _read_stream(cursor: Cursor, version: int) -> tuple[str, Mapping[str, StreamCluster]]:
    return cursor.utf("stream id"), _by_name(
        cursor,
        "clusters of a stream",
        _MIN_CLUSTER_BYTES,
        lambda: (_read_cluster_id(cursor), _read_stream_cluster(cursor, version)),
    )


def _read_cluster_state(
    cursor: Cursor, version: int, *, retained: bool
) -> tuple[str, EnumeratorState]:
    cluster = _read_cluster_id(cursor)
    if retained:
        cursor.i64("retained until")
    start = cursor.byte_offset
    frame = cursor.frame(cursor.i32("enumerator length"), "enumerator state")
    state = read_enumerator(frame, version)
    cursor.record(start, state)
    return cluster, state


def _read_stream_cluster(cursor: Cursor, version: int) -> StreamCluster:
    count = cursor.count("topics", _MIN_TOPIC_BYTES)
    topics = frozenset(read_topic(cursor) for _ in range(count))
    if len(topics) != count:
        cursor.fail("a topic is listed twice", "topics")
    bootstrap_servers = cursor.utf("bootstrap servers")
    if version >= 2:
        for initializer in ("starting offsets initializer", "stopping offsets initializer"):
            if cursor.boolean(initializer):
                cursor.skip_blob(initializer)
    return StreamCluster(topics, bootstrap_servers)


def _read_cluster_id(cursor: Cursor) -> str:
    cluster = cursor.utf("cluster id")
    if not cluster:
        cursor.fail("a cluster's id cannot be empty", "cluster id", back=2)
    return cluster
