"""What became of transactions: read from the cluster's transaction log, ``__transaction_state``.

librdkafka has no DescribeTransactions. The log holds what that request answers, for those who may
read it (READ on the topic). A transactional id is in partition ``abs(hash) % partitions``, the hash
that of a Java String. Each change of a transaction's state is a record::

    key    i16 version 0, i16 n, n bytes transactional id
    value  i16 version 0 or 1, i64 producer id, i16 epoch, i32 timeout in ms, i8 state, …

A value is missing where the id has expired (``transactional.id.expiration.ms``, 7 days). Kafka ends
a transaction that times out under the next epoch, and since 4.0 every one of a newer client's.

Source: TransactionLogKey.json, TransactionLogValue.json, TransactionState, TransactionStateManager
(partitionFor), TransactionMetadata @ Kafka 4.1.1.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from decoder.java import signed_32, string_hash
from migrate.kafka.client import QUIET, Connection
from migrate.model.cluster_snapshot import BrokerError, Fate, Transaction

_LOG = "__transaction_state"
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hqhib")
_KEY_VERSION = 0
_VALUE_VERSIONS = (0, 1)
# TransactionState's ids: ongoing; prepare and complete commit; prepare and complete abort.
_FATES = {
    1: Fate.OPEN,
    2: Fate.COMMITTED,
    4: Fate.COMMITTED,
    3: Fate.ABORTED,
    5: Fate.ABORTED,
}

# A partition of it is compacted, and seldom larger than its newest segment (100 MB by default).
_READ_SECONDS = 60.0
_AT_ONCE = 10_000
_WAIT = 0.1


class StateChange(NamedTuple):
    """A record of the transaction log, of one transactional id."""

    producer_id: int
    epoch: int
    state: int


def fates(connection: Connection, wanted: Iterable[Transaction]) -> dict[Transaction, Fate]:
    """What became of each transaction.

    Raises:
        BrokerError: the log cannot be read.
    """
    wanted = set(wanted)
    if not wanted:
        return {}
    changes: dict[str, list[StateChange]] = {one: [] for one, _, _ in wanted}
    for key, value in _records(connection, changes):
        transactional_id = _transactional_id(key)
        if transactional_id in changes and (change := _state_change(value)) is not None:
            changes[transactional_id].append(change)
    return {one: fate_of(one, changes[one[0]]) for one in wanted}


def fate_of(transaction: Transaction, changes: Iterable[StateChange]) -> Fate:
    """What the records of its id, in their order, say of a transaction."""
    _, producer_id, epoch = transaction
    found = Fate.UNKNOWN
    for change in changes:
        said = _FATES.get(change.state)
        if said is None or change.producer_id != producer_id:
            continue
        # Without its own record, which may be compacted away, the next epoch is another one's.
        if change.epoch == epoch or (found is Fate.OPEN and change.epoch == epoch + 1):
            found = said
    return found


def log_partition(transactional_id: str, partitions: int) -> int:
    """The partition of the log that holds an id."""
    hashed = abs(signed_32(string_hash(transactional_id)))
    # Utils.abs: of the smallest number there is no positive one.
    return 0 if hashed == 1 << 31 else hashed % partitions


def _transactional_id(key: bytes | None) -> str | None:
    if key is None or len(key) < _KEY.size:
        return None
    version, length = _KEY.unpack_from(key)
    text = key[_KEY.size :]
    return text.decode(errors="replace") if (version, length) == (_KEY_VERSION, len(text)) else None


def _state_change(value: bytes | None) -> StateChange | None:
    if value is None or len(value) < _VALUE.size:
        return None
    version, producer_id, epoch, _, state = _VALUE.unpack_from(value)
    return StateChange(producer_id, epoch, state) if version in _VALUE_VERSIONS else None


def _records(
    connection: Connection, transactional_ids: Iterable[str]
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Key and value of every record that their partitions hold now; no group is made or joined."""
    consumer = Consumer(
        {
            **connection.settings,
            "group.id": "flink-offset-migrate",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
        },
        logger=QUIET,
    )
    try:
        there = _partitions(connection, consumer)
        unread = {log_partition(one, there) for one in transactional_ids} if there else set()
        consumer.assign([TopicPartition(_LOG, one, OFFSET_BEGINNING) for one in unread])
        deadline = time.monotonic() + _READ_SECONDS
        while unread:
            if time.monotonic() > deadline:
                raise BrokerError(f"topic {_LOG}: not read within {_READ_SECONDS:.0f} s")
            for message in consumer.consume(_AT_ONCE, _WAIT):
                error = message.error()
                if error is None:
                    yield message.key(), message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition())
                # librdkafka looks for a group's coordinator even where none is joined.
                elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                    raise _failure(connection, error)
    finally:
        consumer.close()


def _partitions(connection: Connection, consumer: Consumer) -> int:
    """How many the log has; none before the cluster's first transaction."""
    try:
        log = consumer.list_topics(_LOG, timeout=connection.timeout).topics[_LOG]
    except KafkaException as error:
        raise connection.error(f"topic {_LOG}", error) from error
    if log.error is None:
        return len(log.partitions)
    if log.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return 0
    raise _failure(connection, log.error)


def _failure(connection: Connection, error: KafkaError) -> BrokerError:
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return BrokerError(f"access denied; grant this user READ on topic {_LOG}")
    return connection.error(f"topic {_LOG}", KafkaException(error))
