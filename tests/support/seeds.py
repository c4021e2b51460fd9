"""Seeds for queries whose one stream is Kafka's, from positions that need no checkpoint."""

from __future__ import annotations

from pathlib import Path

from migrate.spark.locations import location
from migrate.spark.offsets_json import NextOffsets
from migrate.spark.seed import write_checkpoint
from migrate.spark.source_options import SparkSource


def write_seed(next_offsets: NextOffsets, directory: Path) -> None:
    """Write the checkpoint location of a query whose stream 0 is to start there."""
    write_checkpoint([SparkSource(0, next_offsets)], location(str(directory)))
