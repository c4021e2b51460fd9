"""Map each option of a move to its key in the spec, and log repeated messages only once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from migrate.extensions.cutover.spec import MoveSpec
from migrate.model.log import log

SPEC_KEYS = {
    "bootstrap_servers": "kafka.bootstrap-servers",
    "kafka_config": "kafka.config",
    "kafka_properties": "kafka.properties",
    "to_kafka_config": "kafka.to-config",
    "flink_rest": "flink.rest",
    "sink": "sink",
    "sink_writer": "sink-writer",
    "spark_source": "spark-source",
    "state": "states",
    "checkpoint_dir": "target.checkpoint-dir",
    "group": "target.group",
    "record": "record",
    **{name: f"move.{field.alias}" for name, field in MoveSpec.model_fields.items()},
}

# The options of a move that the user cannot set in the spec, because a cut-over always writes its
# rollback files to the record's folder.
CHOSEN = ("rollback_file",)


@contextmanager
def each_message_once() -> Iterator[None]:
    """Log each message only once; several steps make the same plan with the same warnings.

    Debug messages are always logged.
    """
    logged: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.levelno < logging.INFO or text not in logged:
            logged.add(text)
            return True
        return False

    log.addFilter(is_new)
    try:
        yield
    finally:
        log.removeFilter(is_new)
