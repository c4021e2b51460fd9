"""Remove expired entries from a state with a TTL.

Flink treats an expired entry as absent. Spark's entries do not expire, so the Spark state must not
contain the entries that had expired when the job was stopped. A savepoint contains the time of the
last access to each entry. The TTL is only in the job's code (``StateTtlConfig``, or
``table.exec.state.ttl`` for SQL), so the user must pass the TTL.

Source: TtlUtils.expired (``lastAccess + ttl <= now``), TtlListState, TtlMapState @ Flink 1.20, 2.2.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from migrate.extensions.stateful_query.catalog import (
    EXPIRED_STATE,
    EXPIRY_DEPENDS_ON_STOP,
    EXPIRY_DOUBTFUL,
    EXPIRY_IGNORED,
    STOP_BEFORE_LAST_ACCESS,
    TTL_MISSING,
    TTL_OF_ROWS_MISSING,
)
from migrate.extensions.stateful_query.transfer.origin import (
    LAST_ACCESS,
    mark_unexpired,
    may_expire,
    origin_of,
)
from migrate.inputs.flink.extract import read
from migrate.model.errors import Refused, UsageError
from migrate.model.option_names import option
from migrate.model.warning import WarningText
from migrate.model.wording import iso_time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, GroupedData

# A TTL in milliseconds. None keeps every entry; ``...`` means that the user did not pass one.
TimeToLive = int | None | EllipsisType


@dataclass(frozen=True, slots=True)
class ExpiredEntries:
    """The expired entries of a state with a TTL.

    Attributes:
        ttl_ms: the TTL in milliseconds; None if every entry is kept.
        number: the number of expired entries; for a LIST, the number of expired elements.
        stopped_at_ms: the time at which the job was stopped, in epoch milliseconds. None if every
            entry is kept, or if the state has no entries and the user did not pass a time.
        doubtful: the number of entries that have expired by ``stopped_at_ms`` but not by
            ``earliest_stop_ms``. If the job was stopped before ``stopped_at_ms``, some of these
            entries may not have expired. 0 if the user passed the stop time.
        earliest_stop_ms: the earliest possible time of the stop, in epoch milliseconds. This is the
            time that the user passed. By default, it is the newest access to any entry.
            ``stopped_at_ms`` may be later, because it may be the time at which the checkpoint was
            copied.
    """

    ttl_ms: int | None
    number: int = 0
    stopped_at_ms: int | None = None
    doubtful: int = 0
    earliest_stop_ms: int | None = None

    def warnings(self) -> Iterator[WarningText]:
        """Yield the warnings about a query that starts with this state."""
        if self.ttl_ms is None:
            yield WarningText(EXPIRY_IGNORED())
            return
        if self.number and self.stopped_at_ms is not None:
            time = iso_time(self.stopped_at_ms)
            yield WarningText(EXPIRED_STATE(count=self.number, ttl_ms=self.ttl_ms, time=time))
        if self.doubtful:
            yield WarningText(EXPIRY_DOUBTFUL(count=self.doubtful))


def unexpired(
    state: DataFrame, *, ttl_ms: TimeToLive = ..., stopped_at_ms: int | None = None
) -> DataFrame:
    """Return the entries of a state that Flink would still use.

    Call this function if you create rows yourself. ``aggregate_rows``, ``seen_rows``, and
    ``initial_state`` already omit expired entries. Elements of a LIST expire individually. The
    returned DataFrame has a ``warnings`` attribute, a tuple of strings, which report, for example,
    the number of expired entries. The warnings are also printed on stderr. DataFrames derived from
    the returned DataFrame do not have this attribute.

    Args:
        state: the Flink state, as returned by ``flink_state``, with the ``last_access`` column.
        ttl_ms: the job's TTL in milliseconds; None keeps every entry.
        stopped_at_ms: the time at which the job was stopped, in epoch milliseconds. The default is
            the later of two times: the time at which the checkpoint's ``_metadata`` was written,
            and the newest access to any entry.

    Raises:
        Refused: the state has a TTL, and ``ttl_ms`` is missing; an entry was used after
            ``stopped_at_ms``; or ``stopped_at_ms`` is missing, the checkpoint is a copy, and the
            result depends on the stop time.
        UsageError: ``ttl_ms`` is not positive; ``ttl_ms`` is a number, but the state has no TTL;
            the ``last_access`` column is missing; or the stop time cannot be determined.
        DecodeError: the checkpoint cannot be read.
    """
    kept, warnings = leave_out_and_warn(state, ttl_ms, stopped_at_ms)
    # ``kept`` may be the user's own DataFrame, so ``select`` creates a different DataFrame, which
    # gets the attribute.
    return with_warnings(kept.select("*"), warnings)


def leave_out_and_warn(
    state: DataFrame, ttl_ms: TimeToLive, stopped_at_ms: int | None
) -> tuple[DataFrame, tuple[WarningText, ...]]:
    """Return the result and the warnings of ``unexpired``, and print the warnings on stderr.

    Raises:
        Refused, UsageError, DecodeError: as in ``unexpired``.
    """
    kept, expired = leave_out_expired(state, ttl_ms, stopped_at_ms)
    warnings = () if expired is None else tuple(expired.warnings())
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return kept, warnings


_Result = TypeVar("_Result", "DataFrame", "GroupedData")


def with_warnings(result: _Result, warnings: Sequence[str]) -> _Result:
    """Add a ``warnings`` attribute to a Spark result, and return the result.

    The result cannot be wrapped, because the caller uses it as a DataFrame or GroupedData.
    """
    result.warnings = tuple(warnings)  # type: ignore[attr-defined]  # added to Spark's object
    return result


def leave_out_expired(
    state: DataFrame, ttl_ms: TimeToLive, stopped_at_ms: int | None
) -> tuple[DataFrame, ExpiredEntries | None]:
    """Return the result of ``unexpired``, and a summary of the expired entries.

    The summary is None if the state has no TTL.

    Raises:
        Refused, UsageError, DecodeError: as in ``unexpired``.
    """
    if ttl_ms is ...:
        check_time_to_live(state)
        return state, None
    if not may_expire(state):
        if ttl_ms is not None:
            raise UsageError("this state has no TTL; omit `ttl_ms`")
        return state, None
    if ttl_ms is None:
        return mark_unexpired(state), ExpiredEntries(None)
    if ttl_ms < 1:
        raise UsageError(
            f"`ttl_ms` {ttl_ms} is not positive; pass a positive number, or None to keep every "
            f"entry"
        )
    if LAST_ACCESS not in state.columns:
        raise UsageError(
            f"the column {LAST_ACCESS} is missing, so expired entries cannot be found with "
            f"`ttl_ms`; "
            "keep the column, or call `unexpired` on the state itself"
        )
    access = F.array_max(LAST_ACCESS) if _is_list(state) else F.col(LAST_ACCESS)
    newest: int | None = state.agg(F.max(access)).collect()[0][0]
    if newest is None:  # no entries
        empty = ExpiredEntries(ttl_ms, 0, stopped_at_ms, 0, stopped_at_ms)
        return mark_unexpired(state, ttl_ms, stopped_at_ms, stopped_at_ms), empty
    stop, copied_from = _find_stop(state, stopped_at_ms, newest)
    expired, doubtful = _count_expired(state, stop - ttl_ms, newest - ttl_ms)
    if stopped_at_ms is not None:
        doubtful = 0
    if doubtful and copied_from is not None:
        raise Refused(
            EXPIRY_DEPENDS_ON_STOP(
                entries=doubtful,
                last_access=iso_time(newest),
                written=iso_time(stop),
                original=copied_from,
            )
        )
    earliest = newest if stopped_at_ms is None else stopped_at_ms
    kept = mark_unexpired(_used_after(state, stop - ttl_ms), ttl_ms, stop, earliest)
    return kept, ExpiredEntries(ttl_ms, expired, stop, doubtful, earliest)


def check_time_to_live(state: DataFrame) -> None:
    """Raise Refused if a state has a TTL. Call this function if the user did not pass a TTL."""
    if may_expire(state):
        origin = origin_of(state)
        if origin is None:
            raise Refused(TTL_OF_ROWS_MISSING())
        raise Refused(TTL_MISSING(state=origin.state, operator=origin.operator_id))


def _is_list(state: DataFrame) -> bool:
    return isinstance(state.schema[LAST_ACCESS].dataType, ArrayType)


def _find_stop(state: DataFrame, stopped_at_ms: int | None, newest: int) -> tuple[int, str | None]:
    """Return the time at which the job was stopped, and the path of a copied checkpoint's original.

    The path is None if the checkpoint is not a copy, or if the user passed the stop time.

    The clock of a file store may differ from the job's clock, or may count only whole seconds. If
    ``_metadata`` seems to be older than the newest access (``newest``), return the time of this
    access.
    """
    if stopped_at_ms is not None:
        if stopped_at_ms < newest:
            raise Refused(
                STOP_BEFORE_LAST_ACCESS(
                    last_access=iso_time(newest), stopped_at=iso_time(stopped_at_ms)
                )
            )
        return stopped_at_ms, None
    origin, checkpoint = origin_of(state), None
    if origin is not None:
        checkpoint = read(origin.savepoint, allow_external_files=origin.allow_external_files).origin
    if checkpoint is None or checkpoint.written_at is None:
        raise UsageError(
            "the time at which the job was stopped cannot be determined; pass this time in epoch "
            f"milliseconds ({option('stopped_at_ms')})"
        )
    return max(checkpoint.written_at, newest), checkpoint.copied_from


def _count_expired(state: DataFrame, stop_limit: int, newest_limit: int) -> tuple[int, int]:
    """Count the entries, or list elements, that were last used at or before ``stop_limit``.

    Return this number, and the number of counted entries that were last used after
    ``newest_limit``.
    """

    def number(limit: int) -> Column:
        bound = F.lit(_limit_to_bigint(limit))
        if _is_list(state):
            return F.sum(F.size(F.filter(LAST_ACCESS, lambda access: access <= bound)))
        return F.sum(F.when(F.col(LAST_ACCESS) <= bound, 1).otherwise(0))

    (counts,) = state.agg(number(stop_limit), number(newest_limit)).collect()
    return counts[0], counts[0] - counts[1]


def _used_after(state: DataFrame, limit: int) -> DataFrame:
    """Return the entries, or list elements, whose last use is after ``limit`` or unknown."""
    bound = F.lit(_limit_to_bigint(limit))
    if not _is_list(state):
        return state.where(F.col(LAST_ACCESS).isNull() | (F.col(LAST_ACCESS) > bound))

    def is_kept(_: Column, index: Column) -> Column:
        access = F.col(LAST_ACCESS)[index]
        return access.isNull() | (access > bound)

    columns = (name for name in ("value", LAST_ACCESS) if name in state.columns)
    kept = {name: F.filter(name, is_kept) for name in columns}
    return state.withColumns(kept).where(F.size(LAST_ACCESS) > 0)


def _limit_to_bigint(value: int) -> int:
    """Limit a time to the range of BIGINT, which a TTL of ``Long.MAX_VALUE`` would exceed."""
    return max(value, -(2**63))
