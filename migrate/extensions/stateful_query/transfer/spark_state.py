"""Read the state of a Spark query from its checkpoint location.

With Spark 4, the state data source reads the state. Spark 3.5 does not have this data source, so a
helper query starts on a copy of the checkpoint location. The helper query reads no records. In
output mode ``complete``, it emits its entire state, which is the state of the original query.

Spark can start the helper query because its state has the same layout as the original state. The
helper query groups by the parts of the key, and computes ``max`` for each part of the value. Spark
stores each ``max`` as one field, with the type of its column.

Source: the state data source (``statestore``, ``state-metadata``) @ Spark 4.0.0:
StateDataSource, StatePartitionReader. StateSchemaCompatibilityChecker, SchemaHelper.SchemaV2Reader
@ 3.5.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, NullType, StructField, StructType, TimestampType

from decoder.cursor import Cursor
from migrate.extensions.stateful_query.catalog import (
    JOIN_STATE,
    STATE_FILES_WITH_IDS,
    STATE_SCHEMA_VERSION_UNKNOWN,
)
from migrate.extensions.stateful_query.primed_log import commit_version, copy_to_read, setting_of
from migrate.extensions.stateful_query.transfer.flat_state import (
    AGGREGATE,
    DEDUPLICATE,
    DEDUPLICATE_WITHIN,
    LIMIT,
    NO_VALUE,
    SESSIONS,
    SparkState,
    flatten,
    is_window,
    only_operator,
)
from migrate.model.errors import Refused
from migrate.model.log import timed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

# Format 1 stores the key fields a second time, before the value fields (
# StreamingAggregationStateManagerImplV1 @ Spark 4.0.0).
_AGGREGATE_FORMAT = "spark.sql.streaming.aggregation.stateFormatVersion"
# The number of seconds between checks of a query's progress.
_POLL_SECONDS = 5
# This check is disabled for the helper query, because the fields of this query may be nullable even
# if the original fields are not.
_SCHEMA_CHECK = "spark.sql.streaming.stateStore.stateSchemaCheck"


def read_spark_state(spark: SparkSession, checkpoint: Path, batch: int, work: Path) -> SparkState:
    """Read the state that a query had after a batch.

    Args:
        spark: the session.
        checkpoint: the query's checkpoint location.
        batch: the number of the batch.
        work: for Spark 3.5, a temporary directory that the executors share. Do not remove the
            directory before the returned state has been used. With Spark 4, the argument is not
            used.

    Raises:
        Refused: the query does not have exactly one state store, or this Spark version cannot read
            the state store.
        InputError: the query's logs have an unknown version.
        OSError: with Spark 3.5, the location cannot be copied to ``work``.
    """
    if is_before_4(spark):
        return _read_by_query(spark, checkpoint, batch, work)
    if spark.version.startswith("4.0.") and commit_version(checkpoint, batch) != "v1":
        raise Refused(STATE_FILES_WITH_IDS(spark=spark.version))
    metadata = spark.read.format("state-metadata").load(str(checkpoint))
    operator = only_operator([row["operatorName"] for row in metadata.collect()])
    state = spark.read.format("statestore").option("batchId", batch).load(str(checkpoint))
    key, value = (state.schema[name].dataType for name in ("key", "value"))
    assert isinstance(key, StructType) and isinstance(value, StructType)
    numbered = state.select(_number_fields("key", key), _number_fields("value", value))
    return flatten(
        operator, numbered, key, value, key_in_value=_stores_key_twice(operator, checkpoint, batch)
    )


def _stores_key_twice(operator: str, checkpoint: Path, batch: int) -> bool:
    """Return whether a value starts with the fields of its key."""
    return operator == SESSIONS or (
        operator == AGGREGATE and setting_of(checkpoint, batch, _AGGREGATE_FORMAT) == "1"
    )


def is_before_4(spark: SparkSession) -> bool:
    """Return whether Spark is older than version 4 and therefore lacks the state data source."""
    return int(spark.version.partition(".")[0]) < 4


@contextmanager
def temporary_setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Change a session's setting for the duration of the ``with`` block."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def run_available(writer: DataStreamWriter, checkpoint: Path) -> dict[str, Any] | None:
    """Run a query over all available records, and return its last progress."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        with timed("running the query") as stage:
            while not query.awaitTermination(_POLL_SECONDS):
                seen = query.status["message"]
                if (progress := query.lastProgress) is not None:
                    rows = progress["numInputRows"]
                    seen += f"; batch {progress['batchId']} ended, with {rows} input rows"
                stage.seen(seen)
        return query.lastProgress
    finally:
        query.stop()


def _number_fields(name: str, type_: StructType) -> Column:
    """Replace a struct's field names, which may repeat, with ``_0``, ``_1``…."""
    fields = ", ".join(
        f"_{number}: {field.dataType.simpleString()}" for number, field in enumerate(type_.fields)
    )
    return F.col(name).cast(f"struct<{fields}>").alias(name)


# -- Spark 3.5 -----------------------------------------------------------------------------------


def _read_by_query(spark: SparkSession, checkpoint: Path, batch: int, work: Path) -> SparkState:
    folders = sorted(checkpoint.glob("state/*/0"))
    if any(folder.joinpath("left-keyToNumValues").is_dir() for folder in folders):
        raise Refused(JOIN_STATE())
    schemas = [stored_schemas(folder / "_metadata" / "schema") for folder in folders]
    operator = only_operator([operator_of(key, value) for key, value in schemas])
    ((key, value),) = schemas
    is_session = operator == SESSIONS
    key_in_value = _stores_key_twice(operator, checkpoint, batch)
    groups = value.fields[: len(key)] if key_in_value else key.fields
    buffers = value.fields[len(key) :] if key_in_value else value.fields
    fields = {f"g{number}": field.dataType for number, field in enumerate(groups)}
    fields |= {f"b{number}": field.dataType for number, field in enumerate(buffers)}
    fields |= {"at": TimestampType(), "is there": BooleanType()}
    schema = StructType([StructField(name, type_) for name, type_ in fields.items()])
    files = work / "no records"
    files.mkdir(parents=True)
    for name in ("0.json", "1.json"):
        files.joinpath(name).write_text("{}\n")  # a row, so that Spark runs a batch
    copy_to_read(checkpoint, batch, work / "checkpoint", source_file=files / "0.json")
    keys = [
        F.session_window("at", "1 second").alias(f"g{number}")
        if is_session and is_window(field.dataType)
        else F.col(f"g{number}")
        for number, field in enumerate(groups)
    ]
    maxima = [F.max(f"b{number}").alias(f"b{number}") for number in range(len(buffers))]
    records = spark.readStream.schema(schema).json(str(files)).where("`is there`")
    emitted: list[DataFrame] = []

    def keep(frame: DataFrame, batch: int) -> None:
        emitted.append(frame.localCheckpoint())

    grouped = records.groupBy(*keys).agg(*(maxima or [F.lit(None).alias("b")]))
    with temporary_setting(spark, _SCHEMA_CHECK, "false"):
        run_available(
            grouped.writeStream.foreachBatch(keep).outputMode("complete"), work / "checkpoint"
        )
    (frame,) = emitted
    key_names = [f"g{number}" for number in range(len(groups))]
    value_names = [f"b{number}" for number in range(len(buffers))]
    if key_in_value:
        value_names = [*key_names, *value_names]
    if is_session:
        # The stored key ends with the session's start. Omit this start, because the value contains
        # the window.
        key_names = key_names[:-1]
    state = frame.select(_struct("key", key_names), _struct("value", value_names))
    return flatten(operator, state, key, value, key_in_value=key_in_value)


def _struct(name: str, columns: Sequence[str]) -> Column:
    numbered = (F.col(column).alias(f"_{number}") for number, column in enumerate(columns))
    return F.struct(*numbered).alias(name)


def stored_schemas(path: Path) -> tuple[StructType, StructType]:
    """Return the schemas of a key and a value from a schema file.

    The file starts with a version. The JSON of each schema follows, divided into pieces: the number
    of pieces, and then the pieces. The version and the pieces are in the format of Java's
    ``writeUTF``.
    """
    cursor = Cursor(path.read_bytes(), str(path))
    version = cursor.utf("version")
    if version != "v2":
        raise Refused(STATE_SCHEMA_VERSION_UNKNOWN(path=str(path), version=version[:20]))
    key, value = (
        "".join(cursor.utf("schema") for _ in range(cursor.count("pieces", 2))) for _ in range(2)
    )
    return StructType.fromJson(json.loads(key)), StructType.fromJson(json.loads(value))


def operator_of(key: StructType, value: StructType) -> str:
    """Return Spark 4's name for the kind of operator that stores state with these schemas."""
    if value.names == [NO_VALUE]:
        return DEDUPLICATE
    if value.names == ["expiresAtMicros"]:
        return DEDUPLICATE_WITHIN
    if key.names[-1:] == ["sessionStartTime"]:
        return SESSIONS
    if key.names == ["key"] and isinstance(key.fields[0].dataType, NullType):
        return LIMIT
    return "flatMapGroupsWithState" if "groupState" in value.names else AGGREGATE
