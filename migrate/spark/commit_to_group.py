"""Commit a Spark query's offsets to a consumer group after each batch.

Spark posts an event with the query's progress after each batch. With asynchronous progress
tracking, Spark posts this event before it adds the batch to the commit log. The listener therefore
ignores the event's offsets and reads the commit log, as ``migrate follow`` does.

Source: pyspark.sql.streaming.StreamingQueryListener,
org.apache.spark.sql.execution.streaming.MicroBatchExecution @ Spark 3.5.1, 4.0.0.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from migrate.kafka.config import kafka_config as as_librdkafka
from migrate.model.errors import MigrateError
from migrate.model.warning import warn
from migrate.model.warning_catalog import GROUP_NOT_COMMITTED
from migrate.targets.group.follower import Followed, GroupFollower


class CommitToGroup(StreamingQueryListener):
    """A listener that commits a query's offsets to a consumer group.

    An error never stops the query. The listener logs each new error and stores it in ``problem``
    until a commit succeeds. Spark calls the listener on a separate thread, with one event at a
    time.

    Args:
        checkpoint_location: the query's checkpoint location, as passed to Spark; events of other
            queries are ignored.
        group: the consumer group; it must be empty.
        bootstrap_servers: the comma-separated ``host:port`` addresses of some brokers.
        kafka_config: a file with librdkafka properties or Java client properties.
        kafka_properties: properties by name, which override the properties in the file.

    Attributes:
        followed: the result of the last successful commit; None before the first one.
        problem: the error of the last commit; None if the commit succeeded.

    Raises:
        ConfigError: the Kafka properties are not valid.
        InputError: the checkpoint location is in a kind of storage that is not supported.
    """

    def __init__(
        self,
        checkpoint_location: str | os.PathLike[str],
        group: str,
        bootstrap_servers: str | None = None,
        kafka_config: str | os.PathLike[str] | None = None,
        kafka_properties: Mapping[str, str] | None = None,
    ) -> None:
        config = as_librdkafka(
            bootstrap_servers,
            Path(kafka_config) if kafka_config is not None else None,
            [f"{name}={value}" for name, value in (kafka_properties or {}).items()],
            os.environ.get("AWS_REGION"),
        )
        self._follower = GroupFollower(config, group, os.fspath(checkpoint_location))
        self.group = group
        self.followed: Followed | None = None
        self.problem: Exception | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing, because Spark waits until this method returns."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self._follow(str(event.progress.id))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        self._follow(str(event.id))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._follow(str(event.id))

    def _follow(self, query: str) -> None:
        try:
            if self._follower.query == query:
                self.followed = self._follower.commit_progress()
                self.problem = None
        except (MigrateError, OSError) as error:
            if str(error) != str(self.problem):
                warn(GROUP_NOT_COMMITTED(group=self.group, error=str(error)))
            self.problem = error
