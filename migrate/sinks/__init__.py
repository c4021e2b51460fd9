"""Sinks that remember their writers: batch numbers of Spark, checkpoint ids of Flink.

Such a sink silently skips a number that it has seen. How it identifies a writer depends on the
format; each format has a module here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from migrate.sinks import delta, hudi, iceberg, paimon, spark_files
from migrate.sinks.directory import Directory, UnreadableSink
from migrate.sinks.remembered import (
    DEFAULT_IDENTIFIER,
    FormatMemory,
    Remembered,
    SinkMemory,
    WriterKind,
)
from migrate.storage.files import Files

__all__ = [
    "DEFAULT_IDENTIFIER",
    "Remembered",
    "SinkMemory",
    "UnreadableSink",
    "WriterKind",
    "sink_memory",
]

# By the name in a sink's directory that identifies the format.
_FORMATS: Mapping[str, Callable[[Directory], FormatMemory | None]] = {
    spark_files.LOG: spark_files.read_log,
    delta.LOG: delta.read_log,
    hudi.LOG: hudi.read_log,
    iceberg.LOG: iceberg.read_log,
    paimon.LOG: paimon.read_log,
}


def sink_memory(path: str, files: Files) -> SinkMemory:
    """Read what the sink in a directory remembers; it may be a table of several formats.

    Args:
        path: a local directory, or a URL.
        files: reads the path.

    Raises:
        UnreadableSink: this is no directory, or one of its logs is damaged.
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
        formats=tuple(memory.format for memory in memories),
        remembered=tuple(number for memory in memories for number in memory.remembered),
        unread=tuple(reason for memory in memories for reason in memory.unread),
        empty=not names,
    )
