"""Warnings: one sentence, and a code that ``migrate explain`` explains.

The sentence is a message of ``warning_catalog``, of the catalog of an extension, or of a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any

from migrate.model.log import REPEATED, log
from migrate.model.message import Message


class WarningText(str):
    """The text of a warning, with its code in brackets after the sentence.

    Attributes:
        message: the sentence, with the code and the facts.
    """

    message: Message

    def __new__(cls, message: Message) -> WarningText:
        text = super().__new__(cls, f"{message} [{message.code}]")
        text.message = message
        return text

    def __reduce__(self) -> Any:
        return WarningText, (self.message,)

    @property
    def code(self) -> str:
        return self.message.code

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.message.facts


class WarningCode(str, Enum):
    """The code of a warning that is not a finding; ``explanations.md`` explains each."""

    ABORTED_COPIES = "aborted-copies"
    AGE_UNKNOWN = "age-unknown"
    ANOTHER_RUN = "another-run"
    EARLY_WINDOWS = "early-windows"
    EMPTY_STATE = "empty-state"
    EXPIRED_STATE = "expired-state"
    EXPIRY_DOUBTFUL = "expiry-doubtful"
    EXPIRY_ENDS = "expiry-ends"
    EXPIRY_IGNORED = "expiry-ignored"
    FIRED_WINDOWS = "fired-windows"
    FLINK_REST_CHANGED = "flink-rest-changed"
    GROUP_MOVED = "group-moved"
    GROUP_NOT_COMMITTED = "group-not-committed"
    GROUP_OFFSETS_LOST = "group-offsets-lost"
    GROUP_ORIGIN_UNKNOWN = "group-origin-unknown"
    HISTORY_SAMPLED = "history-sampled"
    JOB_MAY_RUN = "job-may-run"
    LATE_RECORDS = "late-records"
    LOG_START = "log-start"
    LOOK_FAILED = "look-failed"  # ``follow`` could not read the query, the brokers, or the group
    MAYBE_RECREATED = "maybe-recreated"
    MERGED_POSITIONS = "merged-positions"
    METADATA_DISCARDED = "metadata-discarded"
    METADATA_OF_CLIENT = "metadata-of-client"
    MISSING_OFFSETS = "missing-offsets"
    MISSING_PARTITIONS = "missing-partitions"
    NEW_GROUP = "new-group"
    NEW_TOPIC = "new-topic"
    NO_CHECKPOINT = "no-checkpoint"
    NO_SUCH_GROUP = "no-such-group"
    NO_TOPIC_IDS = "no-topic-ids"
    NOT_CHECKED = "not-checked"
    OFFSET_GAPS = "offset-gaps"
    OLD_SAVEPOINT = "old-savepoint"
    ONE_CLUSTER = "one-cluster"
    OTHER_BROKERS = "other-brokers"
    PARTIAL_TOPIC = "partial-topic"
    PARTITION_STAYS = "partition-stays"
    PATTERN_UNMATCHED = "pattern-unmatched"
    POSITION_CHANGED = "position-changed"
    QUERY_COPIED = "query-copied"
    QUERY_MAY_RUN = "query-may-run"
    RECORDS_NOT_MOVED = "records-not-moved"
    REMAINING_FILES = "remaining-files"
    RENAMED_TOPIC = "renamed-topic"
    RESTART_UNSEEN = "restart-unseen"
    RUN_STOPPED = "run-stopped"
    SINK_HIDES_FILES = "sink-hides-files"
    SINK_UNKNOWN = "sink-unknown"
    SINK_WRITER = "sink-writer"
    SOURCE_GROUP_EMPTY = "source-group-empty"
    STATE_LEFT_BEHIND = "state-left-behind"
    STATE_MISMATCH = "state-mismatch"
    STATE_UNREADABLE = "state-unreadable"
    STOP_UNKNOWN = "stop-unknown"
    TIME_TO_LIVE = "time-to-live"
    TOPIC_NOT_READ = "topic-not-read"
    UNFINISHED_RUN = "unfinished-run"
    UNLISTED_PARTITION = "unlisted-partition"
    UNSEEDED_STREAM = "unseeded-stream"
    WATERMARK = "watermark"
    WRONG_FROM_THE_START = "wrong-from-the-start"
    YOUNG_TOPIC = "young-topic"

    def __str__(self) -> str:
        return str(self.value)


def warn(message: Message, *, repeated: bool = False) -> None:
    """Log a warning; the command line shows equal warnings only once, unless ``repeated``."""
    text = WarningText(message)
    for record in _records.get():
        record.append(text)
    log.warning(text, extra={REPEATED: repeated})


# The lists of the active ``record_warnings`` blocks. Each thread has its own.
_records: ContextVar[tuple[list[WarningText], ...]] = ContextVar("records", default=())


@contextmanager
def record_warnings() -> Iterator[list[WarningText]]:
    """Yield a list that collects the warnings logged within the block.

    Library calls that print their result use this context manager, because a plain script does not
    show the log.
    """
    record: list[WarningText] = []
    token = _records.set((*_records.get(), record))
    try:
        yield record
    finally:
        _records.reset(token)
