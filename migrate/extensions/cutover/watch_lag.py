"""Watch the lag of a target that has not read any records yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.downtime import with_lag
from migrate.extensions.cutover.record import now
from migrate.extensions.cutover.report import LagReport
from migrate.model.errors import ServiceError
from migrate.model.positions import TopicPartition
from migrate.moves.options import kafka

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig

_PAUSE_SECONDS = 1.0


@contextmanager
def watched_lag(
    context: CutOverContext, next_offsets: Mapping[TopicPartition, int]
) -> Iterator[None]:
    """Measure the lag of these offsets every second during the ``with`` block, and record it.

    The log end offsets are read by a separate thread with its own client, because group members
    must be observed without delay. If the broker does not answer, there are fewer samples.
    """
    if not next_offsets:
        yield
        return
    samples, ended = list[LagReport](), threading.Event()
    config = kafka(context.file.target_kafka_arguments()).config()
    watcher = threading.Thread(
        target=_watch, args=(config, next_offsets, samples, ended), daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        # Do not wait for a broker that does not answer.
        watcher.join(_PAUSE_SECONDS)
        context.record.change(lags=with_lag(context.record.model, *samples))


def _watch(
    config: KafkaConfig,
    next_offsets: Mapping[TopicPartition, int],
    samples: list[LagReport],
    ended: threading.Event,
) -> None:
    from migrate.kafka.client import Connection
    from migrate.kafka.snapshot import log_ends

    connection: Connection | None = None
    while True:
        with suppress(ServiceError):
            connection = connection or Connection(config)
            ends = log_ends(connection, next_offsets)
            lag = sum(max(ends[key] - start, 0) for key, start in next_offsets.items())
            samples.append(LagReport(at=now(), lag=lag))
        if ended.wait(_PAUSE_SECONDS):
            return
