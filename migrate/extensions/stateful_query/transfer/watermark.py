"""Check a primed query's watermark against Flink's windows, and yield warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate.extensions.stateful_query.catalog import (
    EMPTY_STATE,
    EXPIRY_ENDS,
    FIRED_WINDOWS,
    HOPPING_WINDOWS_UNEXPECTED,
    WATERMARK_REOPENS_WINDOWS,
    WATERMARK_TOO_HIGH,
    WATERMARK_TOO_LOW,
    WATERMARK_WITHOUT_LIMIT,
)
from migrate.extensions.stateful_query.state_proof import StateProof
from migrate.extensions.stateful_query.transfer.rows import StateRows, records_not_moved
from migrate.model.errors import Refused, UsageError
from migrate.model.message import Message
from migrate.model.warning import WarningText


def check_watermark(
    has_watermark: bool, watermark_ms: int | None, rows: Sequence[StateRows]
) -> None:
    """Check that the watermark is consistent with Flink's fired and pending windows.

    The watermark must be at or above the end of each fired window, and below the end of each
    pending window.

    ``watermark_ms`` is the user's value, in epoch milliseconds.

    Raises:
        UsageError: ``watermark_ms`` is set, but the query has no watermark; or the query has a
            watermark, but ``watermark_ms`` is missing.
        Refused: Flink's windows show that Flink's watermark was lower or higher than
            ``watermark_ms``.
    """
    if not has_watermark:
        if watermark_ms is not None:
            raise UsageError(
                "`watermark_ms` is set, but the query has no watermark (withWatermark); omit "
                "`watermark_ms`"
            )
        return
    pending = first_pending_end(rows)
    if watermark_ms is None:
        known = ""
        if pending is not None:
            known = f"; the first window that Flink still stores ends at {pending}"
        raise UsageError(
            "the query has a watermark, but a savepoint does not contain Flink's watermark; "
            "set `watermark_ms` to at least the end of the last window that Flink has "
            f"fired{known}"
        )
    if pending is not None and watermark_ms >= pending:
        raise Refused(WATERMARK_TOO_HIGH(watermark_ms=watermark_ms, window_end=pending))
    fired = max((stream.fired.last_end for stream in rows if stream.fired.last_end), default=None)
    if fired is not None and watermark_ms < fired:
        raise Refused(WATERMARK_TOO_LOW(watermark_ms=watermark_ms, window_end=fired))


def first_pending_end(rows: Sequence[StateRows]) -> int | None:
    """Return the end of the first window that Flink has not fired yet, in epoch milliseconds."""
    return min((stream.first_end for stream in rows if stream.first_end is not None), default=None)


def window_hint(proof: StateProof, rows: Sequence[StateRows]) -> Iterator[Message]:
    """Yield a hint about missing arguments if Spark has windows that Flink does not have."""
    if proof.unexpected and first_pending_end(rows) is not None:
        yield HOPPING_WINDOWS_UNEXPECTED()


def priming_warnings(
    rows: Sequence[StateRows], watermark_ms: int | None, empty: bool = False
) -> Iterator[WarningText]:
    """Yield the warnings about a primed query; ``empty`` is True if its state has no keys."""
    pending = first_pending_end(rows)
    if watermark_ms is not None and pending is not None:
        yield WarningText(WATERMARK_REOPENS_WINDOWS(watermark_ms=watermark_ms, window_end=pending))
    elif watermark_ms is not None:
        yield WarningText(WATERMARK_WITHOUT_LIMIT(watermark_ms=watermark_ms))
    if fired := sum(stream.fired.number for stream in rows):
        yield WarningText(FIRED_WINDOWS(count=fired))
    for stream in rows:
        if stream.stores_records:
            yield records_not_moved()
        if stream.expired is not None:
            yield from stream.expired.warnings()
            if stream.expired.ttl_ms is not None:
                yield WarningText(EXPIRY_ENDS(ttl_ms=stream.expired.ttl_ms))
    if empty:
        yield WarningText(EMPTY_STATE())
