"""Checkpoint locations of Spark queries, with the content that a test needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
# The seed of a Kafka source that starts partition 0 of topic t at offset 3.
SEED = '\0v1\n{"t":{"0":3}}'


def spark_directory(path: Path, files: Mapping[str, str]) -> Path:
    """Write files by their relative paths, and return the directory."""
    for name, content in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, newline="")
    return path


def batch(*lines: str, version: str = "v1") -> str:
    """Return an entry of the offset log with a line for each source."""
    return "\n".join([version, METADATA, *lines])
