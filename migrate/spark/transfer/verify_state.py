"""``verify --state``: a savepoint's state beside what a primed query holds, key by key.

It is read as it was before Kafka's first batch: the query may have run on since, as long as Spark
keeps the state of that batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from migrate.inputs.spark_log import kafka_seeds, logged_batches
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.planning.state_proof import StateProof
from migrate.spark.session import failure_of, runs_on_spark, session
from migrate.spark.state_frame import read_keyed_state
from migrate.spark.transfer.exact_cast import exactly
from migrate.spark.transfer.origin import origin_of
from migrate.spark.transfer.proof import compare, in_units, key_order
from migrate.spark.transfer.spark_state import SparkState, is_before_4, read_spark_state
from migrate.spark.transfer.time_to_live import TimeToLive, leave_out_expired
from migrate.spark.transfer.windows import session_windows, unfired
from migrate.state.column_types import quoted
from migrate.storage.files import Files
from migrate.targets.location import LocalDirectory, location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MERGING = "merging-window-set"


def verify_state(
    savepoint: str,
    directory: str,
    operator: str,
    state: str,
    *,
    expect: str | None,
    sample: int | None,
    conf: Mapping[str, str],
    ttl_ms: TimeToLive = ...,
    stopped_at_ms: int | None = None,
    allow_external_files: bool = False,
) -> StateProof:
    """Compare all keys, or a sample.

    Args:
        directory: the query's checkpoint location, on a disk.
        expect: what Spark's key and value hold, in the order of their fields: expressions of
            Spark's SQL over Flink's columns. By default the parts of the key, the window, and the
            parts of the value.
        sample: how many keys of Flink's; then keys that Spark alone has are not looked for.
        conf: settings for a Spark of our own.
        ttl_ms: of a state with a time to live how long that is: as for ``aggregate_rows``.
        stopped_at_ms: as for ``aggregate_rows``.

    Raises:
        Refused, Refused: as for ``aggregate_rows``.
        Refused: it holds another state than one that was primed.
        UsageError: what is expected does not go together with what Spark keeps.
        DecodeError: the savepoint cannot be read.
    """
    target = location(directory)
    if not isinstance(target, LocalDirectory):
        raise UsageError(f"{target.name}: --state reads a checkpoint location on a disk: copy it")
    batch = primed_batch(directory)
    with (
        session(None if runs_on_spark(None) else "local[*]", conf) as spark,
        _work(spark, target.path) as work,
    ):
        found = read_spark_state(spark, target.path, batch, Path(work))
        options: dict[str, str | bool] = {"operator": operator}
        options["allowExternalFiles"] = allow_external_files
        flink = _flink(spark, savepoint, state, options, found.window)
        flink, expired = leave_out_expired(flink, ttl_ms, stopped_at_ms)
        for warning in () if expired is None else expired.warnings():
            log.warning(warning)
        expected = _expected(flink, expect, found)
        if sample is not None:
            expected = expected.orderBy(F.xxhash64(*found.key_columns)).limit(sample)
        return compare(found, expected, of_flink_alone=sample is not None)


def _work(spark: SparkSession, checkpoint: Path) -> TemporaryDirectory[str] | nullcontext[str]:
    """A directory that the executors share, where Spark needs one."""
    if not is_before_4(spark):
        return nullcontext("")
    return TemporaryDirectory(
        prefix=f".{checkpoint.name}.state.", dir=checkpoint.parent, ignore_cleanup_errors=True
    )


def primed_batch(directory: str) -> int:
    """The last one before Kafka's first: it ended where Kafka's sources begin.

    Raises:
        Refused: there is none, or it is not logged any more.
        InputError: it is no checkpoint location, or damaged.
    """
    files = Files()
    seeds, primed = kafka_seeds(directory, files), None
    for batch, ended in logged_batches(directory, files):
        if batch != (0 if primed is None else primed + 1) or ended != seeds:
            break
        primed = batch
    if primed is None:
        raise Refused(
            f"{directory}: its first batch is not one that primed it: it read Kafka's records, "
            "or Spark has deleted its log since"
        )
    return primed


def _flink(
    spark: SparkSession, savepoint: str, state: str, options: Mapping[str, str | bool], window: bool
) -> DataFrame:
    """Flink's state; of windows those that wait, and of sessions as they are now."""
    found = read_keyed_state(spark, savepoint, state=state, **options)
    if not window:
        return found
    origin = origin_of(found)
    assert origin is not None
    found, _ = unfired(found, origin)
    listed = read_keyed_state(spark, savepoint, view="states", **options)
    if listed.where(F.col("state") == _MERGING).isEmpty():
        return found
    return session_windows(found, read_keyed_state(spark, savepoint, state=_MERGING, **options))


def _expected(flink: DataFrame, expect: str | None, found: SparkState) -> DataFrame:
    """Flink's entries in the columns of Spark's."""
    asked = list(_parts(flink, found)) if expect is None else [expect]
    told = flink.selectExpr(*asked) if expect is None else _select(flink, expect)
    types = [
        *(one.type for one in found.keys),
        *([None] if found.window else []),
        *(one.type for one in found.values),
    ]
    names = found.key_columns + found.value_columns
    if len(told.columns) != len(names):
        keys = ", ".join(map(str, found.keys)) or "nothing"
        values = ", ".join(map(str, found.values))
        raise UsageError(
            f"{len(told.columns)} columns of Flink's, and Spark's state has {len(names)}: by "
            f"{keys}{', a window' * found.window}, it keeps {values or 'nothing'}; name each with "
            "--expect"
        )
    told = told.toDF(*names)
    if expect is None:
        for n, field in enumerate(found.values):
            own = told.schema[f"v{n}"].dataType
            told = told.withColumn(f"v{n}", in_units(F.col(f"v{n}"), own, field))
    for name, type_ in zip(names, types, strict=True):
        told = _window(told) if type_ is None else exactly(told, name, type_, name)
    return told


def _parts(flink: DataFrame, found: SparkState) -> Iterator[str]:
    for name in ("key", "namespace", "value"):
        if name not in flink.columns or (name == "namespace" and not found.window):
            continue
        if name == "value" and not found.values:
            continue  # as of what was seen
        type_ = flink.schema[name].dataType
        if name == "key" and isinstance(type_, StructType):
            names = [type_.names[n] for n in key_order(type_.names, found)]
            yield from (f"key.{quoted(part)} AS key_{n}" for n, part in enumerate(names))
        elif isinstance(type_, StructType) and name != "namespace":
            yield from (f"{name}.{quoted(one)} AS {name}_{n}" for n, one in enumerate(type_.names))
        else:
            yield name


def _select(flink: DataFrame, expect: str) -> DataFrame:
    """A list of expressions, with the commas in them that are theirs.

    Raises:
        UsageError: they are no SQL over the columns.
    """
    told = expect.replace("{", "{{").replace("}", "}}")
    try:
        return flink.sparkSession.sql(f"SELECT {told} FROM {{flink}}", flink=flink)
    except AnalysisException as error:
        raise UsageError(f"--expect: {failure_of(error)}") from error


def _window(told: DataFrame) -> DataFrame:
    type_ = told.schema["window"].dataType
    if not isinstance(type_, StructType) or type_.names != ["start", "end"]:
        raise UsageError(
            f"the window is told as {type_.simpleString()}: --expect wants a struct of start and "
            "end, as named_struct('start', …, 'end', …)"
        )
    if isinstance(type_.fields[0].dataType, LongType):
        bounds = (F.timestamp_millis(f"window.{one}").alias(one) for one in type_.names)
        return told.withColumn("window", F.struct(*bounds))
    return told
