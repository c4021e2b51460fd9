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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
)

from migrate.errors import Refused, UsageError
from migrate.state.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Some minutes of a small machine. More is better said by another query (see _too_many).
MOST_ROWS = 50_000_000

_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_ROUNDED = (FloatType, DoubleType)
_UNITS = "DECIMAL(38,0)"


class TooManyRows(Refused):
    """A count is too large to be told in rows."""


@dataclass(frozen=True, slots=True)
class StateRows:
    """Rows, and what they must leave in Spark's state.

    Attributes:
        rows: in the stream's schema.
        expected: a row for each entry: the columns of the key, then ``window`` where there is one
            (a struct of the timestamps start and end), then a column for each of ``values``.
        keys: how many columns of ``expected`` are the key's.
        values: what each value is: ``count``, ``sum``, ``min`` or ``max``.
        first_end: when the first of the windows ends, in epoch milliseconds; None without windows.
        overlapping: whether a row lies in windows that are not expected, as they have fired.
    """

    rows: DataFrame
    expected: DataFrame
    keys: int
    values: tuple[str, ...] = ()
    first_end: int | None = None
    overlapping: bool = False

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
        parts: ``sum``, ``min``, ``max``: by which column of the entries.
    """

    column: str
    type: DataType
    parts: dict[str, str]


def seen_rows(state: DataFrame, schema: StructType | str, *, keys: Mapping[str, str]) -> StateRows:
    """A row for each entry, for ``dropDuplicates``: what has been seen.

    Args:
        state: Flink's, as ``flink_state`` gives it.
        schema: the stream's: a column that is not among ``keys`` is null.
        keys: for each column that is compared, an expression over the state's columns.

    Raises:
        UsageError: a column that the schema does not have.
    """
    return aggregate_rows(state, schema, keys=keys)


def aggregate_rows(
    state: DataFrame,
    schema: StructType | str,
    *,
    keys: Mapping[str, str],
    count: str | None = None,
    sums: Mapping[str, str] | None = None,
    minima: Mapping[str, str] | None = None,
    maxima: Mapping[str, str] | None = None,
    window: str | None = None,
    time: str | None = None,
    slide_ms: int | None = None,
    session_gap_ms: int | None = None,
    most_rows: int = MOST_ROWS,
) -> StateRows:
    """Rows for ``groupBy(…).agg(…)``, with or without a window.

    An average is a sum and a count. A value of several columns of the state at once, such as a
    POJO's, is an expression for each: ``count="value.n", sums={"amount": "value.total"}``.

    Args:
        state: Flink's, as ``flink_state`` gives it; of sessions joined with the window that is.
        schema: the stream's, such as ``parsed(kafka).schema``: its types are what values are cast
            to, exactly; a column that is not named here is null.
        keys: for each column that is grouped by, in the order of Spark's key, an expression over
            the state's columns.
        count: of how many records; without it each entry is one row, and ``count(*)`` is no part of
            the query.
        sums: the sum of each of these columns of the stream.
        minima: the least value of each.
        maxima: the greatest value of each.
        window: a struct of start and end, in epoch milliseconds, as a ``namespace`` is; of SQL's
            slices ``named_struct('start', namespace - 10000, 'end', namespace)``.
        time: the stream's column of event time; it goes with a window.
        slide_ms: where windows hop: how far their starts lie apart. Rows then lie in the panes of
            the windows, which follow from how each window differs from the next. It wants
            ``count``, and has no ``minima`` and ``maxima``.
        session_gap_ms: where windows are sessions: how far its records may lie apart.
        most_rows: more are refused.

    Raises:
        TooManyRows: there are more records than ``most_rows``.
        UsageError: a column that the schema does not have, or parts that do not go together.
    """
    stream = schema_of(state.sparkSession, schema)
    types = {one.name: one.dataType for one in stream.fields}
    named = [*keys, *(sums or {}), *(minima or {}), *(maxima or {}), *([time] if time else [])]
    unknown = [name for name in named if name not in types]
    if unknown:
        raise UsageError(f"no column {unknown[0]!r} in the stream's schema: {', '.join(types)}")
    if (window is None) != (time is None) or (session_gap_ms is not None and window is None):
        raise UsageError("window, time and session_gap_ms: a window needs the column of its time")
    if slide_ms is not None and (count is None or window is None or minima or maxima):
        raise UsageError("slide_ms: hopping windows want window, time and count, and sums alone")
    measures, parts = _measures(types, {"sum": sums, "min": minima, "max": maxima})
    entries = state.select(
        *(F.expr(told).alias(f"k{number}") for number, told in enumerate(keys.values())),
        F.expr(f"CAST({count or 1} AS BIGINT)").alias("n"),
        *(F.expr(told).alias(name) for name, told in parts.items()),
        *(F.expr(f"({window}).{one}").alias(one) for one in (("start", "end") if window else ())),
    )
    for number, name in enumerate(keys):
        entries = exactly(entries, f"k{number}", types[name], name)
    if session_gap_ms is not None:
        # As many as reach from the first record to the last.
        entries = entries.withColumn("gaps", F.expr(f"ceil((end - start) / {session_gap_ms}) - 1"))
        entries = entries.withColumn("n", F.expr("greatest(n, CAST(gaps AS BIGINT) + 1)"))
    first_end = _look(entries, most_rows)
    rows = entries if slide_ms is None else _panes(entries, len(keys), [*parts], slide_ms)
    for one in measures:
        rows = _spread(rows, one)
    # Between its bounds sequence() would count down.
    rows = rows.withColumn("i", F.explode(F.expr("IF(n > 0, sequence(0L, n - 1), array())")))
    for one in measures:
        rows = _value(rows, one)
    if time is not None:
        step = f"i * (end - start - {session_gap_ms}) / (n - 1)"
        apart = f" + IF(n = 1, 0L, CAST(floor({step}) AS BIGINT))" if session_gap_ms else ""
        rows = rows.withColumn("at", F.expr(f"timestamp_millis(start{apart})"))
    made = {
        **{name: f"k{number}" for number, name in enumerate(keys)},
        **{one.column: f"value of {one.column}" for one in measures},
        **({time: "at"} if time is not None else {}),
    }
    columns = [
        (F.col(quoted(made[name])) if name in made else F.lit(None)).cast(type_).alias(name)
        for name, type_ in types.items()
    ]
    values = {**({"n": "count"} if count else {}), **{name: name.split()[0] for name in parts}}
    bounds = (f"timestamp_millis({one}) AS {one}" for one in ("start", "end"))
    expected = entries.select(
        *(f"k{number}" for number in range(len(keys))),
        *([F.expr(f"struct({', '.join(bounds)})").alias("window")] if window else []),
        *(F.col(quoted(name)).alias(f"v{number}") for number, name in enumerate(values)),
    )
    return StateRows(
        rows.select(*columns),
        expected,
        len(keys),
        tuple(values.values()),
        first_end,
        overlapping=slide_ms is not None,
    )


def session_windows(contents: DataFrame, windows: DataFrame) -> DataFrame:
    """The contents of sessions, with the window that each is now as their ``namespace``.

    Where sessions have become one, Flink keeps its contents under one of them.

    Args:
        contents: the state ``window-contents``.
        windows: the state ``merging-window-set`` of the same operator.
    """
    pairs = windows.select(F.col("key").alias("its"), F.explode("value").alias("pair"))
    same = F.col("key").eqNullSafe(F.col("its")) & (F.col("pair.f1") == F.col("namespace"))
    return contents.join(pairs, same).select("key", F.col("pair.f0").alias("namespace"), "value")


def schema_of(spark: SparkSession, schema: StructType | str) -> StructType:
    """A schema, also where it is given as DDL."""
    return schema if isinstance(schema, StructType) else spark.createDataFrame([], schema).schema


def _measures(
    types: Mapping[str, DataType], given: Mapping[str, Mapping[str, str] | None]
) -> tuple[list[_Measure], dict[str, str]]:
    """What is measured of each column, and the expressions of its parts."""
    found: dict[str, _Measure] = {}
    expressions = {}
    for kind, some in given.items():
        for column, expression in (some or {}).items():
            measure = found.setdefault(column, _Measure(column, types[column], {}))
            measure.parts[kind] = f"{kind} of {column}"
            expressions[measure.parts[kind]] = expression
    for one in found.values():
        told = f"{one.column} {one.type.simpleString()}"
        if "sum" in one.parts and not isinstance(one.type, (*_WHOLE, *_ROUNDED, DecimalType)):
            raise UsageError(f"a sum of {told}: no number")
        if "sum" in one.parts and len(one.parts) > 1 and isinstance(one.type, _ROUNDED):
            raise UsageError(
                f"{told}: a sum beside a least or a greatest value would be rounded; make rows of "
                "your own, and say what is expected"
            )
    return list(found.values()), expressions


def _look(entries: DataFrame, most_rows: int) -> int | None:
    """Count the rows before any is made; when the first window ends."""
    first = F.min("end") if "end" in entries.columns else F.lit(None)
    (found,) = entries.agg(F.sum("n").alias("rows"), first.alias("first")).collect()
    if (found["rows"] or 0) > most_rows:
        raise TooManyRows(
            [
                f"{found['rows']} records are counted, and {most_rows} rows are the most: let the "
                "query sum a weight in place of count(*), 1 for each of Kafka's records; then an "
                "entry is one row, whose weight is its count (sums={'weight': …})"
            ]
        )
    return None if found["first"] is None else int(found["first"])


def _panes(entries: DataFrame, keys: int, sums: Sequence[str], slide_ms: int) -> DataFrame:
    """Windows that hop, as the panes between their starts, which do not overlap.

    The window that starts at p is the panes from p on, the next one all of those but the first, and
    one more. So pane p is window p less the next window, and the pane a window's size later: a sum
    over windows, with signs. Windows before the first that is kept have fired.
    """
    (bounds,) = entries.agg(
        F.min("start").alias("first"),
        F.min(F.expr("end - start")).alias("size"),
        F.max(F.expr("end - start")).alias("largest"),
    ).collect()
    first, size = bounds["first"] or 0, bounds["size"] or slide_ms
    if bounds["largest"] not in (None, size) or size % slide_ms:
        raise UsageError(f"slide_ms {slide_ms}: windows of {size} ms are not made of whole panes")
    # 0 is a window's own pane, and those whole sizes before; 1 is the pane before it, and so on.
    steps = [
        f"transform(sequence(0L, (start - {shift} - {first}) div {size}), "
        f"j -> named_struct('start', start - {shift} - j * {size}, 'sign', {sign}))"
        for shift, sign in ((0, 1), (slide_ms, -1))
    ]
    signed = f"concat({steps[0]}, IF(start - {slide_ms} >= {first}, {steps[1]}, array()))"
    names = [f"k{number}" for number in range(keys)]
    return (
        entries.withColumn("pane", F.explode(F.expr(signed)))
        .groupBy(*names, F.col("pane.start").alias("start"))
        .agg(*(F.expr(f"sum(pane.sign * {quoted(name)})").alias(name) for name in ("n", *sums)))
        .where("n <> 0")
        .withColumn("n", F.col("n").cast("BIGINT"))
    )


def exactly(frame: DataFrame, column: str, type_: DataType, name: str) -> DataFrame:
    """A column as a type. A value that is not exactly one of it is an error when Spark comes to it:
    a key that were cast into another would be lost in silence."""
    own, name = frame.schema[column].dataType, name.replace("'", "")
    if own == type_:
        return frame
    value, target, origin = quoted(column), type_.simpleString(), own.simpleString()
    cast = f"try_cast({value} AS {target})"
    problem = f"{name}: of type {origin} in Flink, not exactly {target}: "
    return frame.withColumn(
        column,
        F.expr(
            f"CASE WHEN {value} IS NULL OR try_cast({cast} AS {origin}) <=> {value} THEN {cast} "
            f"ELSE CAST(raise_error(concat('{problem}', CAST({value} AS STRING))) AS {target}) END"
        ),
    )


def _spread(entries: DataFrame, measure: _Measure) -> DataFrame:
    """The sum of whole numbers, in units of the last digit, over the rows that are neither the
    least nor the greatest: ``each`` has as many, and the first ``odd`` ones have one more."""
    if "sum" not in measure.parts or isinstance(measure.type, _ROUNDED):
        return entries
    units = {kind: _units(measure, kind) for kind in measure.parts}
    own = [units[kind] for kind in ("min", "max") if kind in units]
    rest, odd = quoted(f"rest of {measure.column}"), quoted(f"odd of {measure.column}")
    others = f"CAST(greatest(n - {len(own)}, 1) AS {_UNITS})"
    for name, told in (
        (rest, " - ".join([units["sum"], *own])),
        (odd, f"pmod({rest}, {others})"),
        (quoted(f"each of {measure.column}"), f"({rest} - {odd}) / {others}"),
    ):
        entries = entries.withColumn(name.strip("`"), F.expr(f"CAST({told} AS {_UNITS})"))
    return entries


def _value(rows: DataFrame, measure: _Measure) -> DataFrame:
    """The value of row ``i`` of ``n``, in the stream's type."""
    parts = {kind: quoted(name) for kind, name in measure.parts.items()}
    ends = [kind for kind in ("min", "max") if kind in parts]
    if "sum" not in parts:
        told = f"IF(i = 0, {parts[ends[0]]}, {parts[ends[-1]]})"
    elif isinstance(measure.type, _ROUNDED):
        # Nothing added is nothing rounded.
        told = f"IF({parts['sum']} IS NULL OR i = 0, {parts['sum']}, 0)"
    else:
        each, odd = (quoted(f"{what} of {measure.column}") for what in ("each", "odd"))
        cases = "".join(
            f" WHEN i = {place} THEN {_units(measure, kind)}" for place, kind in enumerate(ends)
        )
        told = (
            f"CASE WHEN n = 1 THEN {_units(measure, 'sum')}{cases} "
            f"ELSE {each} + IF(i - {len(ends)} < {odd}, 1, 0) END"
        )
        if scale := _scale(measure):
            told = f"CAST(({told}) / {10**scale}BD AS DECIMAL(38,{scale}))"
    made = rows.withColumn(f"value of {measure.column}", F.expr(told))
    return exactly(made, f"value of {measure.column}", measure.type, measure.column)


def _units(measure: _Measure, kind: str) -> str:
    return f"CAST({quoted(measure.parts[kind])} * {10 ** _scale(measure)}BD AS {_UNITS})"


def _scale(measure: _Measure) -> int:
    return measure.type.scale if isinstance(measure.type, DecimalType) else 0
