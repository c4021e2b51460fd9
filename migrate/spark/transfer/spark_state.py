"""Spark's own state, read back, flat: each part of a key and of a value is a column.

Spark 4 has a data source for it. Spark 3.5 has none: there a query of ours goes on from a copy of
the checkpoint location, over no records. It groups by the parts of the key, and the greatest value
of each part of the value is all that it keeps. Such a state has the very form of the one that is
read, as the buffer of ``max`` is one field of the type of its column. In complete mode a query
emits all of its state: so what it emits is what was there.

Source: the state data source (``statestore``, ``state-metadata``) @ Spark 4.0.0:
StateDataSource, StatePartitionReader. StateStoreSaveExec, SessionWindowStateStoreSaveExec
(StreamingSessionWindowStateManagerImplV1), StreamingAggregationStateManagerImplV2,
StreamingDeduplicateExec, StateSchemaCompatibilityChecker, SchemaHelper.SchemaV2Reader @ 3.5.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    NullType,
    StructField,
    StructType,
    TimestampType,
)

from decoder.cursor import Cursor
from migrate.model.errors import Refused
from migrate.model.wording import counted
from migrate.targets.primed_log import commit_version, copy_to_read

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_JOIN, _SESSIONS, SEEN = "symmetricHashJoin", "sessionWindowStateStoreSaveExec", "dedupe"
_SEEN_FOR_A_TIME, _LIMIT = "dedupeWithinWatermark", "globalLimit"
# Those whose values rows can tell; of others the user says what is expected.
TOLD_BY_ROWS = {"stateStoreSave", _SESSIONS, SEEN}
_OPERATORS = {
    _JOIN: "a join of two streams",
    _SEEN_FOR_A_TIME: "dropDuplicatesWithinWatermark, which keeps until when it keeps",
    _LIMIT: "a limit",
}
# Of a value's fields those that hold none of its own.
_NO_VALUE, _EMPTY = "__dummy__", "isEmpty"
# Ours may have nulls where the other's has none.
_SCHEMA_CHECK = "spark.sql.streaming.stateStore.stateSchemaCheck"


class Field(NamedTuple):
    """A field of a key or of a value.

    Attributes:
        name: the one that Spark gives it.
        type: its type.
        of_an_average: whether it is the sum or the count of an average.
    """

    name: str
    type: DataType
    of_an_average: bool = False

    def __str__(self) -> str:
        average = " of an average" if self.of_an_average else ""
        return f"{self.name} {self.type.simpleString()}{average}"


@dataclass(frozen=True, slots=True)
class SparkState:
    """The state of one operator, flat: ``k0``…, ``window`` where it has one, ``v0``…"""

    operator: str
    frame: DataFrame
    keys: tuple[Field, ...]
    window: bool
    values: tuple[Field, ...]

    @property
    def told(self) -> str:
        """What the operator is, in words."""
        return _OPERATORS.get(self.operator, self.operator)

    @property
    def key_columns(self) -> list[str]:
        """The names of the key's columns, a window's among them."""
        return [f"k{n}" for n in range(len(self.keys))] + ["window"] * self.window

    @property
    def value_columns(self) -> list[str]:
        return [f"v{n}" for n in range(len(self.values))]


def read_spark_state(spark: SparkSession, checkpoint: Path, batch: int, work: Path) -> SparkState:
    """The state that a query had after a batch.

    Args:
        checkpoint: its checkpoint location.
        work: a directory of ours that the executors share; Spark 3.5 needs it until it is read.

    Raises:
        Refused: the query keeps state in no store, or in several.
    """
    if is_before_4(spark):
        return _by_a_query(spark, checkpoint, batch, work)
    if spark.version.startswith("4.0.") and commit_version(checkpoint, batch) != "v1":
        raise Refused(
            "Spark 4.0 cannot read a state back whose files have ids: prime with "
            "spark.sql.streaming.stateStore.checkpointFormatVersion 1"
        )
    operators = [
        row["operatorName"]
        for row in spark.read.format("state-metadata").load(str(checkpoint)).collect()
    ]
    _check_one(operators)
    state = spark.read.format("statestore").option("batchId", batch).load(str(checkpoint))
    key, value = (state.schema[name].dataType for name in ("key", "value"))
    assert isinstance(key, StructType) and isinstance(value, StructType)
    return _flat(
        operators[0], state.select(_numbered("key", key), _numbered("value", value)), key, value
    )


def is_before_4(spark: SparkSession) -> bool:
    """Whether this Spark has no data source for state."""
    return int(spark.version.partition(".")[0]) < 4


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A session's setting, for a time."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def _check_one(operators: Sequence[str]) -> None:
    if len(operators) != 1:
        told = ", ".join(sorted({_OPERATORS.get(name, name) for name in operators})) or "none"
        raise Refused(
            f"the query keeps state in {counted(len(operators), 'store')} ({told}); one can be "
            "primed"
        )


# -- by a query of ours --------------------------------------------------------------------------


def _by_a_query(spark: SparkSession, checkpoint: Path, batch: int, work: Path) -> SparkState:
    folders = sorted(checkpoint.glob("state/*/0"))
    if any(folder.joinpath("left-keyToNumValues").is_dir() for folder in folders):
        raise Refused(f"the query keeps the state of {_OPERATORS[_JOIN]}; it cannot be primed")
    schemas = [_stored_schemas(folder / "_metadata" / "schema") for folder in folders]
    _check_one([_operator(key, value) for key, value in schemas])
    ((key, value),) = schemas
    operator = _operator(key, value)
    # Of sessions the whole group stands in the value.
    of_sessions = operator == _SESSIONS
    groups = value.fields[: len(key)] if of_sessions else key.fields
    buffers = value.fields[len(key) :] if of_sessions else value.fields
    named = {f"g{n}": one.dataType for n, one in enumerate(groups)}
    named |= {f"b{n}": one.dataType for n, one in enumerate(buffers)}
    files = work / "no records"
    files.mkdir(parents=True)
    for name in ("0.json", "1.json"):
        files.joinpath(name).write_text("{}\n")  # a record that is none has a batch run
    copy_to_read(checkpoint, batch, work / "checkpoint", has_read=files / "0.json")
    fields = {**named, "at": TimestampType(), "is there": BooleanType()}
    schema = StructType([StructField(name, type_) for name, type_ in fields.items()])
    by = [
        F.session_window("at", "1 second").alias(f"g{n}")
        if of_sessions and _is_window(one.dataType)
        else F.col(f"g{n}")
        for n, one in enumerate(groups)
    ]
    kept = [F.max(f"b{n}").alias(f"b{n}") for n in range(len(buffers))] or [F.lit(None).alias("b")]
    records = spark.readStream.schema(schema).json(str(files)).where("`is there`")
    emitted: list[DataFrame] = []

    def keep(frame: DataFrame, batch: int) -> None:
        emitted.append(frame.localCheckpoint())

    with setting(spark, _SCHEMA_CHECK, "false"):
        running = (
            records.groupBy(*by)
            .agg(*kept)
            .writeStream.foreachBatch(keep)
            .outputMode("complete")
            .option("checkpointLocation", str(work / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            running.awaitTermination()
        finally:
            running.stop()
    (frame,) = emitted
    places = [f"g{n}" for n in range(len(groups))]
    values = [f"b{n}" for n in range(len(buffers))]
    if of_sessions:
        # Its key's last part, where the session starts, stands in the value, too.
        places, values = places[:-1], [*places, *values]
    return _flat(
        operator,
        frame.select(_struct("key", places), _struct("value", values)),
        key,
        value,
    )


def _struct(name: str, columns: Sequence[str]) -> Column:
    return F.struct(*(F.col(one).alias(f"_{n}") for n, one in enumerate(columns))).alias(name)


def _stored_schemas(path: Path) -> tuple[StructType, StructType]:
    """Of a key and of a value: each JSON in pieces of Java's ``writeUTF``, and how many there are
    before them; the version first."""
    cursor = Cursor(path.read_bytes(), str(path))
    version = cursor.utf("version")
    if version != "v2":
        raise Refused(f"{path}: a schema of version {version[:20]!r} is not known; known: v2")
    key, value = (
        "".join(cursor.utf("schema") for _ in range(cursor.count("pieces", 2))) for _ in range(2)
    )
    return StructType.fromJson(json.loads(key)), StructType.fromJson(json.loads(value))


def _operator(key: StructType, value: StructType) -> str:
    """As Spark 4 names it, by what it keeps."""
    if value.names == [_NO_VALUE]:
        return SEEN
    if value.names == ["expiresAtMicros"]:
        return _SEEN_FOR_A_TIME
    if key.names[-1:] == ["sessionStartTime"]:
        return _SESSIONS
    if key.names == ["key"] and isinstance(key.fields[0].dataType, NullType):
        return _LIMIT
    return "flatMapGroupsWithState" if "groupState" in value.names else "stateStoreSave"


# -- flat ----------------------------------------------------------------------------------------


def _flat(operator: str, state: DataFrame, key: StructType, value: StructType) -> SparkState:
    """
    Args:
        state: key and value, structs with the fields ``_0``, ``_1``….
        key, value: what they are.
    """
    parts = [(f"key.{n}", one.name, one.dataType) for n, one in enumerate(key.fields)]
    rest = [(f"value.{n}", one.name, one.dataType) for n, one in enumerate(value.fields)]
    # Of a DECIMAL sum that has added nothing up, 0 is kept, and that it is empty.
    empty = {f"value.{n - 1}" for n, (_, name, _) in enumerate(rest) if name == _EMPTY}
    averages = _averages(value)
    if operator == _SESSIONS:
        # The whole group stands in the value, the window among it.
        parts, rest = rest[: len(parts)], rest[len(parts) :]
    windows = [part for part in parts if _is_window(part[2])]
    keys = [part for part in parts if part not in windows]
    values = [part for part in rest if part[1] not in (_NO_VALUE, _EMPTY)]
    if len(windows) > 1:
        raise Refused("the query groups by several windows")
    columns = [F.col(_at(place)).alias(f"k{n}") for n, (place, _, _) in enumerate(keys)]
    columns += [
        F.struct(
            F.col(f"{_at(place)}.start").alias("start"), F.col(f"{_at(place)}.end").alias("end")
        ).alias("window")
        for place, _, _ in windows
    ]
    columns += [
        _or_null(place, place in empty).alias(f"v{n}") for n, (place, _, _) in enumerate(values)
    ]
    return SparkState(
        operator,
        state.select(*columns),
        tuple(Field(name, type_) for _, name, type_ in keys),
        bool(windows),
        tuple(Field(name, type_, of_an_average=place in averages) for place, name, type_ in values),
    )


def _averages(value: StructType) -> set[str]:
    """Return the fields that an average keeps: a sum, and after it a count that may be NULL.

    The count of ``count`` may not be NULL (Average, Count: ``aggBufferAttributes`` @ Spark 3.5.1,
    4.0.0), so that an average is told apart from a sum and a count beside each other.
    """
    counts = [n for n, field in enumerate(value.fields) if field.name == "count" and field.nullable]
    return {
        f"value.{place}"
        for n in counts
        if n > 0 and value.fields[n - 1].name == "sum"
        for place in (n - 1, n)
    }


def _is_window(type_: DataType) -> bool:
    return isinstance(type_, StructType) and [(one.name, one.dataType) for one in type_.fields] == [
        ("start", TimestampType()),
        ("end", TimestampType()),
    ]


def _numbered(name: str, type_: StructType) -> Column:
    """Fields by number: of values several may have one name."""
    fields = ", ".join(f"_{n}: {one.dataType.simpleString()}" for n, one in enumerate(type_.fields))
    return F.col(name).cast(f"struct<{fields}>").alias(name)


def _at(place: str) -> str:
    column, _, number = place.partition(".")
    return f"{column}._{number}"


def _or_null(place: str, may_be_empty: bool) -> Column:
    if not may_be_empty:
        return F.col(_at(place))
    column, _, number = place.partition(".")
    return F.when(~F.col(f"{column}._{int(number) + 1}"), F.col(_at(place)))
