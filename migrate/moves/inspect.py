"""``inspect``: read the contents of a checkpoint."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from migrate.inputs.flink.extract import Extraction, read

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.moves.declare_options import ReadArguments
    from migrate.storage.uris import AnyPath


def inspect(chk: AnyPath, **arguments: Unpack[ReadArguments]) -> Extraction:
    """Read a checkpoint: positions per source, state per operator, and findings.

    Args:
        chk: a ``chk-<n>`` or savepoint directory, its ``_metadata``, or a job's checkpoint
            directory (for its newest complete ``chk-<n>``); each as a local path or a URL.
        arguments: see ``ReadArguments``.

    Raises:
        DecodeError: ``chk`` cannot be read, or it is not a checkpoint. Damaged bytes raise only
            this error.
        UsageError: the extra for the URL's scheme is not installed (``MissingExtra``).
    """
    return read(os.fspath(chk), **arguments)
