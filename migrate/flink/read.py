"""Read what a user names as a checkpoint."""

from __future__ import annotations

from decoder import DecodeError, read_checkpoint
from decoder.urls import shown_url
from migrate.flink.choose_source import Reading
from migrate.flink.extract import Extraction, extract
from migrate.log import timed
from migrate.storage.files import Files
from migrate.storage.no_checkpoint import explain

_STRICT = Reading()


def read(pointer: str, how: Reading = _STRICT) -> Extraction:
    """Positions, state and findings of a checkpoint.

    Args:
        pointer: as for ``read_checkpoint``.
        how: a ``Choice`` is one, too.

    Raises:
        DecodeError: as ``read_checkpoint`` does; it says what to name instead, where that shows.
    """
    files = Files()
    try:
        with timed(f"reading {shown_url(pointer)}"):
            checkpoint = read_checkpoint(
                pointer, files, allow_external_files=how.allow_external_files
            )
    except DecodeError as error:
        explain(pointer, error, files)
        raise
    return extract(checkpoint)
