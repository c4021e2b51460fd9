"""Run a Spark query over the records between two checkpoints of a Flink job.

The query's streams read files instead of Kafka. The first files contain the rows that produce the
state of the earlier checkpoint, as in ``prime``. The next files contain the records between the
checkpoints, which Spark has copied from Kafka. The query reads these records in one batch. Its
state is then compared with the state in the later checkpoint, key by key. ``rehearse`` writes only
to a scratch folder.

    def query(orders):
        return orders.groupBy("user").agg(F.count("*").alias("orders"))

    def rows(checkpoint):
        state = read_keyed_state(spark, checkpoint, operator="orders", state="count")
        return [aggregate_rows(state, "user BIGINT", keys={"user": "key"}, count="value")]

    rehearse(
        query, rows, earlier="…/chk-41", later="…/chk-42", stream=parsed, kafka=options,
        output_mode="update",
    )
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.errors import PySparkException

from migrate.extensions.stateful_query.catalog import (
    NO_WATERMARK,
    RECORDS_DELETED,
    ROWS_REQUIRED,
    SPARK_FAILED_TO_REHEARSE,
    WRONG_FROM_THE_START,
)
from migrate.extensions.stateful_query.primed_log import next_watermark, write_watermark
from migrate.extensions.stateful_query.rehearsal.checkpoints import read_pair
from migrate.extensions.stateful_query.rehearsal.compare import (
    FlinkState,
    compare_output,
    compare_state,
    doubt_of_output,
    end_of_first_kept,
)
from migrate.extensions.stateful_query.rehearsal.coverage import NotCompared, Notes
from migrate.extensions.stateful_query.rehearsal.expiry import StateTimeToLive
from migrate.extensions.stateful_query.rehearsal.kafka_range import Parse, stream_of
from migrate.extensions.stateful_query.rehearsal.lateness import (
    LateRecords,
    WindowGrid,
    grid_of,
    late_records,
)
from migrate.extensions.stateful_query.rehearsal.magnitude import with_magnitudes
from migrate.extensions.stateful_query.rehearsal.report import (
    Rehearsal,
    make_rehearsal,
    other_states,
)
from migrate.extensions.stateful_query.state_proof import StateProof
from migrate.extensions.stateful_query.transfer.filled_state import (
    EventTime,
    FileQuery,
    Query,
    Rows,
    Sink,
    check_rows,
    fill_state,
    frames_of,
    state_rows_of,
)
from migrate.extensions.stateful_query.transfer.flat_state import DEDUPLICATE
from migrate.extensions.stateful_query.transfer.hop_rounding import with_hop_rounding
from migrate.extensions.stateful_query.transfer.proof import Comparison, compare_with_expected
from migrate.extensions.stateful_query.transfer.rounding import Rounding
from migrate.extensions.stateful_query.transfer.rows import StateRows, select_columns
from migrate.extensions.stateful_query.transfer.spark_state import read_spark_state
from migrate.extensions.stateful_query.transfer.watermark import priming_warnings
from migrate.inputs.flink.choose_source import Choice
from migrate.inputs.offsets_json import NextOffsets
from migrate.model.catalog import SPARK_FAILED
from migrate.model.column_types import quoted
from migrate.model.errors import Refused, ServiceError, UsageError
from migrate.model.log import timed
from migrate.model.progress import progress_lines
from migrate.model.warning import WarningText
from migrate.model.wording import counted
from migrate.spark.session import current_session, failure_of, spark_errors
from migrate.storage.uris import AnyPath, local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Errors of Spark's Kafka source about lost records contain one of these strings. The first is from
# Spark 3, and the second from Spark 4.
_DATA_LOSS = ("may have been lost", "KAFKA_DATA_LOSS")

RowsOf = Callable[[str], Rows]
ExpectedOf = Callable[[str], "DataFrame"]


@progress_lines()
def rehearse(
    query: Query,
    rows: RowsOf | None,
    *,
    earlier: AnyPath,
    later: AnyPath,
    stream: Parse | Sequence[Parse],
    kafka: Mapping[str, str] | Sequence[Mapping[str, str]],
    output_mode: str = "append",
    watermark_ms: int | None = None,
    source: str | None = None,
    cluster: str | None = None,
    expected: ExpectedOf | None = None,
    output: DataFrame | None = None,
    scratch: AnyPath | None = None,
    min_compared: float = 0.1,
    float_error: float | None = None,
) -> Rehearsal:
    """Run a query over the records between two checkpoints, and compare its state with Flink's.

    The result is also printed.

    Args:
        query: a function that takes the events of each stream, as in ``prime``.
        rows: a function that takes a checkpoint path and returns the list of rows for ``prime``;
            None for a query without state.
        earlier: the checkpoint or savepoint with the query's initial state.
        later: a later checkpoint or savepoint of the same job.
        stream: a function that parses the DataFrame of Spark's Kafka source into events; for
            several streams, a list. If the events have the columns topic, partition, and offset,
            the report shows the records of differing keys.
        kafka: the options of Spark's Kafka source; for several streams, a list. Offsets in the
            options are ignored.
        output_mode: the query's output mode.
        watermark_ms: as in ``prime``, Flink's watermark at the earlier checkpoint.
        source: the job's Kafka source, as in ``--source``.
        cluster: the Kafka cluster, as in ``--cluster``.
        expected: a function that takes a checkpoint path and returns a DataFrame, the argument
            ``expected`` of ``prime``. This function is required only if the expected Spark state
            cannot be computed from the rows. For a state with a TTL, the last column of the
            DataFrame can be ``last_access``, in epoch milliseconds. Without this column, the
            expired keys cannot be determined.
        output: the rows that Flink wrote between the checkpoints, in any order. ``rehearse``
            compares these rows with the query's output. A difference is an error only if the output
            mode is ``append`` and late records do not explain the difference.
        scratch: a folder on a disk that Spark's executors share. ``rehearse`` creates the folder if
            it does not exist. If Spark runs locally, the default is the system's folder for
            temporary files. Otherwise, there is no default.

        min_compared: the fraction of the keys that must be compared, from 0 to 1. If fewer are
            compared, the rehearsal gives no verdict on the query.
        float_error: the allowed difference between floating-point sums, relative to the sum of the
            absolute values. By default, the difference is computed from the number of records,
            because each record contributes at most one addition to a sum.

    Raises:
        Refused: the checkpoints are from two jobs, or in the wrong order; there are no records
            between them; a position was rewound or is unknown; the state contains in-flight
            records; the TTL of a state is missing; the query cannot be primed; or Spark failed.
        UsageError: the arguments cannot be combined.
        DecodeError: a checkpoint cannot be read.
        ServiceError: Spark or Kafka did not answer.
    """
    parsers = [stream] if callable(stream) else list(stream)
    options = [kafka] if isinstance(kafka, Mapping) else list(kafka)
    if len(parsers) != len(options):
        raise UsageError(
            f"`stream` contains {counted(len(parsers), 'function')}, but `kafka` contains the "
            f"options "
            f"of {counted(len(options), 'stream')}; pass a function and options for each stream"
        )
    if rows is None and not (watermark_ms is None and expected is None):
        raise UsageError(
            "`watermark_ms` and `expected` require a query with state, but `rows` is None; pass "
            "`rows`, or "
            "omit `watermark_ms` and `expected`"
        )
    if not 0 <= min_compared <= 1:
        raise UsageError(f"`min_compared` is {min_compared}; pass a fraction from 0 to 1")
    if float_error is not None and not 0 <= float_error < 1:
        raise UsageError(
            f"`float_error` is {float_error}; pass a relative error of at least 0 and less than 1"
        )
    pair = read_pair(earlier, later, Choice(source=source, cluster=cluster))
    streams = [stream_of(pair, stream_options) for stream_options in options]
    spark = current_session()
    notes = Notes()
    with _work_folder(spark, scratch) as work, _translate_errors():
        for kafka_stream, parser in zip(streams, parsers, strict=True):
            kafka_stream.parse(spark, parser)
        events = [kafka_stream.events for kafka_stream in streams]
        files = FileQuery(query, work / "query", work / "streams", output_mode)
        output_files = work / "output" if rows is None or output is not None else None
        rounding = Rounding(sum(range_.offsets for range_ in pair.ranges.values()), float_error)
        start_proof = comparison = time_column = ran = None
        if rows is None:
            files.run(events, sink=_writer(output_files), empty_batch=True)
            if (files.location / "state").exists():
                raise Refused(ROWS_REQUIRED())
        else:
            states = list[FlinkState]()
            for path, positions, name in (
                (pair.earlier, pair.starts, "earlier"),
                (pair.later, pair.ends, "later"),
            ):
                with timed(f"reading Flink's state in the {name} checkpoint"):
                    state = _load_state(rows, expected, path, positions, events, work / name)
                states.append(state)
            first, last = states
            ran = _run_stateful(
                files, first, last, events, watermark_ms, output_files, rounding, notes
            )
            start_proof, comparison = ran.start, ran.comparison
            notes.not_compared.extend(other_states(pair.later, last.rows))
            times = {stream.time for stream in state_rows_of(last.rows)} - {None}
            time_column = times.pop() if len(times) == 1 else None
        written = None if output_files is None else spark.read.parquet(str(output_files))
        output_comparison = doubt = None
        if written is not None and output is not None:
            all_fields = replace(rounding, all_fields=True)
            output_comparison = compare_output(written, output, all_fields)
            if ran is not None:
                keys = None
                if ran.keys and set(ran.keys) <= set(written.columns):
                    columns = [quoted(name) for name in ran.keys]
                    keys = compare_output(
                        written.select(*columns), output.select(*columns), all_fields
                    )
                doubt = doubt_of_output(
                    output_comparison,
                    output_mode,
                    keys,
                    ran.late,
                    ran.windows,
                    fires_windows=ran.fires_windows,
                )
        with timed("writing the report"):
            result = make_rehearsal(
                pair,
                streams,
                [
                    spark.read.schema(frame.schema).parquet(str(files.files / str(stream_number)))
                    for stream_number, frame in enumerate(events)
                ],
                start_proof,
                comparison,
                output_comparison,
                None if written is None else written.count(),
                time_column,
                notes,
                min_compared,
                doubt,
            )
    print(result)
    return result


class _Ran(NamedTuple):
    """The results of a query that started with the state of the earlier checkpoint.

    Attributes:
        start: the comparison of the states before the query reads any record.
        comparison: the comparison of the states after the query has read all records.
        keys: the key columns of a deduplication; empty for other queries.
        windows: the query's windows; None if unknown.
        late: the late records; None if unknown.
        fires_windows: True if the query has windows and a watermark.
    """

    start: StateProof
    comparison: Comparison
    keys: Sequence[str]
    windows: WindowGrid | None
    late: LateRecords | None
    fires_windows: bool


def _load_state(
    rows: RowsOf,
    expected: ExpectedOf | None,
    checkpoint: str,
    positions: NextOffsets,
    events: Sequence[DataFrame],
    folder: Path,
) -> FlinkState:
    """Read the state of a checkpoint.

    The state is saved, because a running job may soon delete the checkpoint.
    """
    state_rows = list(rows(checkpoint))
    if len(state_rows) != len(events):
        raise UsageError(
            f"the function `rows` returns the rows of {counted(len(state_rows), 'stream')}, but "
            f"`stream` contains {counted(len(events), 'function')}; return rows for each stream"
        )
    check_rows(state_rows, [positions])
    given = None if expected is None else expected(checkpoint)
    time_to_live = StateTimeToLive.of(state_rows, given)
    for number, (stream, frame) in enumerate(zip(state_rows, events, strict=True)):
        complete = _with_columns(frames_of([stream])[0], frame)
        if isinstance(stream, StateRows):
            saved = _save(stream.expected, folder / str(number))
            state_rows[number] = replace(stream, rows=complete, expected=saved)
        else:
            state_rows[number] = complete
    if given is not None:
        given = _save(given, folder / "expected")
    return FlinkState(state_rows, given, time_to_live)


def _with_columns(rows: DataFrame, events: DataFrame) -> DataFrame:
    """Return the rows with the columns of the events; columns missing from the rows are null."""
    types = {field.name: field.dataType.simpleString() for field in events.schema.fields}
    for field in rows.schema.fields:
        if types.get(field.name) != field.dataType.simpleString():
            raise UsageError(
                f"column {field.name}: its type is {field.dataType.simpleString()} in `rows`, but "
                f"{types.get(field.name, 'missing')} in `stream`; pass the stream's schema to "
                "aggregate_rows"
            )
    return select_columns(rows, events.schema, dict(zip(rows.columns, rows.columns, strict=True)))


def _save(frame: DataFrame, folder: Path) -> DataFrame:
    """Write a DataFrame to files, and return a DataFrame that reads these files."""
    numbered = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
    numbered.write.parquet(str(folder))
    saved = frame.sparkSession.read.schema(numbered.schema).parquet(str(folder))
    return saved.toDF(*frame.columns)


def _run_stateful(
    files: FileQuery,
    earlier: FlinkState,
    later: FlinkState,
    events: Sequence[DataFrame],
    watermark_ms: int | None,
    output_files: Path | None,
    rounding: Rounding,
    notes: Notes,
) -> _Ran:
    """Run a query that starts with the state of the earlier checkpoint."""
    spark, location, work = events[0].sparkSession, files.location, files.files.parent
    with timed("running the query over the earlier state"):
        batch, has_watermark = fill_state(
            files, earlier.rows, watermark_ms, may_lack_watermark=True
        )
        state = read_spark_state(spark, location, batch - 1, work / "state of earlier")
        state, hop_rounding = with_hop_rounding(state)
        start = compare_with_expected(state, earlier.rows, earlier.expected, hop_rounding)
    if not start.proof.is_right:
        examples = "; ".join(start.proof.examples)
        wrong = WRONG_FROM_THE_START(proof=str(start.proof), examples=examples)
        notes.warnings.append(WarningText(wrong))
    if watermark_ms is not None and not has_watermark:
        notes.warnings.append(WarningText(NO_WATERMARK()))
    known_watermark = watermark_ms if has_watermark else None
    notes.warnings.extend(priming_warnings(state_rows_of(earlier.rows), known_watermark))
    with timed("running the query over the records"):
        times = files.run(events, sink=_writer(output_files))
        own_watermark = next_watermark(location, batch) if has_watermark else None
    with timed("comparing the states"):
        state = read_spark_state(spark, location, batch, work / "state of later")
        state = with_magnitudes(state, state_rows_of(later.rows), events)
        appends = files.output_mode.lower() == "append"
        comparison = compare_state(
            state,
            later,
            earlier,
            start.flink,
            own_watermark,
            rounding,
            notes,
            keeps_windows=files.output_mode.lower() == "complete",
            output_is_given=output_files is not None,
            output_shows_fired=output_files is not None and appends,
        )
    keys = [field.name for field in state.keys] if state.operator == DEDUPLICATE else []
    if keys and output_files is None and any(s.stores_records for s in state_rows_of(later.rows)):
        notes.undetermined.append(
            "the records that the query keeps for each key, because its state contains only "
            "the keys; pass the argument output to compare the records"
        )
    if own_watermark is None:
        return _Ran(start.proof, comparison, keys, None, None, fires_windows=False)
    if output_files is not None and appends:
        # Write only windows that Flink has also fired: windows that end before every window that
        # Flink still stores.
        kept = None
        if state.has_window:
            kept = end_of_first_kept(state, later.rows, later.expected)
        until = own_watermark if kept is None else min(own_watermark, kept - 1)
        with timed("writing the windows that have fired"):
            write_watermark(location, batch, until)
            files.run([frame.limit(0) for frame in events], sink=_writer(output_files))
    windows, late = _late_records(files, later.rows, events, times, own_watermark, watermark_ms)
    if late is None:
        notes.not_compared.append(
            NotCompared(
                None,
                "late records, because the rehearsal reads all records in one batch, and the query "
                "drops a record only because of an earlier batch's watermark",
            )
        )
    elif late.number:
        notes.warnings.append(WarningText(late.message()))
        notes.undetermined.append("the late records that smaller batches would drop")
    return _Ran(start.proof, comparison, keys, windows, late, state.has_window)


def _late_records(
    files: FileQuery,
    rows: Rows,
    events: Sequence[DataFrame],
    times: EventTime | None,
    own_watermark: int,
    watermark_ms: int | None,
) -> tuple[WindowGrid | None, LateRecords | None]:
    """Return the query's windows, and the records that would be late in smaller batches.

    The order of records is known only within a partition, so the late records can be determined
    only if the query has a single stream. Otherwise, return None for both.
    """
    streams = state_rows_of(rows)
    if len(events) != 1 or len(streams) != 1 or times is None or times.last_ms is None:
        return None, None
    (stream,) = streams
    grid, time = grid_of(stream), stream.time
    if grid is None or time is None:
        return None, None
    records = events[0].sparkSession.read.schema(events[0].schema)
    late = late_records(
        records.parquet(str(files.files / "0")),
        time,
        grid,
        times.last_ms - own_watermark,
        watermark_ms or 0,
    )
    return grid, late


def _writer(folder: Path | None) -> Sink | None:
    """Return a sink that writes the query's output to files."""
    if folder is None:
        return None
    return lambda frame, _: frame.write.mode("append").parquet(str(folder))


@contextmanager
def _work_folder(spark: SparkSession, scratch: AnyPath | None) -> Iterator[Path]:
    """Yield a new folder that the executors share, and remove it afterward."""
    if scratch is None and not str(spark.conf.get("spark.master")).startswith("local"):
        raise UsageError(
            "the executors run on other machines, so they cannot use a local temporary folder; "
            "pass a folder on a shared disk as `scratch`"
        )
    if scratch is not None:
        scratch = local_path(os.fspath(scratch)).absolute()
        scratch.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="rehearsal-", dir=scratch))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except spark_errors() as error:
        reason = failure_of(error)
        if any(sign in str(error) for sign in _DATA_LOSS):
            raise Refused(RECORDS_DELETED(failure=reason)) from error
        if isinstance(error, PySparkException):
            raise Refused(SPARK_FAILED_TO_REHEARSE(failure=reason)) from error
        raise ServiceError(SPARK_FAILED(failure=reason)) from error
