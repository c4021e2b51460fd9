"""``inspect``: what a checkpoint holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from decoder.urls import shown_url
from migrate.flink.extract import Extraction
from migrate.flink.read import read
from migrate.log import timed

if TYPE_CHECKING:
    from migrate.commands.arguments import AnyPath


def inspect(chk: AnyPath, *, allow_external_files: bool = False) -> Extraction:
    """Read a checkpoint: positions per source, state per operator, findings.

    Args:
        chk: a ``chk-<n>`` or savepoint directory, its ``_metadata``, or a job's checkpoint
            directory (its newest complete ``chk-<n>``); a local path or a URL.
        allow_external_files: open files that the checkpoint names outside of its own directories.

    Raises:
        DecodeError: it cannot be read, or is none; and nothing else comes of its bytes.
        UsageError: the extra that reads such a URL is not installed (``MissingExtra``).
    """
    pointer = os.fspath(chk)
    with timed(f"read {shown_url(pointer)}"):
        return read(pointer, allow_external_files=allow_external_files)
