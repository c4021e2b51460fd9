"""Sinks that store the last number of each writer.

The number is a Spark batch number or a Flink checkpoint ID.

Such a sink silently skips a write whose number is not higher than the stored number. Each table
format identifies writers differently, so each format has a module in this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from migrate.sinks import delta, hudi, iceberg, paimon, spark_files
from migrate.sinks.directory import Directory, UnreadableSink
from migrate.sinks.remembered import DEFAULT_IDENTIFIER, Remembered, SinkMemory, WriterKind
from migrate.storage.files import Files

__all__ = [
    "DEFAULT_IDENTIFIER",
    "Remembered",
    "SinkMemory",
    "UnreadableSink",
    "WriterKind",
    "sink_memory",
]

# The reader of each format, by the directory that identifies the format.
_FORMATS: Mapping[str, Callable[[Directory], SinkMemory | None]] = {
    spark_files.LOG: spark_files.read_log,
    delta.LOG: delta.read_log,
    hudi.LOG: hudi.read_log,
    iceberg.LOG: iceberg.read_log,
    paimon.LOG: paimon.read_log,
}


def sink_memory(path: str, files: Files) -> SinkMemory:
    """Read the numbers that the sink in a directory stores, for each of its table formats.

    ``path`` is a local directory, or a URL.

    Raises:
        UnreadableSink: the path is not a directory, or a log in it is damaged.
        OSError: the directory cannot be read.
    """
    directory = Directory(path, files)
    names = directory.names()
    memories = [
        memory
        for name, read_log in _FORMATS.items()
        if name in names and (memory := read_log(directory)) is not None
    ]
    return SinkMemory(
        formats=tuple(name for memory in memories for name in memory.formats),
        remembered=tuple(number for memory in memories for number in memory.remembered),
        unread=tuple(reason for memory in memories for reason in memory.unread),
        empty=not names,
    )
