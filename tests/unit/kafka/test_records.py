"""Spans of records. `tests/integration/test_another_cluster.py` reads them from brokers."""

from __future__ import annotations

from migrate.kafka.records import _Span
from migrate.model.record import Record


def test_newer_record_is_not_read_if_snapshot_of_log_ends_with_transaction_marker() -> None:
    """Regression: A newer record of the mirror was read, but not its original in the other cluster.

    Therefore, the mirror seemed to have been rewound.
    """
    span = _Span(0, 0, 0, 4, 10, 10)  # records at 0 to 2, a marker at 3, and newer records
    for offset in (0, 1, 2, 4, 5):
        span.add(Record(offset, b"%d" % offset, b"key"), 1)
    assert [record.offset for record in span.after] == [0, 1, 2]
    assert (span.first_unread, span.is_to_end, span.is_done) == (4, True, True)
