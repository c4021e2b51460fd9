"""Outcomes of transactions, read from the cluster's transaction log, ``__transaction_state``.

librdkafka does not support the DescribeTransactions request, so this module reads the log. This
requires the READ permission on the topic. The records of a transactional ID are in partition
``abs(id.hashCode()) % partitions``. Each change to a transaction's state is a record::

    key    i16 version 0, i16 n, n bytes transactional id
    value  i16 version 0 or 1, i64 producer id, i16 epoch, i32 timeout in ms, i8 state, …

When a transactional ID expires (``transactional.id.expiration.ms``, 7 days by default), Kafka
writes a record without a value. When a transaction times out, the record that ends the transaction
contains the next producer epoch. Since Kafka 4.0, the record that ends a transaction of a newer
client always contains the next producer epoch.

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
from migrate.kafka.client import Connection
from migrate.model.catalog import TRANSACTION_LOG_DENIED, TRANSACTION_LOG_TIMEOUT
from migrate.model.cluster_snapshot import BrokerError, Transaction, TxnOutcome

_LOG = "__transaction_state"
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hqhib")
_KEY_VERSION = 0
_VALUE_VERSIONS = (0, 1)
# The IDs in TransactionState: 1 Ongoing, 2 PrepareCommit, 4 CompleteCommit, 3 PrepareAbort, 5
# CompleteAbort.
_OUTCOMES = {
    1: TxnOutcome.OPEN,
    2: TxnOutcome.COMMITTED,
    4: TxnOutcome.COMMITTED,
    3: TxnOutcome.ABORTED,
    5: TxnOutcome.ABORTED,
}

# The time limit in seconds for reading the log. A compacted partition is rarely larger than its
# newest segment (100 MB by default).
_READ_SECONDS = 60.0
# The maximum number of records to read in one call, and the number of seconds to wait for them.
_AT_ONCE = 10_000
_WAIT = 0.1


class StateChange(NamedTuple):
    """The fields that are used from a transaction log record: the producer and the new state."""

    producer_id: int
    epoch: int
    state: int


def transaction_outcomes(
    connection: Connection, transactions: Iterable[Transaction]
) -> dict[Transaction, TxnOutcome]:
    """Return the outcome of each transaction.

    Raises:
        BrokerError: the transaction log cannot be read.
    """
    transactions = set(transactions)
    if not transactions:
        return {}
    changes: dict[str, list[StateChange]] = {name: [] for name, _, _ in transactions}
    for key, value in _records(connection, changes):
        transactional_id = _transactional_id(key)
        if transactional_id in changes and (change := _state_change(value)) is not None:
            changes[transactional_id].append(change)
    return {
        transaction: outcome_of(transaction, changes[transaction[0]])
        for transaction in transactions
    }


def outcome_of(transaction: Transaction, changes: Iterable[StateChange]) -> TxnOutcome:
    """Return a transaction's outcome from the changes to its transactional ID, in log order."""
    _, producer_id, epoch = transaction
    outcome = TxnOutcome.UNKNOWN
    for change in changes:
        new_outcome = _OUTCOMES.get(change.state)
        if new_outcome is None or change.producer_id != producer_id:
            continue
        # A change with the next epoch ends this transaction only if the outcome is still OPEN. If
        # compaction has removed the OPEN record, the change may belong to a different transaction.
        if change.epoch == epoch or (outcome is TxnOutcome.OPEN and change.epoch == epoch + 1):
            outcome = new_outcome
    return outcome


def log_partition(transactional_id: str, partitions: int) -> int:
    """Return the number of the transaction log partition that Kafka uses for a transactional ID."""
    hashed = abs(signed_32(string_hash(transactional_id)))
    # Utils.abs @ kafka-clients returns 0 for the lowest int, because its absolute value overflows.
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
    """Yield the key and value of every record in the partitions of these transactional IDs."""
    consumer = connection.consumer({"isolation.level": "read_uncommitted"})
    try:
        count = _partition_count(connection, consumer)
        unread = {log_partition(name, count) for name in transactional_ids} if count else set()
        consumer.assign([TopicPartition(_LOG, number, OFFSET_BEGINNING) for number in unread])
        deadline = time.monotonic() + _READ_SECONDS
        while unread:
            if time.monotonic() > deadline:
                raise BrokerError(TRANSACTION_LOG_TIMEOUT(topic=_LOG, seconds=round(_READ_SECONDS)))
            for message in consumer.consume(_AT_ONCE, _WAIT):
                error = message.error()
                if error is None:
                    yield message.key(), message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition())
                # Ignore the error if access to the group is denied. librdkafka queries the group
                # coordinator even if the consumer does not join the group, but reading does not
                # require the coordinator.
                elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                    raise _failure(connection, error)
    finally:
        consumer.close()


def _partition_count(connection: Connection, consumer: Consumer) -> int:
    """Return the number of the log's partitions; 0 before the cluster's first transaction."""
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
        return BrokerError(TRANSACTION_LOG_DENIED(topic=_LOG))
    return connection.error(f"topic {_LOG}", KafkaException(error))
