"""Rows that leave in a query's state what Flink's state says.

A row counts as one record. An entry of Flink's with ``count`` n becomes n rows. A sum is spread
over them, so that each fits where the records' own values did; the least and the greatest stand in
rows of their own. A window's rows lie at its start, a session's from its first record to its last.
An id that was seen is one row.

What an entry's parts mean is its job's: a state has types, and for SQL no names at all. So each is
named by an expression of Spark's SQL over the columns of ``flink_state`` (``key``, ``namespace``,
``value`` and so on).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from migrate.model.errors import Refused, UsageError
from migrate.spark.transfer.exact_cast import WHOLE, exactly, schema_of
from migrate.spark.transfer.origin import StateOrigin, origin_of
from migrate.spark.transfer.time_to_live import ExpiredEntries, TimeToLive, leave_out_expired
from migrate.spark.transfer.windows import FiredWindows, check_instants, panes, unfired
from migrate.state.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Some minutes of a small machine. More is better said by another query (see _look).
MOST_ROWS = 50_000_000

_ROUNDED = (FloatType, DoubleType)
_UNITS = "DECIMAL(38,0)"


@dataclass(frozen=True, slots=True)
class ToldValue:
    """A value that is told of each entry.

    Attributes:
        kind: ``count``, ``sum``, ``min`` or ``max``: the name that Spark gives its field.
        column: the stream's column that it is of; None of ``count(*)``.
        of_an_average: whether it is half of an average.
    """

    kind: str
    column: str | None = None
    of_an_average: bool = False

    def __str__(self) -> str:
        return f"{self.kind} of {self.column or 'records'}"


@dataclass(frozen=True, slots=True)
class StateRows:
    """Rows, and what they must leave in Spark's state.

    Attributes:
        rows: in the stream's schema.
        expected: a row for each entry: the columns of the key, then ``window`` where there is one
            (a struct of the timestamps start and end), then a column for each of ``values``.
        keys: the stream's columns that are the key's, in the order of ``expected``.
        values: what each of the others is.
        first_end: when the first of the windows ends, in epoch milliseconds; None without windows.
        overlapping: whether a row lies in windows that are not expected, as they have fired.
        fired: the windows that Flink has fired and keeps, which are not among the rows.
        origin: the savepoint; None where the state's columns do not tell it.
        expired: the entries that had expired, which are not among the rows; None of a state without
            a time to live.
    """

    rows: DataFrame
    expected: DataFrame
    keys: tuple[str, ...]
    values: tuple[ToldValue, ...] = ()
    first_end: int | None = None
    overlapping: bool = False
    fired: FiredWindows = field(default_factory=FiredWindows)
    origin: StateOrigin | None = None
    expired: ExpiredEntries | None = None

    def as_kafka(
        self, value: str, *, key: str | None = None, timestamp: str | None = None
    ) -> StateRows:
        """The rows as Kafka's source gives records, for a query that parses them itself.

        Args:
            value: an expression over the columns of the rows, as ``to_json(struct(*))``.
            key: the same for the record's key; null by default, as are topic and offset.
            timestamp: the same for its time; null by default.
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
        told = [f"{expression} AS {quoted(name)}" for name, expression in columns.items()]
        return replace(self, rows=self.rows.selectExpr(*told))


@dataclass(frozen=True, slots=True)
class _Measure:
    """What Flink has of one column of the stream.

    Attributes:
        parts: ``count``, ``sum``, ``min``, ``max``: by which column of the entries.
    """

    column: str
    type: DataType
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def told(self) -> str:
        return f"{self.column} {self.type.simpleString()}"

    @property
    def ends(self) -> list[str]:
        """The columns of the least and the greatest value, where they are told."""
        return [self.parts[kind] for kind in ("min", "max") if kind in self.parts]

    @property
    def records(self) -> str:
        """How many rows have a value in this column: the first ones."""
        return f"coalesce({self.parts['count']}, 0)" if "count" in self.parts else "n"


def seen_rows(
    state: DataFrame,
    schema: StructType | str,
    *,
    keys: Mapping[str, str],
    ttl_ms: TimeToLive = ...,
    stopped_at_ms: int | None = None,
) -> StateRows:
    """Return a row for each entry, for ``dropDuplicates``: what has been seen.

    Args:
        state: Flink's, as ``flink_state`` gives it.
        schema: the stream's: a column that is not among ``keys`` is null.
        keys: for each column that is compared, an expression over the state's columns.
        ttl_ms: as for ``aggregate_rows``.
        stopped_at_ms: as for ``aggregate_rows``.

    Raises:
        Refused, Refused: as for ``aggregate_rows``.
        UsageError: a column that the schema does not have.
        DecodeError: the checkpoint cannot be read.
    """
    return aggregate_rows(state, schema, keys=keys, ttl_ms=ttl_ms, stopped_at_ms=stopped_at_ms)


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
    most_rows: int = MOST_ROWS,
) -> StateRows:
    """Return rows for ``groupBy(…).agg(…)``, with or without a window.

    Each value that the query keeps is told by one of its own: ``count(*)`` by ``count``,
    ``count(a)`` by ``counts``, ``avg(a)`` by ``averages``. A value of several columns of the state
    at once, such as a POJO's, is an expression for each: ``count="value.n",
    sums={"amount": "value.total"}``. Name values of one kind in the order of the query. Only
    ``count(*)`` may be anywhere among its counts of columns.

    Windows that Flink has fired, and keeps for late records, are left out (``StateRows.fired``).

    Args:
        state: Flink's, as ``flink_state`` gives it; of sessions joined with the window that is.
        schema: the stream's, such as ``parsed(kafka).schema``: its types are what values are cast
            to, exactly; a column that is not named here is null.
        keys: for each column that is grouped by, in the order of Spark's key, an expression over
            the state's columns; none of a query that groups by nothing.
        count: of how many records; without it an entry is as few rows as tell the rest, and
            ``count(*)`` is no part of the query.
        counts: how many records have a value in each of these columns of the stream; without it
            all have one.
        sums: the sum of each of these columns.
        averages: the sum and the count that each average is made of.
        minima: the least value of each.
        maxima: the greatest value of each.
        window: a struct of start and end, in epoch milliseconds, as a ``namespace`` is; of SQL's
            slices ``named_struct('start', namespace - 10000, 'end', namespace)``.
        time: the stream's column of event time, a TIMESTAMP; it goes with a window.
        slide_ms: where windows hop: how far their starts lie apart. Rows then lie in the panes of
            the windows, which follow from how each window differs from the next. It wants
            ``count``, and has no ``minima`` and ``maxima``.
        session_gap_ms: where windows are sessions: how far its records may lie apart.
        ttl_ms: of a state with a time to live how long that is, in milliseconds: entries that had
            expired when the job was stopped are left out (``StateRows.expired``). None keeps every
            entry.
        stopped_at_ms: when the job was stopped, in epoch milliseconds. By default when the
            checkpoint's ``_metadata`` was written, or the last access in the state if that is
            later.
        most_rows: more are refused.

    Raises:
        Refused: the state has a time to live, and ``ttl_ms`` is missing.
        Refused: the state was used after ``stopped_at_ms``; or it is missing, the checkpoint
            is a copy, and the time matters.
        Refused: there are more records than ``most_rows``.
        Refused: a session counts fewer records than reach from its start to its end.
        UsageError: a column that the schema does not have, parts that do not go together, or a
            type whose values are not those of the stream's.
        Refused: windows are not told by instants, or not which of them have fired.
        DecodeError: the timers of the windows, or the checkpoint, cannot be read.
    """
    stream = schema_of(state.sparkSession, schema)
    types = {one.name: one.dataType for one in stream.fields}
    values = list(_told(count, counts, sums, averages, minima, maxima))
    columns = [one.column for one, _ in values if one.column is not None]
    unknown = [name for name in (*keys, *columns, *([time] if time else [])) if name not in types]
    if unknown:
        raise UsageError(f"no column {unknown[0]!r} in the stream's schema: {', '.join(types)}")
    if (window is None) != (time is None) or (session_gap_ms is not None and window is None):
        raise UsageError("window, time and session_gap_ms: a window needs the column of its time")
    if time is not None and not isinstance(types[time], TimestampType):
        raise UsageError(
            f"{time} {types[time].simpleString().upper()}: the time of windows must be a "
            "TIMESTAMP, which no session's time zone moves"
        )
    if slide_ms is not None and (count is None or window is None or minima or maxima):
        raise UsageError("slide_ms: hopping windows want window, time and count, and sums alone")
    state, expired = leave_out_expired(state, ttl_ms, stopped_at_ms)
    origin, fired = origin_of(state), FiredWindows()
    if window is not None and origin is not None:
        state, fired = unfired(state, origin)
    measures = _measures(types, [one for one, _ in values])
    names = [f"k{number}" for number in range(len(keys))]
    entries = state.select(
        *(F.expr(told).alias(name) for name, told in zip(names, keys.values(), strict=True)),
        *(F.expr(told).alias(f"v{number}") for number, (_, told) in enumerate(values)),
        *(F.expr(f"({window}).{one}").alias(one) for one in (("start", "end") if window else ())),
    )
    for name, key in zip(names, keys, strict=True):
        entries = exactly(entries, name, types[key], key)
    for number, (one, _) in enumerate(values):
        entries = exactly(entries, f"v{number}", _type_of(one, types), str(one))
    for bound in ("start", "end") if window else ():
        entries = exactly(entries, bound, LongType(), f"the {bound} of a window")
    entries = entries.withColumn("n", F.expr(_number(values, measures)))
    if session_gap_ms is not None:
        # As many as reach from the first record to the last.
        least = f"greatest((end - start + {session_gap_ms} - 1) div {session_gap_ms}, 1)"
        entries = entries.withColumn("least", F.expr(least))
        if count is not None:
            _check_sessions(entries, session_gap_ms)
        entries = entries.withColumn("n", F.expr("greatest(n, least)"))
    first_end = _look(entries, most_rows)
    if window is not None and origin is not None:
        check_instants(state, origin, first_end)
    rows = entries
    if slide_ms is not None:
        rows = panes(entries, names, [f"v{number}" for number in range(len(values))], slide_ms)
    for measure in measures:
        rows = _spread(rows, measure)
    # Between its bounds sequence() would count down.
    rows = rows.withColumn("i", F.explode(F.expr("IF(n > 0, sequence(0L, n - 1), array())")))
    for measure in measures:
        rows = _value(rows, measure)
    if time is not None:
        step = f"i * (end - start - {session_gap_ms}) / (n - 1)"
        apart = f" + IF(n = 1, 0L, CAST(floor({step}) AS BIGINT))" if session_gap_ms else ""
        rows = rows.withColumn("at", F.expr(f"timestamp_millis(start{apart})"))
    made = {
        **dict(zip(keys, names, strict=True)),
        **{measure.column: f"value of {measure.column}" for measure in measures},
        **({time: "at"} if time is not None else {}),
    }
    bounds = (f"timestamp_millis({one}) AS {one}" for one in ("start", "end"))
    return StateRows(
        rows.select(
            *(
                (F.col(quoted(made[name])) if name in made else F.lit(None)).cast(type_).alias(name)
                for name, type_ in types.items()
            )
        ),
        entries.select(
            *names,
            *([F.expr(f"struct({', '.join(bounds)})").alias("window")] if window else []),
            *(f"v{number}" for number in range(len(values))),
        ),
        tuple(keys),
        tuple(one for one, _ in values),
        first_end,
        overlapping=slide_ms is not None,
        fired=fired,
        origin=origin,
        expired=expired,
    )


def _told(
    count: str | None,
    counts: Mapping[str, str] | None,
    sums: Mapping[str, str] | None,
    averages: Mapping[str, tuple[str, str]] | None,
    minima: Mapping[str, str] | None,
    maxima: Mapping[str, str] | None,
) -> Iterator[tuple[ToldValue, str]]:
    """Each value that is told, and its expression."""
    if count is not None:
        yield ToldValue("count"), count
    given = (("count", counts), ("sum", sums), ("min", minima), ("max", maxima))
    for kind, some in given:
        for column, expression in (some or {}).items():
            yield ToldValue(kind, column), expression
    for column, (total, number) in (averages or {}).items():
        yield ToldValue("sum", column, of_an_average=True), total
        yield ToldValue("count", column, of_an_average=True), number


def _type_of(value: ToldValue, types: Mapping[str, DataType]) -> DataType:
    """In what a value is told: a sum has more digits than what it adds up."""
    if value.kind == "count" or value.column is None:
        return LongType()
    type_ = types[value.column]
    if value.kind == "sum" and isinstance(type_, (*WHOLE, DecimalType)):
        return DecimalType(38, type_.scale if isinstance(type_, DecimalType) else 0)
    return type_


def _measures(types: Mapping[str, DataType], values: list[ToldValue]) -> list[_Measure]:
    """What is measured of each column, by the first value of each kind."""
    found: dict[str, _Measure] = {}
    for number, value in enumerate(values):
        if value.column is not None:
            measure = found.setdefault(value.column, _Measure(value.column, types[value.column]))
            measure.parts.setdefault(value.kind, f"v{number}")
    for one in found.values():
        if "sum" in one.parts and not isinstance(one.type, (*WHOLE, *_ROUNDED, DecimalType)):
            raise UsageError(f"a sum of {one.told}: no number")
        if "sum" in one.parts and one.ends and isinstance(one.type, _ROUNDED):
            raise UsageError(
                f"{one.told}: a sum beside a least or a greatest value would be rounded; make rows "
                "of your own, and say what is expected"
            )
    return list(found.values())


def _number(values: list[tuple[ToldValue, str]], measures: list[_Measure]) -> str:
    """Of how many rows an entry is: its count, or as few as tell the rest."""
    if values and values[0][0] == ToldValue("count"):
        return "v0"
    wanted = [measure.parts["count"] for measure in measures if "count" in measure.parts]
    rows = max([1, *(len(measure.ends) for measure in measures)])
    return f"greatest({', '.join([f'{rows}L', '0L', *wanted])})"


def _check_sessions(entries: DataFrame, session_gap_ms: int) -> None:
    """As many records as it counts must reach from its start to its end: else its count is of other
    things, or the gap is another."""
    for row in entries.where("n IS NULL OR n < least").select("start", "end", "n", "least").take(1):
        raise Refused(
            f"a session from {row['start']} to {row['end']} counts {row['n']} records, and with "
            f"{session_gap_ms} ms between them it takes {row['least']} at least: count must be of "
            "all records, and session_gap_ms the job's"
        )


def _look(entries: DataFrame, most_rows: int) -> int | None:
    """Count the rows before any is made; when the first window ends."""
    first = F.min("end") if "end" in entries.columns else F.lit(None)
    (found,) = entries.agg(F.sum("n").alias("rows"), first.alias("first")).collect()
    if (found["rows"] or 0) > most_rows:
        raise Refused(
            f"{found['rows']} records are counted, and {most_rows} rows are the most: let the "
            "query sum a weight in place of count(*), 1 for each of Kafka's records; then an "
            "entry is one row, whose weight is its count (sums={'weight': …})"
        )
    return None if found["first"] is None else int(found["first"])


def _spread(entries: DataFrame, measure: _Measure) -> DataFrame:
    """The sum of whole numbers, in units of the last digit, over the rows that are neither the
    least nor the greatest: ``each`` has as many, and the first ``odd`` ones have one more."""
    if "sum" not in measure.parts or isinstance(measure.type, _ROUNDED):
        return entries
    own = [_units(measure, end) for end in measure.ends]
    rest, odd = quoted(f"rest of {measure.column}"), quoted(f"odd of {measure.column}")
    others = f"CAST(greatest({measure.records} - {len(own)}, 1) AS {_UNITS})"
    for name, told in (
        (rest, " - ".join([_units(measure, measure.parts["sum"]), *own])),
        (odd, f"pmod({rest}, {others})"),
        (quoted(f"each of {measure.column}"), f"({rest} - {odd}) / {others}"),
    ):
        entries = entries.withColumn(name.strip("`"), F.expr(f"CAST({told} AS {_UNITS})"))
    return entries


def _value(rows: DataFrame, measure: _Measure) -> DataFrame:
    """The value of row ``i`` of ``n``, in the stream's type."""
    ends, total = measure.ends, measure.parts.get("sum")
    if total is None:
        told = f"IF(i = 0, {ends[0]}, {ends[-1]})" if ends else _any_value(measure.type)
    elif isinstance(measure.type, _ROUNDED):
        # Nothing added is nothing rounded.
        told = f"IF({total} IS NULL OR i = 0, {total}, 0)"
    else:
        each, odd = (quoted(f"{what} of {measure.column}") for what in ("each", "odd"))
        cases = "".join(
            f" WHEN i = {place} THEN {_units(measure, end)}" for place, end in enumerate(ends)
        )
        told = (
            f"CASE WHEN {measure.records} = 1 THEN {_units(measure, total)}{cases} "
            f"ELSE {each} + IF(i - {len(ends)} < {odd}, 1, 0) END"
        )
        if scale := _scale(measure):
            # Spark's own division keeps six places of such a quotient.
            told = f"CAST(concat(CAST({told} AS {_UNITS}), 'E-{scale}') AS DECIMAL(38,{scale}))"
    made = rows.withColumn(
        f"value of {measure.column}", F.expr(f"IF(i < {measure.records}, {told}, NULL)")
    )
    return exactly(made, f"value of {measure.column}", measure.type, measure.column)


def _any_value(type_: DataType) -> str:
    """What is counted, and nothing else is known of."""
    if isinstance(type_, (*WHOLE, *_ROUNDED, DecimalType)):
        return f"CAST(0 AS {type_.simpleString()})"
    if isinstance(type_, StringType):
        return "''"
    raise UsageError(
        f"a count of a column of {type_.simpleString()}, of which nothing else is told: make rows "
        "of your own, and say what is expected"
    )


def _units(measure: _Measure, part: str) -> str:
    return f"CAST({part} * {10 ** _scale(measure)}BD AS {_UNITS})"


def _scale(measure: _Measure) -> int:
    return measure.type.scale if isinstance(measure.type, DecimalType) else 0
