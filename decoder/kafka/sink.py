"""The state of the writers and committers of a KafkaSink and a FileSink.

Each of these states is a list of ``byte[]``. An element is ``i32 version, i32 n``, n bytes of the
content described here. A *versioned list* is ``i32 version, i32 n``, n x {``i32 len``, item}.

``writer_raw_states`` of a KafkaSink: KafkaWriterState. Version 1: ``UTF transactionalIdPrefix``.
Version 2: the same, then ``i32 ownedSubtask, i32 ownedSubtasks, i32 ownership`` (0 or 1), ``i32 n``
x {``UTF transactionalId, i64 checkpointId``} for the open transactions.

``streaming_committer_raw_states``: ``i32 magic 0xB91F252C``, then, in version 1 (Flink 1.14), a
versioned list of committables or, in version 2, a versioned list of checkpoints.

- A checkpoint: ``i64 checkpointId``; ``i32 subtasks`` if the list of checkpoints has version 1; a
  versioned list of subtasks.
- A subtask: ``i32 subtask`` if the list of subtasks has version 1 or 2; a versioned list (version
  0) of requests; ``i32 committables``; ``i32 drained`` if the list of subtasks has version 0 or 1;
  ``i32 failed``.
- A request: ``i32 committableVersion, i32 n``, n bytes of a committable, ``i32 retries, i32 state``
  (2 failed, 3 committed; both are final).

KafkaCommittable version 1: ``i16 epoch, i64 producerId, UTF transactionalId``.

FileSinkCommittable: ``i32 magic 0x1E765C80``; in version 2 (since Flink 1.15) ``UTF bucketId``;
``boolean hasPendingFile`` and, if true, ``i32 version, i32 n``, n bytes; the same for an
in-progress file that the commit deletes; in version 2, ``boolean`` and, if true, the ``UTF path``
of a compacted file that the commit deletes.

``writer_raw_states`` of a FileSink: FileWriterBucketState version 3, one for each bucket of a
writer: ``i32 magic 0x1E764B79``, the bucket's ID as ``i32 version, i32 n``, n bytes, ``UTF path,
i64 created, boolean inProgress``. If ``inProgress`` is true, ``i32 version, i32 n`` and n bytes
follow: the state of the unfinished file.

Source: StatefulSinkWriterStateHandler, CommittableCollectorSerializer, CommitRequestState,
FileWriterBucketStateSerializer @ Flink 1.15.4, 1.20.3, 2.2.0; FileSinkCommittableSerializer @ Flink
1.14.6, 1.15.4, 2.2.0; KafkaCommittableSerializer, KafkaWriterStateSerializer @ connector 1.15.4 to
5.0.0-2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from decoder.cursor import Cursor

WRITER_STATE = "writer_raw_states"
COMMITTER_STATE = "streaming_committer_raw_states"

_COMMITTER_MAGIC = 0xB91F252C - (1 << 32)
_FILE_MAGIC = bytes.fromhex("1e765c80")
_BUCKET_MAGIC = 0x1E764B79
_BUCKET_VERSION = 3
_REQUEST_STATE_COUNT = 4
_FIRST_DONE_STATE = 2
_OWNERSHIP_COUNT = 2

_Item = TypeVar("_Item")


class PendingTransaction(NamedTuple):
    """KafkaCommittable: a flushed transaction that Flink commits after the checkpoint completes."""

    transactional_id: str
    producer_id: int
    epoch: int

    @property
    def prefix(self) -> str:
        """The ``prefix`` of a ``prefix-subtask-number`` ID (TransactionalIdFactory)."""
        return self.transactional_id.rsplit("-", 2)[0]


class PendingFile(NamedTuple):
    """A finished FileSink file, which Flink makes visible after the checkpoint completes."""

    bucket_id: str


class KafkaWriterState(NamedTuple):
    """A KafkaSink writer's transactional ID prefix and, in version 2, its open transactions."""

    prefix: str
    open_transactions: tuple[str, ...]


class SinkState(NamedTuple):
    """The state of one operator of a KafkaSink: the writers' state, or a committer's transactions.

    If both fields are empty, the operator might be the committer of a different kind of sink,
    because without pending items, the committers of all kinds of sinks have the same state.
    """

    writers: tuple[KafkaWriterState, ...]
    pending: tuple[PendingTransaction, ...]


class FileBucket(NamedTuple):
    """A FileSink writer's bucket; ``in_progress`` is True if the bucket has an unfinished file."""

    path: str
    in_progress: bool


class FileSinkState(NamedTuple):
    """The state of one operator of a FileSink: the writers' buckets, or a committer's files."""

    buckets: tuple[FileBucket, ...]
    pending: tuple[PendingFile, ...] = ()


class UnknownSink(NamedTuple):
    """A sink of a different kind, or a sink whose state cannot be read; see ``reason``."""

    reason: str


def read_writer_state(element: bytes, label: str) -> KafkaWriterState | FileBucket:
    """Read one element of ``writer_raw_states``.

    The element's version distinguishes a KafkaSink from a FileSink.

    Raises:
        DecodeError: the bytes are not exactly the state of a KafkaSink or FileSink writer.
    """
    version, cursor = _open_element(element, label, (1, 2, _BUCKET_VERSION), "writer state")
    state = (
        _read_bucket(cursor) if version == _BUCKET_VERSION else _read_kafka_writer(cursor, version)
    )
    cursor.finish("writer state")
    return state


def _read_kafka_writer(cursor: Cursor, version: int) -> KafkaWriterState:
    prefix = cursor.utf("transactional id prefix")
    open_transactions: list[str] = []
    if version == 2:
        cursor.skip(8, "owned subtasks")
        ownership = cursor.i32("ownership of transactions")
        if not 0 <= ownership < _OWNERSHIP_COUNT:
            cursor.fail(f"unknown ownership: {ownership}", "ownership of transactions", back=4)
        count = cursor.count("open transactions", 2 + 8)
        for _ in range(count):
            open_transactions.append(cursor.utf("transactional id"))
            cursor.i64("checkpoint id")
    return KafkaWriterState(prefix, tuple(open_transactions))


def _read_bucket(cursor: Cursor) -> FileBucket:
    if cursor.i32("magic number") != _BUCKET_MAGIC:
        cursor.fail("bucket state without its magic number", "magic number", back=4)
    cursor.i32("version of the bucket id")
    cursor.skip_blob("bucket id")
    path = cursor.utf("bucket path")
    cursor.i64("creation time")
    in_progress = cursor.boolean("in progress")
    if in_progress:
        cursor.i32("version of the file's state")
        cursor.skip_blob("file's state")
    return FileBucket(path, in_progress)


_Pending = PendingTransaction | PendingFile


def read_committer_state(element: bytes, label: str) -> tuple[_Pending, ...]:
    """Read the pending transactions or files in one element of ``streaming_committer_raw_states``.

    Raises:
        DecodeError: the bytes are not exactly the state of a KafkaSink or FileSink committer.
    """
    version, cursor = _open_element(element, label, (1, 2), "committer state")
    if cursor.i32("magic number") != _COMMITTER_MAGIC:
        cursor.fail("committer state without its magic number", "magic number", back=4)
    if version == 1:
        pending = _concatenate(_versioned_list(cursor, "committables", (1,), _read_committable))
    else:
        pending = _concatenate(_versioned_list(cursor, "checkpoints", (0, 1), _read_checkpoint))
    cursor.finish("committer state")
    return pending


def _read_checkpoint(cursor: Cursor, version: int) -> tuple[_Pending, ...]:
    cursor.i64("checkpoint id")
    if version >= 1:
        cursor.i32("number of subtasks")
    return _concatenate(_versioned_list(cursor, "subtasks", (0, 1, 2), _read_subtask))


def _read_subtask(cursor: Cursor, version: int) -> tuple[_Pending, ...]:
    if version >= 1:
        cursor.i32("subtask")
    pending = _concatenate(_versioned_list(cursor, "requests", (0,), _read_request))
    cursor.i32("number of committables")
    if version <= 1:
        cursor.i32("number of drained")
    cursor.i32("number of failed")
    return pending


def _read_request(cursor: Cursor, _version: int) -> tuple[_Pending, ...]:
    version = cursor.version("committable", (1, 2))
    frame = cursor.frame(cursor.i32("committable length"), "committable")
    pending = _read_committable(frame, version)
    frame.finish("committable")
    cursor.i32("number of retries")
    state = cursor.i32("state of a request")
    if not 0 <= state < _REQUEST_STATE_COUNT:
        cursor.fail(f"unknown state of a request: {state}", "state of a request", back=4)
    return pending if state < _FIRST_DONE_STATE else ()


def _read_committable(cursor: Cursor, version: int) -> tuple[_Pending, ...]:
    """Read a committable; return an empty tuple if the committable only deletes files."""
    if cursor.skip_if(_FILE_MAGIC):
        return _read_file_committable(cursor, version)
    if version != 1:  # the error's offset points to the version, 8 bytes back
        cursor.check_version(version, "committable", (1,), back=8)
    epoch = cursor.i16("producer epoch")
    producer_id = cursor.i64("producer id")
    if epoch < 0 or producer_id < 0:
        cursor.fail(f"not a producer: {producer_id}, epoch {epoch}", "producer id", back=10)
    transactional_id = cursor.utf("transactional id")
    if not transactional_id:
        cursor.fail("a transactional id cannot be empty", "transactional id", back=2)
    return (PendingTransaction(transactional_id, producer_id, epoch),)


def _read_file_committable(cursor: Cursor, version: int) -> tuple[_Pending, ...]:
    bucket_id = cursor.utf("bucket id") if version > 1 else ""
    has_file = False
    for kind in ("pending file", "file in progress"):
        if cursor.boolean(f"has a {kind}"):
            has_file = has_file or kind == "pending file"
            cursor.i32(f"version of the {kind}")
            cursor.skip_blob(kind)
    if version > 1 and cursor.boolean("has a compacted file"):
        cursor.skip_utf("compacted file")
    return (PendingFile(bucket_id),) if has_file else ()


def _open_element(
    element: bytes, label: str, known: tuple[int, ...], state: str
) -> tuple[int, Cursor]:
    cursor = Cursor(element, label)
    version = cursor.version(state, known)
    body = cursor.frame(cursor.i32("length"), "state")
    cursor.finish("element")
    return version, body


def _versioned_list(
    cursor: Cursor,
    label: str,
    versions: tuple[int, ...],
    read_item: Callable[[Cursor, int], _Item],
) -> list[_Item]:
    """Read ``i32 version, i32 n``, n x {``i32 len``, item}; refuse a wrong ``len``."""
    version = cursor.version(label, versions)
    items = []
    for _ in range(cursor.count(label, 4)):
        frame = cursor.frame(cursor.i32(f"length of one of the {label}"), label)
        items.append(read_item(frame, version))
        frame.finish(label)
    return items


def _concatenate(parts: Iterable[tuple[_Pending, ...]]) -> tuple[_Pending, ...]:
    return tuple(pending for part in parts for pending in part)
