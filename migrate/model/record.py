"""Records in a partition, with the fields that identify the same records in another log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record.

    Attributes:
        offset: the record's own offset.
        digest: a hash of the key, the value, and the timestamp.
        key: a hash of the key.
        headers: the headers, in order.
        timestamp: epoch milliseconds; negative if the record has no timestamp.
        is_append_time: True if the broker set the timestamp when it appended the record.
        is_tombstone: True if the record has no value.
    """

    offset: int
    digest: bytes
    key: bytes
    headers: Headers = ()
    timestamp: int = -1
    is_append_time: bool = False
    is_tombstone: bool = False

    def is_copied_as(self, copy: Record) -> bool:
        """Return whether ``copy`` is a copy of this record in another log.

        The key, the value, and the timestamp must be equal. The copy must have all headers of this
        record, in the same order. It may have additional headers, because a mirror can add them.
        """
        if self.digest != copy.digest:
            return False
        if self.headers == copy.headers:
            return True
        rest = iter(copy.headers)
        return all(header in rest for header in self.headers)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Successive records in a log around a position.

    Offsets without a record, such as the offsets of transaction markers, are skipped.

    Attributes:
        position: the offset of the next record to read.
        before: the last records below the position.
        after: the first records from the position on.
        first_unread: the first unread offset. The log might contain more records from this offset
            on.
        is_from_start: True if the log has no records before these records.
        is_to_end: True if the log had no records after these records.
        log_start, log_end: the log range. If the log start offset is 0, no record was ever deleted
            from the start of the log.
    """

    position: int
    before: tuple[Record, ...]
    after: tuple[Record, ...]
    first_unread: int
    is_from_start: bool
    is_to_end: bool
    log_start: int = 0
    log_end: int = 0

    @property
    def records(self) -> tuple[Record, ...]:
        return (*self.before, *self.after)


class Side(Enum):
    """The log to read: in the job's cluster (old) or in the cluster with the copy (new)."""

    OLD = "old"
    ALL_OLD = "all old"  # includes records of aborted transactions
    NEW = "new"
    ALL_NEW = "all new"


@dataclass(frozen=True, slots=True)
class Read:
    """A request for the records around an offset or a time.

    Attributes:
        at: the offset or time.
        before: the maximum number of records below ``at``.
        after: the maximum number of records from ``at`` on.
        is_time: True if ``at`` is a time in epoch milliseconds instead of an offset. The time
            stands for the offset of the first record with that time or a later time, or for the log
            end offset if there is no such record.
        partition: a different partition of the topic, to read instead.
    """

    side: Side
    at: int
    before: int
    after: int
    is_time: bool = False
    partition: int | None = None
