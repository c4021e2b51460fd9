"""Define the result of ``rehearse``, and its report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from decoder.keyed_state import StateKind, read_keyed_states
from migrate.extensions.stateful_query.rehearsal.checkpoints import CheckpointPair
from migrate.extensions.stateful_query.rehearsal.coverage import (
    Coverage,
    NotCompared,
    Notes,
    verdict,
)
from migrate.extensions.stateful_query.rehearsal.kafka_range import KafkaStream, unread_topics
from migrate.extensions.stateful_query.rehearsal.patterns import (
    describe_differences,
    describe_hours,
    differences_by_group,
    records_by_hour,
    time_column,
)
from migrate.extensions.stateful_query.state_proof import StateProof
from migrate.extensions.stateful_query.transfer.filled_state import Rows, state_rows_of
from migrate.extensions.stateful_query.transfer.proof import (
    Comparison,
    describe_keys,
    first_differences,
)
from migrate.model.column_types import quoted
from migrate.model.wording import counted, join_some
from migrate.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_MOST_STATES = 5
_MOST_KEYS = 10
_MOST_RECORDS = 100
# The columns of Spark's Kafka source that identify the Kafka record from which an event was parsed.
_RECORD_COLUMNS = ("topic", "partition", "offset")
_WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result of a rehearsal; ``str`` returns its report.

    In this description, ``output`` is the argument of ``rehearse`` with the rows that Flink wrote.

    Attributes:
        proof: the comparison of the Spark state with the state in the later checkpoint. For a query
            without state, the comparison of the query's rows with ``output``. All numbers are 0 if
            nothing was compared.
        start_proof: the comparison of the Spark state with the state in the earlier checkpoint,
            before any record was read; None for a query without state.
        records: the number of records that Spark read, which are all between the checkpoints.
        wrong: a DataFrame with a row for each differing key. The columns ``key``, ``flink``, and
            ``spark`` are structs. ``flink`` or ``spark`` is null if the key is missing on that
            side. For a query without state, each key is a row of the output, and the values are the
            numbers of times that Flink and Spark wrote the row.
        warnings: the warnings about the result.
        written: the number of rows that the query wrote; None if the rows were not kept.
        output_proof: the comparison of a stateful query's rows with ``output``; None for a query
            without state, or without ``output``.
        compared: the number of compared keys, whether or not they match. If ``output`` was
            compared, its rows are also counted.
        not_compared: groups of keys that were not compared. Each group has a reason and, if the
            keys can be counted, their number.
        changed: the number of compared keys that Flink added or whose value Flink changed between
            the checkpoints; None for a query without state.
        is_right: False if a difference proves the query wrong. Otherwise, None if there is no
            verdict, because the compared fraction of the keys is less than ``min_compared``, or
            because a check has no result (``undetermined``). True in all other cases.
        undetermined: the checks without a result.
        wrong_output: the differing rows in ``output_proof``, in the format of ``wrong``; None if
            ``output_proof`` is None.
        lines: the lines of the report.
    """

    proof: StateProof
    start_proof: StateProof | None
    records: int
    wrong: DataFrame
    warnings: tuple[str, ...]
    written: int | None
    output_proof: StateProof | None
    wrong_output: DataFrame | None
    compared: int
    not_compared: tuple[NotCompared, ...]
    changed: int | None
    undetermined: tuple[str, ...]
    is_right: bool | None
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def make_rehearsal(
    pair: CheckpointPair,
    streams: Sequence[KafkaStream],
    events: Sequence[DataFrame],
    start: StateProof | None,
    state: Comparison | None,
    output: Comparison | None,
    written: int | None,
    time: str | None,
    notes: Notes,
    min_compared: float,
    doubt: str | None,
) -> Rehearsal:
    """Create the result and its report.

    Args:
        pair: the checkpoints.
        streams: the streams; Spark must have read their events.
        events: for each stream, a DataFrame with the parsed records and, for a query with state,
            the rows that were created from the state.
        start: the comparison of the states before the query reads any record; None for a query
            without state.
        state: the comparison of the states after the query has read all records; None for a query
            without state.
        output: the comparison of the query's output with Flink's output; None if the user did not
            pass Flink's output.
        written: the number of rows that the query wrote; None if the rows were not kept.
        time: the events' event-time column, or None if unknown.
        notes: the warnings of the comparisons, and the keys that were not compared.
        min_compared: as in ``rehearse``.
        doubt: the reason why a correct query may have this difference in its output (see
            ``doubt_of_output``); None if there is no difference, or no such reason.
    """
    counts = [stream.count() for stream in streams]
    records = sum(count for count, _ in counts)
    gaps = chain.from_iterable(warnings for _, warnings in counts)
    warnings = (*pair.warnings, *unread_topics(pair, streams), *gaps, *notes.warnings)
    lines = [
        f"{pair.earlier} to {pair.later}: {counted(records, 'record')} of "
        f"{counted(len(pair.ranges), 'partition')}"
    ]
    if written is not None:
        lines.append(f"the query wrote {counted(written, 'row')}")
    title, main, extra = ("output", output, None) if state is None else ("state", state, output)
    wrong, wrong_lines = _differences(title, main, events, time)
    wrong_output, output_lines = _differences("output", extra, events, None)
    lines += [*wrong_lines, *output_lines, *(f"warning: {warning}" for warning in warnings)]
    not_compared = list(notes.not_compared)
    if output is None:
        number = written if state is None else None
        not_compared.append(
            NotCompared(
                number,
                "the rows that the query wrote, because Flink's rows (output) were not passed",
            )
        )
    proofs = [comparison.proof for comparison in (state, output) if comparison is not None]
    coverage = Coverage(
        sum(
            proof.right + proof.wrong + proof.missing + (proof.unexpected or 0) for proof in proofs
        ),
        tuple(not_compared),
        min_compared,
        notes.changed,
    )
    judged = [state, output if doubt is None else None]
    are_right = [comparison.proof.is_right for comparison in judged if comparison is not None]
    if start is not None:
        are_right.append(start.is_right)
    undetermined = (*notes.undetermined, *([] if doubt is None else [doubt]))
    return Rehearsal(
        StateProof(0, 0, 0, 0) if main is None else main.proof,
        start,
        records,
        wrong,
        warnings,
        written,
        None if extra is None else extra.proof,
        None if extra is None else wrong_output,
        coverage.compared,
        coverage.not_compared,
        coverage.changed,
        undetermined,
        verdict(are_right, coverage, undetermined),
        (*coverage.lines(), *(f"undetermined: {reason}" for reason in undetermined), *lines),
    )


def _differences(
    title: str, comparison: Comparison | None, events: Sequence[DataFrame], time: str | None
) -> tuple[DataFrame, list[str]]:
    """Return a DataFrame of the differing keys, and lines for the report.

    The DataFrame can still be read after the scratch folder is removed.
    """
    if comparison is None:
        schema = "key STRUCT<>, flink STRUCT<>, spark STRUCT<>"
        return events[0].sparkSession.createDataFrame([], schema), []
    lines = [f"{title}: {comparison.proof}"]
    differences = comparison.differences
    if comparison.proof.is_right:
        wrong = differences.sparkSession.createDataFrame([], differences.schema)
    else:
        wrong = differences.localCheckpoint()
        lines += _describe_differences(wrong, events, time)
    return wrong.drop("verdict"), lines


def _describe_differences(
    differences: DataFrame, events: Sequence[DataFrame], time: str | None
) -> Iterator[str]:
    """Yield lines about the first differing keys, each with the key's records."""
    keys: list[str] = differences.schema["key"].dataType.names  # type: ignore[attr-defined]
    hours_of = time_column(events, time)
    if _WINDOW not in keys:
        time = None
    if groups := differences_by_group(differences):
        yield f"differences (Spark - Flink): {describe_differences(groups)}"
    number = F.row_number().over(Window.orderBy("rank", "key")).alias("number")
    first = (
        first_differences(differences, _MOST_KEYS)
        .select(number, "key", _count_difference(differences).alias("difference"))
        .localCheckpoint()
    )
    names = [key for key in keys if key != _WINDOW]
    records = _records_by_key(first, names, time, events)
    hours: dict[int, dict[int, int]] = {}
    many = [n for n, rows in (records or {}).items() if len(rows) == _MOST_RECORDS]
    if many and hours_of is not None:
        hours = _hours_by_key(first.where(F.col("number").isin(many)), names, hours_of, events)
    count_differences = {row["number"]: row["difference"] for row in first.collect()}
    for key_number, line in enumerate(describe_keys(differences, _MOST_KEYS), start=1):
        yield line
        if key_number in hours:
            by_hour = describe_hours(hours[key_number], count_differences[key_number])
            total = counted(sum(hours[key_number].values()), "record")
            yield f"  {total} by the hour of {hours_of} (UTC): {by_hour}"
        elif records is not None:
            yield f"  {_describe_records(records.get(key_number, []), time)}"
    if records is None:
        yield (
            "the records of these keys are not shown; to show them, keep the columns "
            f"{', '.join(_RECORD_COLUMNS)} and the columns of the key in the function stream"
        )


def _count_difference(differences: DataFrame) -> Column:
    """Return Spark's count of a key minus Flink's count; null if the state has no count."""
    fields = differences.schema["flink"].dataType
    assert isinstance(fields, StructType)
    if "count" not in fields.names or not isinstance(fields["count"].dataType, LongType):
        return F.lit(None).cast("bigint")
    spark, flink = (F.coalesce(F.col(f"{side}.count"), F.lit(0)) for side in ("spark", "flink"))
    return spark - flink


def _hours_by_key(
    first: DataFrame, keys: Sequence[str], time: str, events: Sequence[DataFrame]
) -> dict[int, dict[int, int]]:
    """Count each key's records in each hour of the day."""
    by_key: dict[int, dict[int, int]] = {}
    for frame in events:
        if {*_RECORD_COLUMNS, *keys, time} <= set(frame.columns):
            records = _records_of(first, keys, frame).select("`key number`", quoted(time))
            by_key |= records_by_hour(records, "key number", time)
    return by_key


def _records_of(first: DataFrame, keys: Sequence[str], frame: DataFrame) -> DataFrame:
    """Join the keys in ``first`` with their records; add ``key number`` and ``wrong key``."""
    same = frame["offset"].isNotNull()  # null in rows that were created from state
    for name in keys:
        same &= frame[quoted(name)].eqNullSafe(F.col(f"`wrong key`.{quoted(name)}"))
    # The names contain a space, because events are unlikely to have columns with such names.
    numbered = first.select(F.col("number").alias("key number"), F.col("key").alias("wrong key"))
    return frame.join(F.broadcast(numbered), same)


def _records_by_key(
    first: DataFrame, keys: Sequence[str], time: str | None, events: Sequence[DataFrame]
) -> dict[int, list[Row]] | None:
    """Return the first records of each key, in a dictionary by the key's number.

    If the key has a window, the records in the window come first. Return None if the key is only a
    window. Also return None if no stream has both the columns that identify a record and the
    columns of the key.
    """
    by_key: dict[int, list[Row]] = defaultdict(list)
    searched = False
    for frame in events:
        if not keys or not {*_RECORD_COLUMNS, *keys} <= set(frame.columns):
            continue
        searched = True
        inside = F.lit(True)
        if time is not None and time in frame.columns:
            at = frame[quoted(time)]
            window = f"`wrong key`.{_WINDOW}"
            inside = (at >= F.col(f"{window}.start")) & (at < F.col(f"{window}.end"))
        matching = _records_of(first, keys, frame).select(
            F.col("key number").alias("number"), inside.alias("inside"), *_RECORD_COLUMNS
        )
        order = Window.partitionBy("number").orderBy(F.desc("inside"), *_RECORD_COLUMNS)
        ranked = matching.select("*", F.row_number().over(order).alias("rank"))
        for row in ranked.where(F.col("rank") <= _MOST_RECORDS).collect():
            by_key[row["number"]].append(row)
    return by_key if searched else None


def _describe_records(records: Sequence[Row], time: str | None) -> str:
    inside = [row for row in records if row["inside"]]
    if not records:
        return "no record between the checkpoints was parsed with this key"
    shown = inside or records
    label = "records" if inside or time is None else "no record in the window; records of the key"
    ordered = sorted((row["topic"], row["partition"], row["offset"]) for row in shown)
    partitions = [
        f"{topic}-{partition} at {', '.join(str(offset) for _, _, offset in group)}"
        for (topic, partition), group in groupby(ordered, lambda record: record[:2])
    ]
    more = f" (the first {_MOST_RECORDS})" if len(records) == _MOST_RECORDS else ""
    return f"{label}: {join_some(partitions, _MOST_RECORDS, '; ')}{more}"


def other_states(checkpoint: str, rows: Rows) -> Iterator[NotCompared]:
    """Yield a note that lists the job's keyed states that produce no rows.

    Timers are not listed. Yield nothing if no other state exists, or if the origin of all rows is
    unknown.
    """
    read = {
        (stream.origin.operator_id, stream.origin.state)
        for stream in state_rows_of(rows)
        if stream.origin is not None
    }
    names = [
        f"{state.uid or state.operator_name or state.operator_id}/{state.name}"
        for state in read_keyed_states(checkpoint, Files()).states
        if state.kind is not StateKind.TIMERS and (state.operator_id, state.name) not in read
    ]
    if names and read:
        yield NotCompared(None, f"other states of the job: {join_some(names, _MOST_STATES)}")
