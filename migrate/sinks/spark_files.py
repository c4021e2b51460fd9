"""Spark's file sink: it skips every batch up to the last in ``_spark_metadata``, of any query.

A file ``<batch>`` for each batch; some are compacted into ``<batch>.compact``.

Source: org.apache.spark.sql.execution.streaming.{FileStreamSink, CompactibleFileStreamLog} @ Spark
4.0.0.
"""

from __future__ import annotations

import re

from migrate.sinks.directory import Directory
from migrate.sinks.remembered import Found, Remembered, WriterKind

LOG = "_spark_metadata"

_BATCH = re.compile(r"(\d{1,19})(?:\.compact)?")


def look(directory: Directory) -> Found:
    batches = [int(m[1]) for name in directory.names(LOG) if (m := _BATCH.fullmatch(name))]
    remembered = (Remembered(WriterKind.FILES, "", max(batches)),) if batches else ()
    return Found("a file sink's directory", remembered)
