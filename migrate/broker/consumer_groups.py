"""The consumer groups of a cluster, over a connection that is made anew after any failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from migrate.broker import changing, reading
from migrate.broker.changing import CommitFailure
from migrate.broker.connection import Connection
from migrate.cluster_snapshot import BrokerError, ClusterSnapshot, Committed, GroupView
from migrate.kafka_config import KafkaConfig


class ConsumerGroups:
    """The consumer groups of a cluster.

    One connection serves as long as it answers; after any failure the next request has a new one.
    """

    def __init__(self, config: KafkaConfig) -> None:
        self.bootstrap_servers = str(config.get("bootstrap.servers", ""))
        self._config = config
        self._connected: Connection | None = None

    def cluster_id(self) -> str | None:
        """Raises BrokerError."""
        with self._connection() as connection:
            return reading.cluster_id(connection)

    def view(self, group: str) -> GroupView:
        """The group as it is now. Raises BrokerError."""
        with self._connection() as connection:
            return reading.view(connection, group)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """``ClusterSnapshot.topic_ids`` of those that exist. Raises BrokerError."""
        with self._connection() as connection:
            return reading.topic_ids(connection, topics)

    def snapshot(self, topics: Iterable[str]) -> ClusterSnapshot:
        """Topics and their log ranges as they are now. Raises BrokerError."""
        with self._connection() as connection:
            return reading.snapshot(connection, topics)

    def commit(
        self, group: str, offsets: Mapping[tuple[str, int], Committed]
    ) -> dict[tuple[str, int], CommitFailure]:
        """Commit offsets of a group without members, once; the partitions that failed.

        After a request without an answer the rest is not sent: it would only wait as long again.
        """
        failures: dict[tuple[str, int], CommitFailure] = {}
        unanswered: CommitFailure | None = None
        for request in changing.requests(group, offsets):
            if unanswered is None:
                failed = self._commit(group, request)
                failures |= failed
                if failed.keys() == request.keys():
                    unanswered = next((f for f in failed.values() if f.transient), None)
            else:
                failures |= dict.fromkeys(request, unanswered)
        return failures

    def _commit(
        self, group: str, request: Mapping[tuple[str, int], Committed]
    ) -> dict[tuple[str, int], CommitFailure]:
        try:
            with self._connection() as connection:
                failed = changing.commit(connection, group, request)
        except BrokerError as error:
            return dict.fromkeys(request, _no_answer(error))
        self._drop_after(failed.values())
        return failed

    def delete(self, group: str) -> CommitFailure | None:
        """Delete a group without members, and with it every offset it holds, once."""
        try:
            with self._connection() as connection:
                failure = changing.delete(connection, group)
        except BrokerError as error:
            return _no_answer(error)
        self._drop_after([failure] if failure is not None else [])
        return failure

    def _drop_after(self, failures: Iterable[CommitFailure]) -> None:
        if any(failure.transient for failure in failures):
            self._connected = None

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """The connection at hand, or a new one.

        librdkafka 2.16 aborts the whole process (``eonce->refcnt > 0``) where a request about a
        group is made on a client whose connection to the group's coordinator has failed.
        """
        try:
            if self._connected is None:
                self._connected = Connection(self._config)
            yield self._connected
        except BrokerError:
            self._connected = None
            raise


def _no_answer(error: BrokerError) -> CommitFailure:
    return CommitFailure("_TRANSPORT", str(error), transient=True)
