"""Seeds for queries whose one stream is Kafka's, from positions that need no checkpoint."""

from __future__ import annotations

from pathlib import Path

from migrate.inputs.offsets_json import NextOffsets
from migrate.targets.location import location
from migrate.targets.seed import write_checkpoint
from migrate.targets.source_options import SparkSource


def write_seed(next_offsets: NextOffsets, directory: Path) -> None:
    """Write the checkpoint location of a query whose stream 0 is to start there."""
    write_checkpoint([SparkSource(0, next_offsets)], location(str(directory)))
