"""Seeds for queries with one Kafka stream."""

from __future__ import annotations

from pathlib import Path

from migrate.inputs.offsets_json import NextOffsets
from migrate.targets.location import location
from migrate.targets.seed import write_seed as write_seed_of_sources
from migrate.targets.source_options import SourceStart


def write_seed(next_offsets: NextOffsets, directory: Path) -> None:
    """Write the checkpoint location of a query whose stream 0 starts at these offsets."""
    write_seed_of_sources([SourceStart(0, next_offsets)], location(str(directory)))
