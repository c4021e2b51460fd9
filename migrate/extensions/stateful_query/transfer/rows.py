"""Create rows from which a query computes the same state as in Flink.

Each row counts as one record, so an entry with a count of 3 becomes three rows. For
``dropDuplicates``, each key becomes one row. The event times of the rows depend on the windows:

- For tumbling windows, all rows of a window have the start time of the window.
- For hopping windows, all rows of a pane have the start time of the pane.
- For sessions, the times range from the first record of the session to its last record.

The Flink state contains the types of an entry's parts, but not their meanings. The state of an SQL
job does not even contain their names. The user therefore selects each part with a Spark SQL
expression over the columns of ``flink_state``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StructType,
    TimestampType,
)

from migrate.extensions.keyed_state.frames import read_keyed_state
from migrate.extensions.stateful_query.catalog import (
    RECORDS_NOT_MOVED,
    SESSION_LACKS_RECORDS,
    TOO_MANY_ROWS,
)
from migrate.extensions.stateful_query.state_proof import StateProof
from migrate.extensions.stateful_query.transfer.exact_cast import cast_exactly, schema_of
from migrate.extensions.stateful_query.transfer.origin import LAST_ACCESS, StateOrigin, origin_of
from migrate.extensions.stateful_query.transfer.spread import (
    AggregateValue,
    add_value,
    divide_sum,
    group_by_column,
    row_count,
    type_of,
)
from migrate.extensions.stateful_query.transfer.time_to_live import (
    ExpiredEntries,
    TimeToLive,
    leave_out_expired,
)
from migrate.extensions.stateful_query.transfer.windows import (
    FiredWindows,
    check_instants,
    split_into_panes,
    unfired_windows,
)
from migrate.model.column_types import quoted
from migrate.model.errors import Refused, UsageError
from migrate.model.warning import WarningText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The default of ``most_rows``. A small machine needs a few minutes to create this many rows. For
# more records, the query should sum a weight instead of counting rows (see _check_row_count).
MOST_ROWS = 50_000_000
# Matches the column ``value`` in an SQL expression.
_VALUE = r"(?<![.\w])value\b"


@dataclass(frozen=True, slots=True)
class StateRows:
    """Rows for a stateful query, and the state that the query must have after it reads them.

    Attributes:
        rows: the rows that the query reads, in the stream's schema.
        expected: the expected state, with a row for each entry. The columns are, in this order: the
            key columns; ``window``, a struct of the timestamps start and end, if the state has
            windows; a column for each of ``values``; and ``last_access``, if the state has a TTL.
        keys: the stream's key columns, in the order of the key columns in ``expected``.
        values: descriptions of the value columns, in the order of these columns in ``expected``.
        first_end: the earliest end of a window, in epoch milliseconds; None without windows.
        overlapping: True if the windows overlap (hopping windows). A row may then also be in a
            window that Flink has already fired.
        fired: the windows that Flink has fired but still keeps. There are no rows for these
            windows.
        origin: the origin of the state; None if the state's columns do not contain the origin.
        expired: the expired entries, for which there are no rows; None for a state without a TTL.
        time: the stream's event-time column; None without windows.
        entries: the number of Flink entries that became rows, before keys were merged.
        held: the number of entries in the Flink state, or None if unknown.
        may_merge: True if the user has allowed the merging of entries with equal keys.
        slide_ms: the slide of hopping windows, in milliseconds; otherwise None.
        session_gap_ms: the gap of session windows, in milliseconds; otherwise None.
        stores_records: True if Flink's entries have values, such as records, but the query will
            store only the keys.
        unused: the fields of Flink's values that none of the user's expressions uses, such as
            ``value.f1``.
    """

    rows: DataFrame
    expected: DataFrame
    keys: tuple[str, ...]
    values: tuple[AggregateValue, ...] = ()
    first_end: int | None = None
    overlapping: bool = False
    fired: FiredWindows = field(default_factory=FiredWindows)
    origin: StateOrigin | None = None
    expired: ExpiredEntries | None = None
    time: str | None = None
    entries: int | None = None
    held: int | None = None
    may_merge: bool = False
    slide_ms: int | None = None
    session_gap_ms: int | None = None
    stores_records: bool = False
    unused: tuple[str, ...] = ()

    @property
    def left_out(self) -> int:
        """The number of Flink entries that the user has omitted, for example with ``where``.

        Omitted expired entries and omitted fired windows are not counted. If the number is unknown,
        the result is 0.
        """
        if self.held is None or self.entries is None:
            return 0
        expired = 0 if self.expired is None else self.expired.number
        return max(0, self.held - self.entries - expired - self.fired.number)

    def counted_in(self, proof: StateProof) -> StateProof:
        """Return a copy of ``proof`` that includes how many Flink entries became these rows."""
        if self.entries is None:
            return proof
        return replace(
            proof,
            entries=self.entries,
            held=self.held,
            merged=self.entries - (proof.right + proof.wrong + proof.missing),
            may_merge=self.may_merge,
        )

    def as_kafka(
        self, value: str, *, key: str | None = None, timestamp: str | None = None
    ) -> StateRows:
        """Return the rows as records of a Kafka source, for a query that parses records itself.

        The other columns of the Kafka source, such as topic and offset, are null.

        Args:
            value: an expression for the record's value, such as ``to_json(struct(*))``. All
                expressions are over the columns of the rows.
            key: an expression for the record's key; null by default.
            timestamp: an expression for the record's timestamp; null by default.
        """
        columns = {
            "key": f"CAST({key or 'NULL'} AS BINARY)",
            "value": f"CAST({value} AS BINARY)",
            "topic": "CAST(NULL AS STRING)",
            "partition": "CAST(NULL AS INT)",
            "offset": "CAST(NULL AS BIGINT)",
            "timestamp": f"CAST({timestamp or 'NULL'} AS TIMESTAMP)",
            "timestampType": "CAST(NULL AS INT)",
        }
        selected = [f"{expression} AS {quoted(name)}" for name, expression in columns.items()]
        return replace(self, rows=self.rows.selectExpr(*selected))


def seen_rows(
    state: DataFrame,
    schema: StructType | str,
    *,
    keys: Mapping[str, str],
    ttl_ms: TimeToLive = ...,
    stopped_at_ms: int | None = None,
    merge_keys: bool = False,
) -> StateRows:
    """Return a row for each key that Flink has seen, for ``dropDuplicates``.

    Args:
        state: the Flink state from ``flink_state``.
        schema: the schema of the stream; columns that are not among ``keys`` are null.
        keys: for each column of ``dropDuplicates``, an expression over the state's columns.
        ttl_ms: as in ``aggregate_rows``.
        stopped_at_ms: as in ``aggregate_rows``.
        merge_keys: as in ``aggregate_rows``.

    Raises:
        Refused, UsageError, DecodeError: as in ``aggregate_rows``.
    """
    return aggregate_rows(
        *(state, schema),
        keys=keys,
        ttl_ms=ttl_ms,
        stopped_at_ms=stopped_at_ms,
        merge_keys=merge_keys,
    )


def aggregate_rows(
    state: DataFrame,
    schema: StructType | str,
    *,
    keys: Mapping[str, str],
    count: str | None = None,
    counts: Mapping[str, str] | None = None,
    sums: Mapping[str, str] | None = None,
    averages: Mapping[str, tuple[str, str]] | None = None,
    minima: Mapping[str, str] | None = None,
    maxima: Mapping[str, str] | None = None,
    window: str | None = None,
    time: str | None = None,
    slide_ms: int | None = None,
    session_gap_ms: int | None = None,
    ttl_ms: TimeToLive = ...,
    stopped_at_ms: int | None = None,
    merge_keys: bool = False,
    most_rows: int = MOST_ROWS,
) -> StateRows:
    """Return rows for ``groupBy(…).agg(…)``, with or without a window.

    Each kind of aggregate has its own argument: ``count`` for ``count(*)``, ``counts`` for
    ``count(a)``, ``averages`` for ``avg(a)``, and so on. If a state column contains several values,
    such as a POJO, pass an expression for each value: ``count="value.n", sums={"amount":
    "value.total"}``. Within an argument, list the values in the order of the query. ``count(*)``
    can be anywhere in the query.

    Windows that Flink has fired but keeps for late records are omitted (``StateRows.fired``).

    Args:
        state: the Flink state from ``flink_state``; first join sessions with their windows
            (``session_windows``).
        schema: the schema of the stream, such as ``parsed(kafka).schema``. Values are cast exactly
            to the types in the schema. A column of the schema is null if no argument contains it.
        keys: for each groupBy column, in the order of the Spark key, an expression over the state's
            columns. Empty for a query without grouping columns.
        count: an expression for the number of records. Without this argument, the query must not
            have ``count(*)``, and an entry becomes the smallest number of rows that can contain the
            other values.
        counts: for stream columns, expressions for the number of records that have a value in the
            column. If a column has only a sum, a minimum, or a maximum, every record is assumed to
            have a value in the column.
        sums: for stream columns, expressions for the sum of the column.
        averages: for stream columns, pairs of expressions: for the sum of the column, and for the
            number of its values.
        minima: for stream columns, expressions for the smallest value of the column.
        maxima: for stream columns, expressions for the largest value of the column.
        window: an expression for a struct of start and end, in epoch milliseconds, such as
            ``namespace``. For SQL slices, ``namespace`` is only the end. For slices of 10 seconds,
            pass ``named_struct('start', namespace - 10000, 'end', namespace)``.
        time: the stream's event-time column, a TIMESTAMP. This argument requires ``window``.
        slide_ms: the slide of hopping windows, in milliseconds. The rows are then rows of panes,
            not of windows (see ``split_into_panes``). This argument requires ``window`` and
            ``count``, and cannot be combined with ``minima``, ``maxima``, or ``session_gap_ms``.
        session_gap_ms: the job's session gap, in milliseconds.
        ttl_ms: the TTL of the state, in milliseconds, if it has one. Entries that had expired when
            the job was stopped are omitted (``StateRows.expired``). None keeps every entry.
        stopped_at_ms: the time at which the job was stopped, in epoch milliseconds. The default is
            the time at which the checkpoint's ``_metadata`` was written, or the last access in the
            state if that is later.
        merge_keys: True to merge entries whose keys become equal. Keys become equal because of an
            expression, or because Spark treats -0.0 and 0.0 as the same key. When
            entries are merged, their counts and sums are added up, and the smallest minimum and the
            largest maximum are kept. By default, entries with equal keys are refused when the
            states are compared.
        most_rows: the maximum number of rows to create.

    Raises:
        Refused: the state has a TTL, and ``ttl_ms`` is missing; an entry was used after
            ``stopped_at_ms``; ``stopped_at_ms`` is missing, the checkpoint is a copy, and the
            result depends on the stop time; the number of rows would exceed ``most_rows``; a
            session has too few records to reach from its start to its end; the state does not show
            which windows have fired; or the state's windows end at wall-clock times, not instants.
        UsageError: a column is not in the schema, the arguments cannot be combined, or a type
            cannot be cast exactly to the type in the stream.
        DecodeError: the timers of the windows, or the checkpoint, cannot be read.
    """
    stream = schema_of(state.sparkSession, schema)
    types = {column.name: column.dataType for column in stream.fields}
    named = list(_named_values(count, counts, sums, averages, minima, maxima))
    values = [value for value, _ in named]
    columns = [value.column for value in values if value.column is not None]
    unknown = [name for name in (*keys, *columns, *([time] if time else [])) if name not in types]
    if unknown:
        raise UsageError(
            f"the stream's schema has no column {unknown[0]!r}; pass one of its columns: "
            f"{', '.join(types)}"
        )
    if (window is None) != (time is None) or (session_gap_ms is not None and window is None):
        raise UsageError(
            "`window` and `time` require each other, and `session_gap_ms` requires both; pass "
            "`window` "
            "and `time`"
        )
    if time is not None and not isinstance(types[time], TimestampType):
        raise UsageError(
            f"{time} has type {types[time].simpleString().upper()}, but the event time must be a "
            "TIMESTAMP, because the value of a TIMESTAMP does not depend on the session's time "
            "zone; use a TIMESTAMP column"
        )
    if slide_ms is not None and (
        count is None or window is None or minima or maxima or session_gap_ms is not None
    ):
        raise UsageError(
            "`slide_ms` requires `window`, `time`, and `count`, and cannot be combined with "
            "`minima`, "
            "`maxima`, or `session_gap_ms`"
        )
    whole = state
    state, expired = leave_out_expired(state, ttl_ms, stopped_at_ms)
    fired = FiredWindows()
    if window is not None:
        state, fired = unfired_windows(state)
    bounds = ("start", "end") if window is not None else ()
    aggregates = group_by_column(types, values)
    key_names = [f"k{number}" for number in range(len(keys))]
    value_names = [f"v{number}" for number in range(len(values))]
    # For each column of the entries: the expression, the type, and the description.
    parts: dict[str, tuple[str, DataType, str]] = {
        name: (expression, types[key], key)
        for name, (key, expression) in zip(key_names, keys.items(), strict=True)
    }
    for name, (value, expression) in zip(value_names, named, strict=True):
        parts[name] = (expression, type_of(value, types), str(value))
    for bound in bounds:
        parts[bound] = (f"({window}).{bound}", LongType(), f"the {bound} of a window")
    if expired is not None and LAST_ACCESS in state.columns:
        is_list = isinstance(state.schema[LAST_ACCESS].dataType, ArrayType)
        access = f"array_max({LAST_ACCESS})" if is_list else LAST_ACCESS
        parts[LAST_ACCESS] = (access, LongType(), "the last access")
    entries = state.select(*(F.expr(part[0]).alias(name) for name, part in parts.items()))
    for name, (_, type_, description) in parts.items():
        entries = cast_exactly(entries, name, type_, description)
    if merge_keys:
        number: int | None = entries.count()
        kinds = [(name, value.kind) for name, value in zip(value_names, values, strict=True)]
        kinds += [(LAST_ACCESS, "max")] * (LAST_ACCESS in parts)
        entries = merge_entries(entries, [*key_names, *bounds], kinds)
    entries = entries.withColumn("n", F.expr(row_count(values, aggregates)))
    if session_gap_ms is not None:
        # The smallest number of records that can span the session from its start to its end. Two
        # consecutive records are at most the gap apart.
        least = f"greatest((end - start + {session_gap_ms} - 1) div {session_gap_ms}, 1)"
        entries = entries.withColumn("least", F.expr(least))
        if count is not None:
            _check_sessions(entries, session_gap_ms)
        entries = entries.withColumn("n", F.expr("greatest(n, least)"))
    first_end, rows_of_entries = _check_row_count(entries, most_rows)
    if not merge_keys:
        number = rows_of_entries
    held = _held(whole)
    if held is not None and number is not None and held < number:
        held = None  # one state has too few entries, so the entries come from several states
    if window is not None:
        check_instants(state, first_end)
    rows = entries
    if slide_ms is not None:
        rows = split_into_panes(entries, key_names, value_names, slide_ms)
    for column in aggregates:
        rows = divide_sum(rows, column)
    # If n is 0, sequence(0, n - 1) counts down from 0 to -1, so an empty array is used instead.
    rows = rows.withColumn("i", F.explode(F.expr("IF(n > 0, sequence(0L, n - 1), array())")))
    for column in aggregates:
        rows = add_value(rows, column)
    sources = dict(zip(keys, key_names, strict=True))
    sources |= {column.column: column.value for column in aggregates}
    if time is not None:
        sources[time] = "at"
        step = f"i * (end - start - {session_gap_ms}) / (n - 1)"
        delay = f" + IF(n = 1, 0L, CAST(floor({step}) AS BIGINT))" if session_gap_ms else ""
        rows = rows.withColumn("at", F.expr(f"timestamp_millis(start{delay})"))
    instants = ", ".join(f"timestamp_millis({bound}) AS {bound}" for bound in bounds)
    return StateRows(
        select_columns(rows, stream, sources),
        entries.select(
            *key_names,
            *([F.expr(f"struct({instants})").alias("window")] if window is not None else []),
            *value_names,
            *[LAST_ACCESS] * (LAST_ACCESS in parts),
        ),
        tuple(keys),
        tuple(values),
        first_end,
        overlapping=slide_ms is not None,
        fired=fired,
        origin=origin_of(state),
        expired=expired,
        time=time,
        entries=number,
        held=held,
        may_merge=merge_keys,
        slide_ms=slide_ms,
        session_gap_ms=session_gap_ms,
        stores_records=not values and stores_records(whole),
        unused=_unused_fields(whole, [part[0] for part in parts.values()]) if values else (),
    )


def stores_records(state: DataFrame) -> bool:
    """Return whether the values of a state are records, lists, or maps."""
    if "value" not in state.columns:
        return False
    return isinstance(state.schema["value"].dataType, (StructType, ArrayType, MapType))


def records_not_moved() -> WarningText:
    """Return the warning that the query stores only the keys, not Flink's records."""
    return WarningText(RECORDS_NOT_MOVED())


def _unused_fields(state: DataFrame, expressions: Iterable[str]) -> tuple[str, ...]:
    """Return the fields of a state's values that no SQL expression uses.

    Return () if the values have no fields.
    """
    if "value" not in state.columns:
        return ()
    type_ = state.schema["value"].dataType
    return unused_fields(type_.names, expressions) if isinstance(type_, StructType) else ()


def unused_fields(names: Iterable[str], expressions: Iterable[str]) -> tuple[str, ...]:
    """Return ``value.NAME`` for each field that no SQL expression uses.

    An expression that uses the column ``value`` as a whole uses all of its fields.
    """
    text = " ".join(expressions)
    if re.search(rf"{_VALUE}(?!\s*\.)", text, re.IGNORECASE):
        return ()
    fields = re.findall(rf"{_VALUE}\s*\.\s*(?:`([^`]+)`|(\w+))", text, re.IGNORECASE)
    used = {(in_quotes or name).lower() for in_quotes, name in fields}
    return tuple(f"value.{name}" for name in names if name.lower() not in used)


def merge_entries(
    entries: DataFrame, keys: Sequence[str], values: Iterable[tuple[str, str]]
) -> DataFrame:
    """Merge entries with equal keys.

    Args:
        entries: the entries.
        keys: the columns of the key.
        values: the other columns, each with its kind: ``count``, ``sum``, ``min``, or ``max``.
    """
    merged = []
    for name, kind in values:
        type_ = entries.schema[name].dataType
        if kind in ("min", "max"):
            merge = F.expr(f"{kind}({name})")
        elif isinstance(type_, (FloatType, DoubleType)):
            # Spark computes this sum twice: for the rows, and for the comparison. Add the values in
            # sorted order, so that both results are equal.
            values_of_key = f"array_sort(collect_list({name}))"
            merge = F.expr(
                f"IF(size({values_of_key}) = 0, NULL, aggregate({values_of_key}, "
                f"CAST(0 AS {type_.simpleString()}), (total, value) -> total + value))"
            )
        else:
            merge = F.expr(f"sum({name})").cast(type_)
        merged.append(merge.alias(name))
    by_key = entries.groupBy(*keys)
    return by_key.agg(*merged) if merged else entries.select(*keys).distinct()


def _held(state: DataFrame) -> int | None:
    """Return the number of entries in the state from which a DataFrame comes; None if unknown."""
    origin = origin_of(state)
    if origin is None:
        return None
    return read_keyed_state(
        state.sparkSession,
        origin.savepoint,
        operator=origin.operator_id,
        state=origin.state,
        allowExternalFiles=origin.allow_external_files,
        truncateKeys=origin.truncate_keys,
    ).count()


def select_columns(rows: DataFrame, schema: StructType, sources: Mapping[str, str]) -> DataFrame:
    """Return the columns of a schema, cast from columns in ``sources``; other columns are null."""
    return rows.select(
        *(
            (F.col(quoted(sources[field.name])) if field.name in sources else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in schema.fields
        )
    )


def _named_values(
    count: str | None,
    counts: Mapping[str, str] | None,
    sums: Mapping[str, str] | None,
    averages: Mapping[str, tuple[str, str]] | None,
    minima: Mapping[str, str] | None,
    maxima: Mapping[str, str] | None,
) -> Iterator[tuple[AggregateValue, str]]:
    """Yield each aggregate value with the user's expression for it."""
    if count is not None:
        yield AggregateValue("count"), count
    for kind, by_column in (("count", counts), ("sum", sums), ("min", minima), ("max", maxima)):
        for column, expression in (by_column or {}).items():
            yield AggregateValue(kind, column), expression
    for column, (total, number) in (averages or {}).items():
        yield AggregateValue("sum", column, in_average=True), total
        yield AggregateValue("count", column, in_average=True), number


def _check_sessions(entries: DataFrame, session_gap_ms: int) -> None:
    """Raise Refused if a session has too few records to reach from its start to its end.

    There are two possible reasons: the user's ``count`` is not the number of records, or
    ``session_gap_ms`` is not the job's gap.
    """
    for row in entries.where("n IS NULL OR n < least").select("start", "end", "n", "least").take(1):
        raise Refused(
            SESSION_LACKS_RECORDS(
                start=row["start"],
                end=row["end"],
                records=row["n"],
                gap_ms=session_gap_ms,
                least=row["least"],
            )
        )


def _check_row_count(entries: DataFrame, most_rows: int) -> tuple[int | None, int]:
    """Check the number of rows to create, which must not exceed ``most_rows``.

    Return the earliest window end (None without windows), and the number of entries.
    """
    first = F.min("end") if "end" in entries.columns else F.lit(None)
    sums = F.sum("n").alias("rows"), first.alias("first"), F.count("*").alias("entries")
    (totals,) = entries.agg(*sums).collect()
    if (totals["rows"] or 0) > most_rows:
        raise Refused(TOO_MANY_ROWS(rows=totals["rows"], most_rows=most_rows))
    first_end = None if totals["first"] is None else int(totals["first"])
    return first_end, totals["entries"]
