"""Create a checkpoint location from which a stateful query resumes where Flink stopped.

The user's query runs one batch over rows that make its state equal to the Flink state. For hopping
windows, an empty batch runs first, so that Spark drops the rows of windows that Flink has fired.
The query reads the rows from files instead of from Kafka, and writes to a ``noop`` sink. ``prime``
then replaces the file sources in the checkpoint location with Kafka sources at Flink's positions
(``stateful_query.primed_log``). A query that starts from this location continues with the next
batch, the first from Kafka.

    def query(orders):                       # the function that you later apply to the Kafka stream
        return orders.groupBy("user").agg(F.count("*").alias("orders"))

    rows = aggregate_rows(state, "user BIGINT", keys={"user": "key"}, count="value")
    prime(
        query,
        [rows],
        positions=to_spark(SAVEPOINT, bootstrap_servers=B).starting_offsets,
        checkpoint_location="/checkpoints/orders",
        output_mode="update",
    )
    query(parsed(kafka)).writeStream.outputMode("update").option(
        "checkpointLocation", "/checkpoints/orders"
    )…

Before ``prime`` creates the location, it compares the Spark state with the Flink state, key by key.
If the states differ, ``prime`` does not create the location.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from migrate.extensions.stateful_query.catalog import (
    NO_KEY_IN_ROWS,
    SOURCE_WITHOUT_ROWS,
    SPARK_FAILED_TO_PRIME,
    STREAM_NOT_READ,
    UNFINISHED_RUN,
)
from migrate.extensions.stateful_query.primed_log import (
    replace_with_kafka,
    source_directory,
    source_names,
)
from migrate.extensions.stateful_query.state_proof import StateProof
from migrate.extensions.stateful_query.transfer.filled_state import (
    FileQuery,
    Query,
    check_rows,
    fill_state,
    frames_of,
    state_rows_of,
)
from migrate.extensions.stateful_query.transfer.hop_rounding import with_hop_rounding
from migrate.extensions.stateful_query.transfer.proof import compare_with_expected
from migrate.extensions.stateful_query.transfer.rows import StateRows
from migrate.extensions.stateful_query.transfer.spark_state import read_spark_state
from migrate.extensions.stateful_query.transfer.watermark import priming_warnings, window_hint
from migrate.inputs.before_move import check_before_write, check_job
from migrate.inputs.flink.extract import read
from migrate.inputs.offsets_json import NextOffsets, NotOffsets, parse_json, topic_offsets
from migrate.model.errors import Refused, UsageError
from migrate.model.finding import Code
from migrate.model.log import timed
from migrate.model.message import MessageTemplate
from migrate.model.progress import progress_lines
from migrate.model.warning import WarningText, record_warnings
from migrate.model.wording import counted
from migrate.spark.session import failure_of
from migrate.storage.new_file import find_unfinished, new_directory
from migrate.targets.location import LocalDirectory, location
from migrate.targets.seed import check_free

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Positions = str | NextOffsets | Sequence[str | NextOffsets]


@dataclass(frozen=True, slots=True)
class Primed:
    """A checkpoint location from which a query resumes.

    Attributes:
        checkpoint_location: the location, as the query must pass it in ``checkpointLocation``.
        positions: for each Kafka source, the offsets from which it resumes. The sources are in the
            order of the query's plan.
        proof: the comparison of the Spark state with the Flink state.
        pinned: the settings that Spark takes from the checkpoint location, such as the number of
            shuffle partitions and the state store. Later sessions cannot change these settings.
        warnings: the warnings about the primed query.
    """

    checkpoint_location: str
    positions: tuple[NextOffsets, ...]
    proof: StateProof
    pinned: Mapping[str, str]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        warnings = (f"warning: {warning}" for warning in self.warnings)
        return "\n".join([f"{self.checkpoint_location}: {self.proof}", *warnings])


@progress_lines()
def prime(
    query: Query,
    rows: Sequence[StateRows | DataFrame],
    *,
    positions: Positions,
    checkpoint_location: str,
    output_mode: str = "append",
    watermark_ms: int | None = None,
    expected: DataFrame | None = None,
    names: Sequence[str] = (),
    flink_rest: str | None = None,
    allow_ran_on: bool = False,
) -> Primed:
    """Create a checkpoint location that contains the Flink state and positions.

    The result, with its warnings, is also printed. Every ten seconds, a message on stderr shows the
    progress.

    Args:
        query: a function that takes one DataFrame for each of ``rows``, in the same order, and
            returns the query's output. Later, you call it with the Kafka streams.
        rows: for each stream, the rows from which the query computes Flink's values, in the schema
            of the stream. ``aggregate_rows`` and ``seen_rows`` create these rows from the Flink
            state.
        positions: the offsets from which each stream resumes in Kafka, in the order of ``rows``.
            Pass ``startingOffsets`` as ``to_spark`` returns it, with one line for each stream, or
            mappings from topic and partition to the next offset. The positions and the rows must
            come from the same savepoint.
        checkpoint_location: a new or empty directory, on a disk that Spark's executors share.
        output_mode: the query's output mode.
        watermark_ms: Flink's watermark, in epoch milliseconds, for a query with a watermark. A
            savepoint does not contain Flink's watermark. If the value is too low, a late record
            reopens a window that Flink has fired. If the value is too high, Spark drops records
            that Flink would have accepted.
        expected: the expected Spark state, if it cannot be computed from the rows. The columns of
            the state's key come first, and the columns of the state's value follow.
        names: the names of the Kafka streams, in the order of ``rows``, if the streams have names
            (``readStream.name(…)`` in Spark 4.2, with
            ``spark.sql.streaming.queryEvolution.enableSourceEvolution``).
        flink_rest: the address of the Flink JobManager. Its answer shows whether the job of the
            rows' savepoint is running or was restarted.
        allow_ran_on: True to prime even if the job has output beyond the savepoint. This output
            will be duplicated. By default, ``prime`` also waits for a newer checkpoint if the rows
            come from a retained checkpoint (see ``check_before_write``). If the savepoint is more
            than a day old, and Flink does not show whether the job was restarted, the result has a
            warning; ``migrate prime --checkpoint-dir`` refuses such a savepoint. Rows that you
            create yourself do not refer to a savepoint, so no job is judged for them.

    Raises:
        Refused: the savepoint's job is running or has output beyond the savepoint, and
            ``allow_ran_on`` is false; the Spark state differs from the Flink state; the state would
            be empty, and ``expected`` is missing; the query cannot be primed; the positions do not
            come from the rows' savepoint; your own rows come from a state with a TTL (see
            ``unexpired``); or the directory is not empty, or is inside one of Flink's folders.
        UsageError: the arguments cannot be combined, or the location is not on a disk.
        DecodeError: the rows' savepoint cannot be read.
        FlinkRestError: Flink did not answer, or it denied the request.
        InputError: Spark has written logs of an unknown version.
        OSError: the directory cannot be written.
    """
    if not rows:
        raise UsageError("`rows` is empty; pass the rows for each stream of the query")
    starts = _positions(positions, len(rows))
    if names and len(names) != len(rows):
        raise UsageError(
            f"`names` contains {counted(len(names), 'name')}, but `rows` has "
            f"{counted(len(rows), 'stream')}; pass a name for each stream"
        )
    target = _target(checkpoint_location)
    check_rows(rows, starts)
    with record_warnings() as job_warnings:
        _check_jobs(state_rows_of(rows), flink_rest, allow_ran_on=allow_ran_on)
    unfinished = [
        WarningText(UNFINISHED_RUN(path=path, target=target.name))
        for path in find_unfinished(target.path)
    ]
    parent = target.path.parent
    parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.path.name}.rows.", dir=parent))
    try:
        with new_directory(target.path, target.name) as stage:
            with timed("running the query over Flink's state"):
                file_query = FileQuery(query, stage, work, output_mode, names)
                batches, _ = fill_state(file_query, rows, watermark_ms)
            ordered = [starts[stream] for stream in _stream_numbers(stage, len(rows))]
            pinned = replace_with_kafka(stage, ordered, watermark_ms, batches)
            with timed("comparing Spark's state with Flink's"):
                spark = frames_of(rows)[0].sparkSession
                state = read_spark_state(spark, stage, batches - 1, work / "state")
                state, rounding = with_hop_rounding(state)
                proof = compare_with_expected(state, rows, expected, rounding).proof
            if not proof.is_right:
                raise Refused([*proof.problems(), *window_hint(proof, state_rows_of(rows))])
            if not proof.right and expected is None:
                raise Refused(NO_KEY_IN_ROWS())
    except PySparkException as error:
        raise Refused(SPARK_FAILED_TO_PRIME(failure=failure_of(error))) from error
    except OSError:
        check_free(target)  # refuses if another process has written to the location in the meantime
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    warnings = priming_warnings(state_rows_of(rows), watermark_ms, empty=not proof.right)
    all_warnings = (*job_warnings, *unfinished, *warnings)
    primed = Primed(target.for_spark, tuple(ordered), proof, pinned, all_warnings)
    print(primed)
    return primed


def _check_jobs(rows: Sequence[StateRows], flink_rest: str | None, *, allow_ran_on: bool) -> None:
    """Check that the jobs whose savepoints contain the rows allow a new checkpoint location.

    Raises:
        Refused, FlinkRestError, UsageError: as in ``check_job`` and ``check_before_write``.
        DecodeError: a savepoint cannot be read.
    """
    savepoints = {
        (state.origin.savepoint, state.origin.allow_external_files)
        for state in rows
        if state.origin is not None
    }
    for savepoint, allow_external_files in sorted(savepoints):
        extraction = read(savepoint, allow_external_files=allow_external_files)
        newer = [finding for finding in extraction.findings if finding.code is Code.RAN_ON]
        if newer and not allow_ran_on:
            template = MessageTemplate(Code.RAN_ON, "{finding}", Code.RAN_ON.policy.way_out)
            raise Refused([template(finding=finding.text).about(savepoint) for finding in newer])
        origin = extraction.origin
        judgment = check_job(origin, flink_rest, allow_ran_on=allow_ran_on, source_group=None)
        check_before_write(
            origin,
            judgment,
            allow_ran_on=allow_ran_on,
            source_group=None,
            refuses_old=False,
            flink_rest=flink_rest,
        )


def _positions(positions: Positions, streams: int) -> list[NextOffsets]:
    if isinstance(positions, str):
        positions = [line for line in positions.splitlines() if line.strip()]
    elif isinstance(positions, Mapping):
        positions = [positions]
    try:
        sources = [
            topic_offsets(parse_json(source)) if isinstance(source, str) else source
            for source in positions
        ]
    except NotOffsets as error:
        raise UsageError(f"`positions`: {error}") from error
    if len(sources) != streams:
        raise UsageError(
            f"`positions` contains the offsets of {counted(len(sources), 'source')}, but `rows` "
            f"has "
            f"{counted(streams, 'stream')}; pass the offsets of each stream"
        )
    for source in sources:
        bad = [f"{topic}-{number}" for (topic, number), offset in source.items() if offset < 0]
        if bad or not source:
            where = f"{bad[0]} has no offset" if bad else "a source has no partition"
            raise UsageError(
                f"`positions`: {where}; for each partition, pass the offset of the next record "
                "instead of earliest or latest"
            )
    return sources


def _target(checkpoint_location: str) -> LocalDirectory:
    target = location(checkpoint_location)
    if not isinstance(target, LocalDirectory) or target.mounted:
        raise UsageError(
            f"`checkpoint_location` {target.name} is not on a local disk, and only a local "
            f"directory "
            "can be primed; prime a directory on a disk that the executors share, and copy it to "
            "the object store before the query starts"
        )
    check_free(target)
    return target


def _stream_numbers(stage: Path, streams: int) -> list[int]:
    """Return, for each source in the query's plan, the index of the stream that it reads."""
    numbers: list[int] = []
    for source in source_names(stage):
        rows = source_directory(stage, source)
        if rows is None:
            raise Refused(SOURCE_WITHOUT_ROWS(source=source))
        numbers.append(int(rows))
    if unread := set(range(streams)) - set(numbers):
        raise Refused(STREAM_NOT_READ(stream=min(unread)))
    return numbers
