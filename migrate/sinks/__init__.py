"""What a sink remembers of those who wrote to it: batch numbers of Spark, checkpoint ids of Flink.

A sink that remembers skips what comes under a number that it has seen, and says nothing. Which
writer a number belongs to is the format's own affair, and each format has a module here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from migrate.sinks import delta, hudi, iceberg, paimon, spark_files
from migrate.sinks.directory import Directory, UnreadableSink
from migrate.sinks.remembered import DEFAULT_IDENTIFIER, Found, Remembered, SinkMemory, WriterKind
from migrate.storage.files import Files

__all__ = [
    "DEFAULT_IDENTIFIER",
    "Remembered",
    "SinkMemory",
    "UnreadableSink",
    "WriterKind",
    "sink_memory",
]

# By the name in the sink's directory that shows the format.
_FORMATS: Mapping[str, Callable[[Directory], Found | None]] = {
    spark_files.LOG: spark_files.look,
    delta.LOG: delta.look,
    hudi.LOG: hudi.look,
    iceberg.LOG: iceberg.look,
    paimon.LOG: paimon.look,
}


def sink_memory(path: str, files: Files) -> SinkMemory:
    """What the sink in a directory remembers; a directory may be a table of several formats.

    Args:
        path: a local directory, or a URL that ``files`` reads.

    Raises:
        UnreadableSink: it is no directory, or a log in it is not as its writers write it.
        OSError: it cannot be looked at.
    """
    directory = Directory(path, files)
    names = directory.names()
    found = [
        one
        for name, look in _FORMATS.items()
        if name in names and (one := look(directory)) is not None
    ]
    return SinkMemory(
        formats=tuple(one.format for one in found),
        remembered=tuple(each for one in found for each in one.remembered),
        unread=tuple(why for one in found for why in one.unread),
        empty=not names,
    )
