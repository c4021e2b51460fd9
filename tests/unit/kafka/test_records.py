"""Spans of records. `tests/integration/test_another_cluster.py` reads them from brokers."""

from __future__ import annotations

from migrate.kafka.records import _Span
from migrate.model.record import Record


def test_record_beyond_snapshot_is_not_read_if_log_ended_with_marker() -> None:
    """Regression: A copy that was newer than the snapshot had no original.

    Therefore, the mirror seemed to have gone back.
    """
    span = _Span(0, 0, 0, 4, 10, 10)  # records at 0 to 2, a marker at 3, and the log has grown
    for offset in (0, 1, 2, 4, 5):
        span.add(Record(offset, b"%d" % offset, b"key"), 1)
    assert [record.offset for record in span.after] == [0, 1, 2]
    assert (span.first_unread, span.is_to_end, span.is_done) == (4, True, True)
