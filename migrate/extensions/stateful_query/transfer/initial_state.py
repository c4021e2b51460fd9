"""Pass the Flink state to a ``transformWithStateInPandas`` processor.

When Spark runs batch 0, it passes the rows of each key to the processor's ``handleInitialState``
once. After batch 0, Spark silently ignores the rows. Therefore, ``initial_state`` refuses a state
if the checkpoint location has a committed batch. For every start after batch 0 is committed, pass
None as the state. The savepoint is then no longer needed.

Source: TransformWithStateInPandasExec (``currentBatchId == 0``) @ Spark 4.0.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from migrate.extensions.stateful_query.catalog import (
    INITIAL_STATE_IGNORED,
    INITIAL_STATE_MISSING,
    INITIAL_STATE_WITHOUT_SEED,
)
from migrate.extensions.stateful_query.transfer.exact_cast import cast_exactly, schema_of
from migrate.extensions.stateful_query.transfer.origin import contradictions, origin_of
from migrate.extensions.stateful_query.transfer.time_to_live import (
    TimeToLive,
    leave_out_and_warn,
    with_warnings,
)
from migrate.inputs.spark_log import kafka_seeds, newest_committed_batch
from migrate.model.column_types import quoted
from migrate.model.errors import Refused, UsageError
from migrate.targets.location import location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData, SparkSession
    from pyspark.sql.types import StructType


def initial_state(
    spark: SparkSession,
    state: DataFrame | None,
    schema: StructType | str,
    *,
    columns: Mapping[str, str],
    keys: Sequence[str],
    checkpoint_location: str,
    ttl_ms: TimeToLive = ...,
    stopped_at_ms: int | None = None,
) -> GroupedData:
    """Return the ``initialState`` of ``transformWithStateInPandas``.

    The result has a ``warnings`` attribute, like the result of ``unexpired``.

    Args:
        spark: the session.
        state: the Flink state from the ``flink_state`` data source; None once batch 0 is committed.
        schema: the columns that the processor gets; the columns in ``keys`` must have the same
            types as in the stream.
        columns: for each column of the schema, an expression over the state's columns. Values are
            cast exactly to the column's type.
        keys: the columns by which the query groups the stream.
        checkpoint_location: the query's checkpoint location, seeded by
            ``to_spark(checkpoint_dir=…)`` from the same savepoint.
        ttl_ms: as in ``unexpired``.
        stopped_at_ms: as in ``unexpired``.

    Raises:
        Refused: ``state`` is not None, but the location has a committed batch, so Spark would
            ignore the state; ``state`` is None, but the location has no committed batch; the
            location has no seed, or a seed from a different savepoint, so the query would start at
            different offsets; or ``unexpired`` raises it.
        UsageError: ``columns`` or ``keys`` do not match the schema; an expression's type cannot be
            cast exactly to its column's type; the name of the location is not valid; or
            ``unexpired`` raises it.
        DecodeError: the savepoint cannot be read.
        InputError: the location is damaged.
    """
    type_ = schema_of(spark, schema)
    names = type_.names
    if sorted(columns) != sorted(names) or not keys or set(keys) - set(names):
        raise UsageError(
            "`columns` or `keys` do not match the schema; pass an expression for each column of "
            "the "
            f"schema ({', '.join(names)}) as `columns`, and some of these columns as `keys`"
        )
    directory, files = location(checkpoint_location).to_read
    exists = files.list_directory(directory) is not None
    has_committed = exists and newest_committed_batch(directory, files) is not None
    if state is None:
        if not has_committed:
            raise Refused(INITIAL_STATE_MISSING(location=checkpoint_location))
        return with_warnings(spark.createDataFrame([], type_).groupBy(*keys), ())
    seeds = kafka_seeds(directory, files) if exists else {}
    if not seeds:
        raise Refused(INITIAL_STATE_WITHOUT_SEED(location=checkpoint_location))
    if has_committed:
        raise Refused(INITIAL_STATE_IGNORED(location=checkpoint_location))
    if problems := list(contradictions([origin_of(state)], seeds.values())):
        raise Refused(problems)
    kept, warnings = leave_out_and_warn(state, ttl_ms, stopped_at_ms)
    frame = kept.selectExpr(
        *(f"{expression} AS {quoted(name)}" for name, expression in columns.items())
    )
    for field in type_.fields:
        frame = cast_exactly(frame, field.name, field.dataType, field.name)
    return with_warnings(frame.select(*map(quoted, names)).groupBy(*keys), warnings)
