"""Sinks that store the last number of each writer.

A writer's number is, for example, a Spark batch number or a Flink checkpoint ID.

Such a sink silently skips a write unless the write's number is higher than the stored number. Each
table format identifies writers differently, so each format has a module in this package.
"""

from __future__ import annotations

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


def sink_memory(path: str, files: Files) -> SinkMemory:
    """Read the last number of each writer, in every table format that the sink has.

    ``path`` is a local directory, or a URL.

    Raises:
        UnreadableSink: the path is not a directory, or a log in it is damaged.
        OSError: the directory cannot be read.
    """
    # Imported here, because most moves pass no sink.
    from migrate.sinks import delta, hudi, iceberg, paimon, spark_files

    directory = Directory(path, files)
    names = directory.names()
    # A sink has a format if it contains the format's ``LOG`` directory.
    memories = [
        memory
        for format in (spark_files, delta, hudi, iceberg, paimon)
        if format.LOG in names and (memory := format.read_log(directory)) is not None
    ]
    return SinkMemory(
        formats=tuple(name for memory in memories for name in memory.formats),
        remembered=tuple(number for memory in memories for number in memory.remembered),
        unread=tuple(reason for memory in memories for reason in memory.unread),
        empty=not names,
    )
