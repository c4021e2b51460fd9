"""Spark's file sink skips every batch up to the last batch in ``_spark_metadata``.

This log does not distinguish queries. It contains a ``<batch>`` file for each batch; Spark compacts
older files into ``<batch>.compact``.

Source: org.apache.spark.sql.execution.streaming.{FileStreamSink, CompactibleFileStreamLog} @ Spark
4.0.0.
"""

from __future__ import annotations

import re

from migrate.sinks.directory import Directory
from migrate.sinks.remembered import Remembered, SinkMemory, WriterKind

LOG = "_spark_metadata"
FORMAT = "a file sink's directory"

_BATCH = re.compile(r"(\d{1,19})(?:\.compact)?")


def read_log(directory: Directory) -> SinkMemory:
    batches = [batch for batch, _ in directory.numbered(LOG, _BATCH)]
    remembered = (Remembered(WriterKind.FILES, "", max(batches)),) if batches else ()
    return SinkMemory((FORMAT,), remembered)
