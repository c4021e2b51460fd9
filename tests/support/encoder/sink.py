"""Encode the state of the writers and committers of a KafkaSink and of a FileSink.

The layouts follow the connector's `KafkaWriterStateSerializer` and `KafkaCommittableSerializer`
(1.15.4, 3.4.0-1.20, 5.0.0-2.2), and Flink's
`CommittableCollectorSerializer`, `FileWriterBucketStateSerializer`, `FileSinkCommittableSerializer`
(1.15.4, 1.20.3, 2.2.0; the latter also 1.14.6) and `SimpleVersionedSerialization`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.encoder.data_output import DataOutput

WRITER_STATE = "writer_raw_states"
COMMITTER_STATE = "streaming_committer_raw_states"

# Codes of `CommitRequestState`.
RECEIVED, RETRY, FAILED, COMMITTED_REQUEST = range(4)

_MAGIC = 0xB91F252C - (1 << 32)
_FILE_MAGIC = 0x1E765C80


@dataclass(frozen=True, slots=True)
class Committable:
    """A `KafkaCommittable` and the state of the request to commit it."""

    transactional_id: str
    producer_id: int = 4000
    epoch: int = 0
    state: int = RECEIVED


@dataclass(frozen=True, slots=True)
class FileCommittable:
    """A `FileSinkCommittable` and the state of the request to commit it.

    The committer publishes the serialized file `pending`, and deletes the file `in_progress`.
    """

    bucket: str = ""
    pending: bytes | None = None
    in_progress: bytes | None = None
    compacted: str | None = None
    state: int = RECEIVED


def encode_writer_element(prefix: str, version: int, open_transactions: Mapping[str, int]) -> bytes:
    """Encode an element of the writers' state; version 2 stores each transaction's checkpoint."""
    state = DataOutput()
    state.utf(prefix)
    if version == 2:
        state.i32(0)
        state.i32(1)
        state.i32(0)
        state.i32(len(open_transactions))
        for transactional_id, checkpoint in open_transactions.items():
            state.utf(transactional_id)
            state.i64(checkpoint)
    return _versioned(version, state.to_bytes())


def encode_file_writer_element(
    bucket: str, bucket_path: str, in_progress: bytes | None, version: int = 3
) -> bytes:
    """Encode an element of a FileSink's writer state: a bucket, and its in-progress file if any."""
    state = DataOutput()
    state.i32(0x1E764B79)
    identifier = bucket.encode()
    state.i32(1)
    state.i32(4 + len(identifier))
    state.raw(len(identifier).to_bytes(4, "little") + identifier)
    state.utf(bucket_path)
    state.i64(1_700_000_000_000)
    state.boolean(in_progress is not None)
    if in_progress is not None:
        state.i32(1)
        state.i32(len(in_progress))
        state.raw(in_progress)
    return _versioned(version, state.to_bytes())


def encode_committer_element(
    flink: str, checkpoints: Mapping[int, Mapping[int, Sequence[Committable | FileCommittable]]]
) -> bytes:
    """Encode an element of the committers' state, as a version of Flink writes it.

    `checkpoints` are the committables by checkpoint and subtask. Flink 1.14 stores only the
    committables. The FileSink of Flink 1.14 writes them in version 1, and later ones in version 2.
    """
    out = DataOutput()
    out.i32(_MAGIC)
    if flink == "1.14":
        every = [
            c
            for subtasks in checkpoints.values()
            for elements in subtasks.values()
            for c in elements
        ]
        _write_list(out, 1, [_committable(committable, 1) for committable in every])
        return _versioned(1, out.to_bytes())
    checkpoint_version, subtask_version = {"1.15": (0, 0), "1.20": (1, 1), "2.2": (1, 2)}[flink]
    encoded = []
    for checkpoint_id, subtasks in checkpoints.items():
        checkpoint = DataOutput()
        checkpoint.i64(checkpoint_id)
        if checkpoint_version == 1:
            checkpoint.i32(len(subtasks))
        elements = [
            _subtask(subtask, list_, subtask_version) for subtask, list_ in subtasks.items()
        ]
        _write_list(checkpoint, subtask_version, elements)
        encoded.append(checkpoint.to_bytes())
    _write_list(out, checkpoint_version, encoded)
    return _versioned(2, out.to_bytes())


def _subtask(
    index: int, committables: Sequence[Committable | FileCommittable], version: int
) -> bytes:
    out = DataOutput()
    if version >= 1:
        out.i32(index)
    _write_list(out, 0, [_request(committable) for committable in committables])
    out.i32(len(committables))
    if version < 2:
        out.i32(0)
    out.i32(sum(committable.state == FAILED for committable in committables))
    return out.to_bytes()


def _request(committable: Committable | FileCommittable) -> bytes:
    out = DataOutput()
    version = 2 if isinstance(committable, FileCommittable) else 1
    out.raw(_versioned(version, _committable(committable, version)))
    out.i32(0)
    out.i32(committable.state)
    return out.to_bytes()


def _committable(committable: Committable | FileCommittable, version: int) -> bytes:
    out = DataOutput()
    if isinstance(committable, FileCommittable):
        out.i32(_FILE_MAGIC)
        if version == 2:
            out.utf(committable.bucket)
        for file in (committable.pending, committable.in_progress):
            out.boolean(file is not None)
            if file is not None:
                out.raw(_versioned(1, file))
        if version == 2:
            out.boolean(committable.compacted is not None)
            if committable.compacted is not None:
                out.utf(committable.compacted)
        return out.to_bytes()
    out.i16(committable.epoch)
    out.i64(committable.producer_id)
    out.utf(committable.transactional_id)
    return out.to_bytes()


def _versioned(version: int, data: bytes) -> bytes:
    out = DataOutput()
    out.i32(version)
    out.sized(data)
    return out.to_bytes()


def _write_list(out: DataOutput, version: int, items: Sequence[bytes]) -> None:
    out.i32(version)
    out.counted(items, out.sized)
