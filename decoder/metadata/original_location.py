"""The directory in which Flink wrote a checkpoint, for recognizing copied checkpoints.

If the checkpoint is now in a different directory, its time may be the time of a copy. The handle of
a subtask's state contains the original directory, even if the state is inline. For inline state,
FsCheckpointStreamFactory.closeAndGetHandle @ Flink 1.15.4 to 2.2.0 stores the path of the file that
a larger state would use.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from decoder.metadata.model import FileState, InlineState, Operator

_CHECKPOINT_DIRECTORY = re.compile(r"(?:chk-\d+|savepoint-[^/]+)")
# A number of URIs that is enough to detect files in different directories (as with entropy
# injection).
_MOST_FILES = 64
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(?=/)")


def original_directory(operators: Iterable[Operator]) -> str | None:
    """Return the directory in which Flink wrote the checkpoint, or None if unknown.

    Under entropy injection, this is the directory of one of the state files.
    """
    files = original_files(operators, most=1)
    return posixpath.dirname(files[0]) if files else None


def original_files(operators: Iterable[Operator], most: int = _MOST_FILES) -> list[str]:
    """Return the URIs of state files in the directory in which Flink wrote the checkpoint.

    The list is empty if all operator-state files are outside a ``chk-<n>`` or
    ``savepoint-<name>`` directory. At most ``most`` URIs are returned.
    """
    found: list[str] = []
    for operator in operators:
        for handle in operator.operator_state_handles:
            match handle.stream:
                case InlineState(name=file) | FileState(uri=file):
                    directory = posixpath.dirname(file)
                    if _CHECKPOINT_DIRECTORY.fullmatch(posixpath.basename(directory)):
                        found.append(file)
                        if len(found) == most:
                            return found
    return found


def is_other_directory(directory: str, original: str) -> bool:
    """Return whether ``directory`` differs from ``original``, the directory that Flink wrote to.

    Schemes are not compared, because an object store has several (``s3``, ``s3a``). Hosts are
    compared only if both URLs have one (an HDFS URL may omit the host).
    """
    (host, path), (original_host, original_path) = _split(directory), _split(original)
    if path != original_path:
        return True
    return bool(host and original_host) and host != original_host


def _split(url: str) -> tuple[str, str]:
    """Split a URL into its host or bucket, if any, and its path."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        return "", url.rstrip("/")
    host = (scheme[2] or "").rpartition("@")[2]
    return host, url[scheme.end() :].rstrip("/")
