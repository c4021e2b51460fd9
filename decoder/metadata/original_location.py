"""The directory in which Flink wrote a checkpoint; in another one its time may be that of a copy.

``_metadata`` holds no time. But a task's state names the checkpoint's directory, even if it is
inline: FsCheckpointStreamFactory.closeAndGetHandle @ Flink 1.15.4 to 2.2.0 names it after the file
that it would have become.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from decoder.metadata.model import FileState, InlineState, Operator

_OWN_DIRECTORY = re.compile(r"(?:chk-\d+|savepoint-[^/]+)")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(?=/)")


def original_directory(operators: Iterable[Operator]) -> str | None:
    """Return the directory in which Flink wrote the checkpoint, or None if it is unknown.

    It is unknown if all state is in files that are named relative to it, or shared.
    """
    for operator in operators:
        for subtask in operator.subtasks:
            for handle in (subtask.managed_operator_state, subtask.raw_operator_state):
                match handle.stream if handle is not None else None:
                    case InlineState(name=file) | FileState(uri=file):
                        directory = posixpath.dirname(file)
                        if _OWN_DIRECTORY.fullmatch(posixpath.basename(directory)):
                            return directory
    return None


def is_other_directory(directory: str, written: str) -> bool:
    """Return whether a directory is another one than Flink named.

    A store has several schemes (``s3``, ``s3a``), and HDFS is named with and without its host.
    """
    here, there = _split(directory), _split(written)
    if here[1] != there[1]:
        return True
    return bool(here[0] and there[0]) and here[0] != there[0]


def _split(url: str) -> tuple[str, str]:
    """Split a URL into its host or bucket, if any, and its path."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        return "", url.rstrip("/")
    host = (scheme[2] or "").rpartition("@")[2]
    return host, url[scheme.end() :].rstrip("/")
