"""Compare a savepoint's state with the state of a primed query, key by key (``verify-state``).

The query may already have read from Kafka. The comparison uses the state before the query's first
batch from Kafka. It is therefore possible only as long as Spark keeps this old state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from migrate.extensions.keyed_state.frames import read_keyed_state
from migrate.extensions.keyed_state.listing import MERGING_WINDOWS
from migrate.extensions.stateful_query.catalog import PRIMING_BATCH_MISSING, UNPRIMED_LOCATION
from migrate.extensions.stateful_query.state_proof import StateProof
from migrate.extensions.stateful_query.transfer.flat_state import SparkState
from migrate.extensions.stateful_query.transfer.hop_rounding import with_hop_rounding
from migrate.extensions.stateful_query.transfer.proof import compare, key_order, to_spark_columns
from migrate.extensions.stateful_query.transfer.rows import (
    merge_entries,
    records_not_moved,
    stores_records,
)
from migrate.extensions.stateful_query.transfer.spark_state import is_before_4, read_spark_state
from migrate.extensions.stateful_query.transfer.time_to_live import TimeToLive, leave_out_expired
from migrate.extensions.stateful_query.transfer.windows import session_windows, unfired_windows
from migrate.inputs.spark_log import has_begun_batch, kafka_seeds, logged_batches
from migrate.model.column_types import quoted
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.model.option_names import option
from migrate.spark.session import connects_to_server, failure_of, runs_on_spark, session
from migrate.storage.files import Files
from migrate.targets.location import LocalDirectory, location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The column with the number of Flink entries for each key.
_ENTRIES = "entries"


def verify_state(
    savepoint: str,
    directory: str,
    operator: str,
    state: str,
    *,
    expect: str | None,
    sample: int | None,
    conf: Mapping[str, str],
    merge_keys: bool = False,
    ttl_ms: TimeToLive = ...,
    stopped_at_ms: int | None = None,
    allow_external_files: bool = False,
) -> StateProof:
    """Compare a savepoint's state with the state of a primed query.

    Args:
        savepoint: the checkpoint or savepoint.
        directory: the query's checkpoint location, on a disk.
        operator: the operator in the savepoint.
        state: the name of the operator's state.
        expect: comma-separated Spark SQL expressions over the Flink columns, one for each field of
            the Spark key and value, in order. By default, these are the parts of the Flink key, the
            parts of a MAP key, the window, and the parts of the value.
        sample: the number of Flink keys to compare; None to compare all. With a sample, keys that
            only Spark has are not errors.
        conf: settings for a new Spark session.
        merge_keys: True to merge entries with equal keys (``merge_entries``), and to truncate
            nanoseconds in keys.
        ttl_ms: as in ``unexpired``.
        stopped_at_ms: as in ``unexpired``.
        allow_external_files: as in ``read_checkpoint``.

    Raises:
        Refused: as in ``unexpired`` and ``read_spark_state``; the fired windows cannot be
            determined; or the location does not contain a primed state.
        UsageError: the expected columns do not match the state that Spark stores, the location is
            not on a disk, an argument is not valid, or Spark did not start.
        DecodeError: the savepoint cannot be read.
        InputError: the location is damaged, or is not a checkpoint location.
        ServiceError: Spark failed.
    """
    target = location(directory)
    if not isinstance(target, LocalDirectory):
        raise UsageError(
            f"{target.name} is not on a local disk, but {option('state')} requires a local "
            "checkpoint location; copy the checkpoint location to a local disk"
        )
    batch = primed_batch(directory)
    master = None if runs_on_spark(None) or connects_to_server() else "local[*]"
    with (
        session(master, conf) as spark,
        _work_directory(spark, target.path) as work,
    ):
        spark_state = read_spark_state(spark, target.path, batch, Path(work))
        read = partial(
            read_keyed_state,
            spark,
            savepoint,
            operator=operator,
            allowExternalFiles=allow_external_files,
            truncateKeys=merge_keys,
        )
        flink = read(state=state)
        held = flink.count()
        if spark_state.has_window:
            flink, _ = unfired_windows(flink)
            is_merging = F.col("state") == MERGING_WINDOWS
            if not read(view="states").where(is_merging).isEmpty():
                flink = session_windows(flink, read(state=MERGING_WINDOWS))
        flink, expired = leave_out_expired(flink, ttl_ms, stopped_at_ms)
        warnings = () if expired is None else tuple(expired.warnings())
        if not spark_state.values and stores_records(flink):
            warnings += (records_not_moved(),)
        for warning in warnings:
            log.warning(warning)
        expected = _expected(flink, expect, spark_state)
        expected = expected.withColumn(_ENTRIES, F.lit(1))
        if merge_keys:
            # Merge before sampling, because a sample may lack some of the entries of a key.
            kinds = [(_ENTRIES, "sum")]
            for name, field in zip(spark_state.value_columns, spark_state.values, strict=True):
                kinds.append((name, field.name))
            expected = merge_entries(expected, spark_state.key_columns, kinds)
        if sample is not None:
            expected = expected.orderBy(F.xxhash64(*spark_state.key_columns)).limit(sample)
        entries = expected.agg(F.sum(_ENTRIES)).collect()[0][0] or 0
        spark_state, rounding = with_hop_rounding(spark_state)
        is_sample = sample is not None
        proof = compare(spark_state, expected, is_sample=is_sample, rounding=rounding).proof
        merged = entries - (proof.right + proof.wrong + proof.missing)
        return replace(
            proof,
            entries=entries,
            held=held,
            merged=merged,
            may_merge=merge_keys,
            warnings=warnings,
        )


def _work_directory(
    spark: SparkSession, checkpoint: Path
) -> TemporaryDirectory[str] | nullcontext[str]:
    """Return a temporary directory that the executors share, or an empty string for Spark 4."""
    if not is_before_4(spark):
        return nullcontext("")
    return TemporaryDirectory(
        prefix=f".{checkpoint.name}.state.", dir=checkpoint.parent, ignore_cleanup_errors=True
    )


def primed_batch(directory: str) -> int:
    """Return the number of the last batch that primed the query.

    In the offset log, each priming batch ends at the offsets of the seed. The first batch from
    Kafka starts at these offsets.

    Raises:
        Refused: no batch has primed the query, or the batch is no longer in the log.
        InputError: the directory is not a checkpoint location, or is damaged.
    """
    files = Files()
    if not has_begun_batch(directory, files):
        raise Refused(UNPRIMED_LOCATION(location=directory))
    seeds, primed = kafka_seeds(directory, files), None
    for batch, ended in logged_batches(directory, files):
        if batch != (0 if primed is None else primed + 1) or ended != seeds:
            break
        primed = batch
    if primed is None:
        raise Refused(PRIMING_BATCH_MISSING(location=directory))
    return primed


def _expected(flink: DataFrame, expect: str | None, state: SparkState) -> DataFrame:
    """Return the Flink entries in the columns of the Spark state."""
    if expect is not None:
        return to_spark_columns(_select(flink, expect), state)
    parts = flink.selectExpr(*_part_expressions(flink, state))
    return to_spark_columns(parts, state, in_spark_units=False)


def _part_expressions(flink: DataFrame, state: SparkState) -> Iterator[str]:
    """Yield SQL expressions for the parts of the key, the window, and the parts of the value.

    For a MAP, the parts of the key include the map key. The window is yielded even if the Spark
    state has no window. The numbers of columns then differ, so the comparison fails instead of
    treating several windows of Flink as one key.
    """
    parts = {
        name: _parts(name, flink.schema[name].dataType)
        for name in ("key", "map_key", "value")
        if name in flink.columns
    }
    keys = parts.get("key", []) + parts.get("map_key", [])
    names = [name for name, _ in keys]
    for number, index in enumerate(key_order(names, state)):
        yield f"{keys[index][1]} AS key_{number}"
    if "namespace" in flink.columns:
        yield "namespace"
    if state.values:  # dropDuplicates stores only keys
        for number, (_, value) in enumerate(parts.get("value", [])):
            yield f"{value} AS value_{number}"


def _parts(column: str, type_: DataType) -> list[tuple[str, str]]:
    """Return, for each part of a column, its name and an SQL expression for the part."""
    if not isinstance(type_, StructType):
        return [(column, column)]
    return [(name, f"{column}.{quoted(name)}") for name in type_.names]


def _select(flink: DataFrame, expect: str) -> DataFrame:
    """Select comma-separated SQL expressions.

    Raises:
        UsageError: the list is not valid SQL over these columns.
    """
    escaped = expect.replace("{", "{{").replace("}", "}}")
    try:
        return flink.sparkSession.sql(f"SELECT {escaped} FROM {{flink}}", flink=flink)
    except AnalysisException as error:
        raise UsageError(f"{option('expect')}: {failure_of(error)}") from error
