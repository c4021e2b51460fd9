"""The type of a checkpoint, from the Java object stream at the end of ``_metadata``.

The stream exists in version 4 and later of ``_metadata``.

The object is CheckpointProperties; its ``checkpointType`` is a CheckpointType or a SavepointType.
A SavepointType's ``postCheckpointAction`` specifies whether the job stopped with the savepoint.

Source: org.apache.flink.runtime.checkpoint.{CheckpointProperties, CheckpointType, SavepointType} @
Flink 1.16.3 to 2.2.0. All of these releases write the same names.
"""

from __future__ import annotations

from functools import lru_cache

from decoder.cursor import Cursor
from decoder.errors import DecodeError
from decoder.metadata.java_stream import JavaEnum, JavaObject, read_object_stream
from decoder.metadata.model import CheckpointKind, CheckpointType, StopKind

_PACKAGE = "org.apache.flink.runtime.checkpoint."
# The largest stream that is cached; Flink writes a few hundred bytes.
_MAX_CACHED_BYTES = 4096
_UNKNOWN = CheckpointType(CheckpointKind.UNKNOWN, StopKind.UNKNOWN)

_STOPS = {"NONE": StopKind.NONE, "SUSPEND": StopKind.SUSPEND, "TERMINATE": StopKind.TERMINATE}


def read_checkpoint_type(cursor: Cursor) -> CheckpointType:
    """Read the object stream at the end of the file.

    If the object is not a CheckpointProperties with a CheckpointType or a SavepointType, both parts
    of the result are ``UNKNOWN``.

    Raises:
        DecodeError: the stream is truncated or not a Java object stream.
    """
    known = cursor.attempt(_read_cached)
    return known if known is not None else _read(cursor)


def _read_cached(data: bytes, start: int, end: int) -> tuple[int, CheckpointType] | None:
    """Read the object with a cache, because all checkpoints of one type end with the same bytes."""
    result = _parse_stream(data[start:end]) if end - start <= _MAX_CACHED_BYTES else None
    return (start + result[0], result[1]) if result is not None else None


@lru_cache(32)
def _parse_stream(stream: bytes) -> tuple[int, CheckpointType] | None:
    cursor = Cursor(stream, "")
    try:
        checkpoint_type = _read(cursor)
    except DecodeError:
        return None
    return cursor.byte_offset, checkpoint_type


def _read(cursor: Cursor) -> CheckpointType:
    properties = read_object_stream(cursor)
    if not (
        isinstance(properties, JavaObject)
        and properties.class_name == f"{_PACKAGE}CheckpointProperties"
    ):
        return _UNKNOWN
    snapshot = properties.fields.get("checkpointType")
    if not isinstance(snapshot, JavaObject):
        return _UNKNOWN
    if snapshot.class_name == f"{_PACKAGE}CheckpointType":
        return CheckpointType(CheckpointKind.CHECKPOINT, StopKind.NONE)
    if snapshot.class_name == f"{_PACKAGE}SavepointType":
        action = snapshot.fields.get("postCheckpointAction")
        constant = action.constant if isinstance(action, JavaEnum) else ""
        return CheckpointType(CheckpointKind.SAVEPOINT, _STOPS.get(constant, StopKind.UNKNOWN))
    return _UNKNOWN
