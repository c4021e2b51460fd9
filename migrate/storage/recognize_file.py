"""Recognize files that were mistaken for a checkpoint's ``_metadata``, and give advice."""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from decoder.metadata.layout import MAGIC
from decoder.storage import METADATA_FILE, ByteSource, checkpoint_number, join
from migrate.model.option_names import option

# The number of bytes of a file that ``recognize`` needs. A pointer file of Flink's
# high-availability services contains up to a few KB for each operator, and the path of its
# checkpoint is near the end.
HEAD_BYTES = 4 * 1024 * 1024

_ARCHIVES = {
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "compressed with gzip",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
}
_TAR, _TAR_AT = b"ustar", 257
# The start of a plan, a rollback file, or a cut-over record (``json_models.OWN_KIND``).
_OWN_JSON = re.compile(rb'\s*\{\s*"kind":\s*"flink-offset-migrate ([a-z -]+)"')
_GIT_LFS = b"version https://git-lfs"
_JAVA_STREAM = b"\xac\xed\x00\x05"
# The start of a Java object stream in Base64.
_JAVA_STREAM_BASE64 = b"rO0AB"
_TC_STRING = b"t"
# The classes of a completed checkpoint and of a handle that refers to it. Flink's high-availability
# services store objects of these classes (DefaultCompletedCheckpointStore,
# RetrievableStateStorageHelper @ Flink 2.2.0).
_COMPLETED_CHECKPOINT = b"org.apache.flink.runtime.checkpoint.CompletedCheckpoint"
_HANDLE = b"org.apache.flink.runtime.state.RetrievableStreamStateHandle"
_HA_FILE = re.compile(r"completedCheckpoint[0-9a-f]+")
_CHECKPOINT = re.compile(r"chk-\d+|savepoint-[0-9a-f]{6}-[0-9a-f]{12}")
# The first bytes of Flink's ``_metadata``. Parquet also writes files with this name.
_MAGIC = MAGIC.to_bytes(4, "big")
# The entries that ``is_of_flink`` needs. A job's checkpoint directory contains ``taskowned``.
NAMES_OF_FLINK = (METADATA_FILE, "taskowned")
# The number of parent directories to search for entries of Flink or Spark; for example,
# JOB/chk-1/DIR and JOB/shared/DIR are in the directory of a job, and QUERY/state/0/DIR is in a
# checkpoint location.
PARENT_LEVELS = 3
# Spark's names for the entries in a checkpoint location.
LOCATION_NAMES = frozenset({"commits", "metadata", "offsets", "sources", "state"})


def looks_like_location(names: Iterable[str]) -> bool:
    """Return whether a directory with entries of these names is probably a checkpoint location."""
    return len(LOCATION_NAMES.intersection(names)) > 1


def is_of_flink(path: str, files: ByteSource, names: Collection[str]) -> bool:
    """Return whether a directory is a checkpoint, a savepoint, or a job's checkpoint directory.

    Args:
        path: the directory.
        files: the source of its files.
        names: the names of its entries, at least those in ``NAMES_OF_FLINK``.
    """
    head = b""
    if METADATA_FILE in names:
        with suppress(OSError):
            head = files.read_range(join(path, METADATA_FILE), 0, len(_MAGIC))
    return head == _MAGIC or "taskowned" in names


def location_advice(location: str) -> str:
    """Return the commands that accept a Spark query's checkpoint location."""
    return (
        f"to show the query, run `migrate show spark:{location}`; to move or compare its "
        f"positions, pass spark:{location}"
    )


def directory_advice(path: Path) -> str:
    """Return what to pass for a directory that was passed as a file.

    Return an empty string for a file, and for a directory that is neither a Spark query's
    checkpoint location, a Flink checkpoint, nor a job's checkpoint directory.
    """
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError:
        return ""
    if looks_like_location(names):
        return f"it is a Spark query's checkpoint location; pass spark:{path}"
    if METADATA_FILE in names or any(checkpoint_number(name) is not None for name in names):
        return f"it contains a Flink checkpoint; pass {path} as the checkpoint"
    return ""


def recognize(head: bytes, path: str) -> str:
    """Return the kind of a file and advice, or an empty string if the kind is unknown.

    Args:
        head: the first ``HEAD_BYTES`` of the file.
        path: the path of the file, for commands in the text.
    """
    for magic, kind in _ARCHIVES.items():
        if head.startswith(magic):
            return f"the file is {kind}; unpack it"
    if head[_TAR_AT:].startswith(_TAR):
        return "the file is a tar archive; unpack it"
    if head.startswith(_GIT_LFS):
        return "the file is a Git LFS pointer without the data; run `git lfs pull`"
    if head.startswith(_JAVA_STREAM):
        return _recognize_java(head)
    if head.startswith(_JAVA_STREAM_BASE64):
        try:
            return _recognize_java(base64.b64decode(head.strip(), validate=True))
        except binascii.Error:
            return ""
    if location := _location_of(path, head):
        return (
            f"the file belongs to a Spark query's checkpoint location; {location_advice(location)}"
        )
    if own := _OWN_JSON.match(head):
        return _advice_for_own_file(own[1].decode(), path)
    if head.lstrip().startswith(b"{"):
        return (
            "the file is JSON; if it contains Spark's offsets, `migrate to-spark` and `migrate "
            f"diff` accept it as json:{path}"
        )
    return ""


def _advice_for_own_file(kind: str, path: str) -> str:
    """Return what a file of ``migrate`` is, and the commands that accept it."""
    show = f"to show it, run `migrate show {path}`"
    match kind:
        case "plan":
            apply = f"to apply it, pass {option('plan', path)} (to verify, plan:{path})"
            return f"the file is a saved plan; {show}; {apply}"
        case "rollback":
            return (
                f"the file is a rollback file; {show}; to roll back, run `migrate rollback {path}`"
            )
        case "cut-over":
            return (
                "the file is the record of a cut-over; to read it, open record.html in the same "
                "directory"
            )
    return ""


def _recognize_java(stream: bytes) -> str:
    """Return advice about a Flink high-availability pointer, or "" for any other Java object."""
    texts = list(_strings(stream))
    if _COMPLETED_CHECKPOINT in stream:
        for text in texts:
            directory = text.removesuffix(f"/{METADATA_FILE}")
            if text != directory or _CHECKPOINT.fullmatch(posixpath.basename(text)):
                return (
                    "the file is a pointer from the high-availability storage of Flink; pass its "
                    f"checkpoint, {directory}"
                )
    if _HANDLE in stream:
        for text in texts:
            if _HA_FILE.fullmatch(posixpath.basename(text)):
                return (
                    "the file is an entry of Flink's high availability (ZooKeeper or a ConfigMap); "
                    f"pass the file {text}, which contains the path of the checkpoint"
                )
    return ""


def _strings(stream: bytes) -> Iterator[str]:
    """Yield the strings of a Java object stream (a tag, u2 length, modified UTF-8).

    The stream is not parsed, so that strings can be found after objects of any class. Bytes that
    only look like a string are also yielded.
    """
    at = stream.find(_TC_STRING)
    while at >= 0:
        size = int.from_bytes(stream[at + 1 : at + 3], "big")
        content = stream[at + 3 : at + 3 + size]
        if size and len(content) == size:
            text = content.decode("utf-8", "replace")
            if text.isprintable() and "\ufffd" not in text:
                yield text
        at = stream.find(_TC_STRING, at + 1)


def _location_of(path: str, head: bytes) -> str:
    """Return the checkpoint location that contains a Spark query's file, or an empty string."""
    parent, name = posixpath.split(path)
    if name == "metadata" and _is_query_id(head):
        return parent or "."
    above, folder = posixpath.split(parent)
    if folder in ("commits", "offsets") and name.isdigit() and head.startswith(b"v"):
        return above or "."
    if posixpath.basename(above) == "sources" and name.isdigit():
        return posixpath.dirname(above) or "."
    return ""


def _is_query_id(content: bytes) -> bool:
    """Return whether this is the ``metadata`` of a checkpoint location: ``{"id": "…"}``."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.keys() == {"id"}
