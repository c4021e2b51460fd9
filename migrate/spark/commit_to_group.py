"""A listener in a Spark query that keeps a consumer group where the query is, after each batch.

Spark posts a query's progress after the batch; with asynchronous progress tracking, before the
batch is in the commit log. So the offsets come from the commit log, as for ``migrate follow``, and
the event only says when to look.

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
from migrate.model.log import log
from migrate.targets.group.follower import Followed, GroupFollower


class CommitToGroup(StreamingQueryListener):
    """A listener that keeps a consumer group at what a query has committed.

    An error never stops the query: it is logged by ``migrate`` and kept in ``problem`` until a
    commit succeeds. Spark calls it on a thread of its own, one event at a time.

    Args:
        checkpoint_location: the query's, as given to Spark; events of other queries are ignored.
        group: the consumer group; it must have no members.
        bootstrap_servers: ``host:port`` of some brokers, with commas between.
        kafka_config: a file of librdkafka's properties, or of a Java client's.
        kafka_properties: such properties by name, over those of the file.

    Attributes:
        group: the consumer group.
        followed: the result of the last commit; None before the first.
        problem: why the last commit failed; None where it did not.

    Raises:
        ConfigError: the brokers cannot be reached as they are given.
        InputError: the checkpoint location is of a kind that is not read.
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
        """Do nothing: Spark waits for this one."""

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
                log.warning(f"group {self.group}: {error}")
            self.problem = error
