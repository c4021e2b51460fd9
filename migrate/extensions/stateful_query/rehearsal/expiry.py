"""Determine whether Flink lacks a key of the query's state because the key's TTL has expired.

Flink drops an entry once ``last_access + ttl_ms <= now`` (TtlUtils.expired @ Flink 1.20, 2.2).
Spark never drops an entry because of a TTL.

If a key is in the earlier checkpoint but not in the later one, its TTL can be the reason only if
both of these conditions are met:

- The last access to the key, as stored in the earlier checkpoint, is old enough.
- No record between the checkpoints has changed the key's value. A change is a new access, which
  restarts the TTL.

Otherwise, the job has cleared the key, or the query is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from migrate.extensions.stateful_query.transfer.filled_state import Rows, state_rows_of
from migrate.extensions.stateful_query.transfer.flat_state import SparkState
from migrate.extensions.stateful_query.transfer.origin import LAST_ACCESS, time_to_live_of
from migrate.extensions.stateful_query.transfer.proof import key_order
from migrate.extensions.stateful_query.transfer.rows import StateRows
from migrate.model.wording import counted, iso_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Cause(Enum):
    """The reason that a key in the query's state is missing from Flink's state."""

    EXPIRED = "expired"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Expiry:
    """The TTL of a state, and the times at which its two checkpoints were written.

    All times are in epoch milliseconds.

    Attributes:
        ttl_ms: the TTL in milliseconds; None if the TTL is unknown, because the user chose to keep
            every entry. Flink may have dropped expired entries even then.
        earlier_ms: the earliest possible time of the earlier checkpoint, or None if unknown.
        later_ms: the earliest possible time of the later checkpoint, or None if unknown.
        latest_ms: the latest possible time of the later checkpoint; by default ``later_ms``.
    """

    ttl_ms: int | None
    earlier_ms: int | None
    later_ms: int | None
    latest_ms: int | None = None

    @property
    def limit_ms(self) -> int | None:
        """The last-access time up to which a key has certainly expired by the later checkpoint.

        A key has certainly expired if its last access is at or before this time.
        """
        if self.ttl_ms is None or self.later_ms is None:
            return None
        return self.later_ms - self.ttl_ms

    @property
    def possible_limit_ms(self) -> int | None:
        """The last-access time up to which a key may have expired by the later checkpoint.

        A key has certainly not expired if its last access is after this time.
        """
        if self.ttl_ms is None or self.later_ms is None:
            return None
        return max(self.later_ms, self.latest_ms or self.later_ms) - self.ttl_ms

    @property
    def new_keys_may_expire(self) -> bool:
        """Return whether a key used between the checkpoints may have expired by the later one.

        If the key has expired, neither checkpoint contains the time at which it was used.
        """
        if self.possible_limit_ms is None or self.earlier_ms is None:
            return True
        return self.earlier_ms <= self.possible_limit_ms

    def cause(self, last_access_ms: int | None, *, is_new: bool) -> Cause:
        """Return the reason that Flink lacks a key.

        Args:
            last_access_ms: the key's last access in the earlier checkpoint, or None if unknown.
            is_new: True if the earlier checkpoint lacks the key or contains a different value for
                it. In both cases, the key was used between the checkpoints.
        """
        if is_new:
            return Cause.UNKNOWN if self.new_keys_may_expire else Cause.DIFFERENT
        if self.limit_ms is None or self.possible_limit_ms is None or last_access_ms is None:
            return Cause.UNKNOWN
        if last_access_ms <= self.limit_ms:
            return Cause.EXPIRED
        return Cause.UNKNOWN if last_access_ms <= self.possible_limit_ms else Cause.DIFFERENT


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many keys are only in Spark's state but are not compared, because they may have expired.

    Attributes:
        expired: the number of keys that have certainly expired.
        unknown: the number of keys whose expiry cannot be determined.
    """

    expired: int
    unknown: int

    def reasons(self, expiry: Expiry) -> list[tuple[int, str]]:
        """Return (key count, reason) pairs for the keys that are not compared."""
        found = []
        if self.expired and expiry.limit_ms is not None:
            found.append(
                (
                    self.expired,
                    f"{counted(self.expired, 'key')} of the earlier checkpoint that only the "
                    "query still contains; Flink dropped them because their last use was "
                    f"{expiry.ttl_ms} ms (ttl_ms) or more before the later checkpoint, at "
                    f"{iso_time(expiry.limit_ms)} or earlier",
                )
            )
        if self.unknown:
            why = "ttl_ms is None"
            if expiry.ttl_ms is not None:
                why = (
                    "their last access is unknown (it is between the checkpoints, or the last "
                    "column of expected is not last_access), or the exact time of a checkpoint "
                    "is unknown (pass stopped_at_ms)"
                )
            found.append(
                (
                    self.unknown,
                    f"{counted(self.unknown, 'key')} that only the query contains; their "
                    f"expiry cannot be determined, because {why}",
                )
            )
        return found


class StateTimeToLive(NamedTuple):
    """The TTL of a checkpoint's state.

    Attributes:
        ttl_ms: the TTL in milliseconds; None if the user keeps every entry, or if the TTL differs
            between the streams.
        latest_ms: the latest possible time of the checkpoint, in epoch milliseconds; None if
            unknown.
        earliest_ms: the earliest possible time of the checkpoint; None if unknown.
    """

    ttl_ms: int | None
    latest_ms: int | None = None
    earliest_ms: int | None = None

    @classmethod
    def of(cls, rows: Rows, expected: DataFrame | None) -> StateTimeToLive | None:
        """Return the TTL of a checkpoint's state; None if neither argument shows a TTL.

        A DataFrame that the user created shows the TTL only if it comes from ``unexpired``.
        """
        frames = [stream for stream in rows if not isinstance(stream, StateRows)]
        found = [
            cls(expired.ttl_ms, expired.stopped_at_ms, expired.earliest_stop_ms)
            for expired in (stream.expired for stream in state_rows_of(rows))
            if expired is not None
        ]
        for frame in [*frames, *([] if expected is None else [expected])]:
            marks = time_to_live_of(frame)
            if marks is not None:
                found.append(cls(*marks))
        if not found:
            return None
        first = found[0]
        return first if len({item.ttl_ms for item in found}) == 1 else first._replace(ttl_ms=None)


def expiry_of(earlier: StateTimeToLive | None, later: StateTimeToLive | None) -> Expiry | None:
    """Combine the TTLs of two checkpoints; return None if a checkpoint does not show a TTL."""
    if earlier is None or later is None:
        return None
    return Expiry(later.ttl_ms, earlier.earliest_ms, later.earliest_ms, later.latest_ms)


def last_accesses(rows: Sequence[StateRows], state: SparkState) -> DataFrame | None:
    """Return a DataFrame with the last access to each key, or None if the accesses are unknown.

    The columns are the key columns of the Spark state, and ``last_access``.
    """
    if len(rows) != 1 or LAST_ACCESS not in rows[0].expected.columns:
        return None
    (stream,) = rows
    keys = [
        F.col(f"k{number}").alias(f"k{index}")
        for index, number in enumerate(key_order(stream.keys, state))
    ]
    return stream.expected.select(*keys, *["window"] * state.has_window, LAST_ACCESS)


def without_dropped(
    state: SparkState,
    earlier: DataFrame,
    accesses: DataFrame,
    later: DataFrame,
    expiry: Expiry,
) -> tuple[SparkState, Dropped]:
    """Return the Spark state without the keys that may have expired in Flink.

    Also return how many keys were removed. If expiry cannot be the reason that Flink lacks a key,
    the key remains in the state and will be reported as unexpected.

    Args:
        state: Spark's state after the query has processed the records.
        earlier: Flink's entries at the earlier checkpoint, in the columns of Spark's state.
        accesses: Flink's keys at the earlier checkpoint, in the key columns of Spark's state, with
            ``last_access`` if available.
        later: Flink's entries at the later checkpoint, in the columns of the Spark state.
        expiry: the TTL.
    """
    key = F.struct(*state.key_columns)
    entry = F.struct(*state.key_columns, *state.value_columns)
    only_spark = state.frame.select(key.alias("key"), entry.alias("entry")).join(
        later.select(key.alias("later")), F.col("key").eqNullSafe(F.col("later")), "left_anti"
    )
    access = F.col(LAST_ACCESS) if LAST_ACCESS in accesses.columns else F.lit(None).cast("bigint")
    known = accesses.select(key.alias("accessed"), access.alias("access"))
    unchanged = earlier.select(entry.alias("earlier"))
    # The rules are the same as in ``Expiry.cause``.
    new = Cause.UNKNOWN if expiry.new_keys_may_expire else Cause.DIFFERENT
    limit = F.lit(expiry.limit_ms).cast("bigint")
    possible = F.lit(expiry.possible_limit_ms).cast("bigint")
    cause = (
        F.when(F.col("earlier").isNull(), new.value)
        .when(limit.isNull() | F.col("access").isNull(), Cause.UNKNOWN.value)
        .when(F.col("access") <= limit, Cause.EXPIRED.value)
        .when(F.col("access") <= possible, Cause.UNKNOWN.value)
        .otherwise(Cause.DIFFERENT.value)
    )
    judged = (
        only_spark.join(known, F.col("key").eqNullSafe(F.col("accessed")), "left_outer")
        .join(unchanged, F.col("entry").eqNullSafe(F.col("earlier")), "left_outer")
        .select("key", cause.alias("cause"))
    )
    dropped = judged.where(F.col("cause") != Cause.DIFFERENT.value).localCheckpoint()
    counts = {row["cause"]: row["count"] for row in dropped.groupBy("cause").count().collect()}
    kept = state.frame.join(
        dropped.select(F.col("key").alias("dropped")),
        key.eqNullSafe(F.col("dropped")),
        "left_anti",
    )
    found = Dropped(counts.get(Cause.EXPIRED.value, 0), counts.get(Cause.UNKNOWN.value, 0))
    return replace(state, frame=kept), found
