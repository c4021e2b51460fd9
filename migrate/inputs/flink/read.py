"""Reading of checkpoints by the path that the user gives."""

from __future__ import annotations

from decoder import DecodeError, read_checkpoint
from decoder.urls import redact_url
from migrate.inputs.flink.extract import Extraction, extract
from migrate.model.log import timed
from migrate.storage.files import Files
from migrate.storage.suggest_path import raise_with_suggestion


def read(pointer: str, *, allow_external_files: bool = False) -> Extraction:
    """Read a checkpoint, and extract its sources and findings.

    Args:
        pointer: the path or URI of the checkpoint, as for ``read_checkpoint``.
        allow_external_files: as for ``read_checkpoint``.

    Raises:
        DecodeError: as for ``read_checkpoint``; the message may suggest another path.
    """
    files = Files()
    try:
        with timed(f"reading {redact_url(pointer)}"):
            checkpoint = read_checkpoint(pointer, files, allow_external_files=allow_external_files)
    except DecodeError as error:
        raise_with_suggestion(pointer, error, files)
        raise
    return extract(checkpoint)
