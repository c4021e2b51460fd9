"""Where Flink wrote a checkpoint. It may lie elsewhere: then its time may be that of a copy.

There is no time in ``_metadata``. But what a task wrote names the place that it was for, state that
is small enough to be inline too: FsCheckpointStreamFactory.closeAndGetHandle @ Flink 1.15.4 to
2.2.0 calls it by the file that it would have become, in the checkpoint's own directory.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from decoder.metadata.model import FileState, InlineState, Operator

_OWN_DIRECTORY = re.compile(r"(?:chk-\d+|savepoint-[^/]+)")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(?=/)")


def original_directory(operators: Iterable[Operator]) -> str | None:
    """The directory that Flink wrote the checkpoint in, as it named it; None where none is told.

    None where all of its state lies in files that are named relative to it, or in shared ones.
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
    """Whether a directory is another than the one that Flink named.

    A store is known by several schemes (``s3``, ``s3a``), and HDFS with and without its host.
    """
    here, there = _split(directory), _split(written)
    if here[1] != there[1]:
        return True
    return bool(here[0] and there[0]) and here[0] != there[0]


def _split(url: str) -> tuple[str, str]:
    """The host or bucket, empty where none is named, and the path."""
    found = _SCHEME.match(url)
    if found is None:
        return "", url.rstrip("/")
    host = (found[2] or "").rpartition("@")[2]
    return host, url[found.end() :].rstrip("/")
