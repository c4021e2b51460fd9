"""``to_spark``: compute the start offsets for Spark, and write them to a checkpoint location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from migrate.model.catalog import PLAN_ALREADY_IN_LOCATION
from migrate.model.errors import Refused, UsageError
from migrate.model.extensions import service
from migrate.model.log import log, timed
from migrate.model.option_names import option
from migrate.model.policies import parse_choice
from migrate.model.positions import SPARK
from migrate.moves.load_inputs import read_input
from migrate.moves.options import MoveArguments, move_request
from migrate.moves.plan import (
    check_before_writing_plan,
    check_job_of_plan,
    check_origin,
    check_plan,
    load_plan,
    plan_move,
)
from migrate.moves.sink import (
    check_apart,
    check_sink_of_a_query,
    named_location,
    note_unchecked_sink,
)
from migrate.planning import Plan
from migrate.targets.location import Location
from migrate.targets.seed import check_free, is_seed_of, write_seed
from migrate.targets.source_options import IsolationLevel, SourceStart, spark_streams
from migrate.targets.spark_start import SparkStart

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.storage.uris import AnyPath


def to_spark(
    chk: AnyPath | None = None,
    *,
    plan: AnyPath | Plan | None = None,
    checkpoint_dir: AnyPath | None = None,
    sink: AnyPath | None = None,
    sink_writer: str | None = None,
    spark_source: Mapping[int, Sequence[str]] | None = None,
    isolation_level: IsolationLevel | Literal["read_committed", "read_uncommitted"] | None = None,
    state: Sequence[str] = (),
    keep_state: str | None = None,
    **arguments: Unpack[MoveArguments],
) -> SparkStart:
    """Return Spark's start offsets and, with ``checkpoint_dir``, seed a checkpoint location.

    Args:
        chk: the checkpoint, as in ``plan``, or another side, as in ``diff``. For a
            ``broker:`` side, ``partitions`` lists the topics.
        plan: a plan or a plan file instead of ``chk``; refused if the cluster or the job has
            changed since the plan was made.
        checkpoint_dir: a new or empty directory to seed, as a path or a URL.
        sink: the directory or table that the query will write to; refused if the sink would skip
            batches of the new query, because it remembers the batches of earlier queries.
        sink_writer: the name under which the query writes to ``sink``: Hudi's checkpoint
            identifier, or Delta's ``txnAppId``.
        spark_source: the names of Flink sources, by the number of the Kafka source in the query
            that continues from them: ``{0: ["topic:orders"], 1: ["topic:payments"]}``.
        isolation_level: the Kafka isolation level in the options; None for the Kafka default.
        state: the keyed states to move, each as ``OPERATOR/NAME``. With keyed states, this function
            does not write the checkpoint location, because the program from ``code("python")``
            writes it.
        keep_state: ``spark:DIR``, a query whose checkpoint location is copied to
            ``checkpoint_dir``; the copy keeps the query's state, and continues from the positions
            of ``chk``.
        arguments: see ``MoveArguments``.

    Raises:
        Refused: nothing was written, because the move would lose or duplicate records and no option
            allows it; the job is still running (see ``check_job`` and, with ``checkpoint_dir``,
            ``check_before_write``); ``checkpoint_dir`` is already in use; or the sink would skip
            batches.
        UsageError: arguments cannot be combined, or they name something that does not exist.
        DecodeError, InputError: the checkpoint or the plan cannot be read.
        BrokerError: the broker did not answer, or it denied the request.
        FlinkRestError: Flink did not answer, or it denied the request.
        OSError: the checkpoint location cannot be written to.
    """
    level = None
    if isolation_level is not None:
        level = parse_choice(IsolationLevel, "isolation_level", isolation_level)
    request = move_request(SPARK, arguments, plan)
    sources: Sequence[SourceStart]
    if keep_state is not None:
        if plan is not None or spark_source or state:
            raise UsageError(
                "`keep_state` requires a side, and cannot be combined with `plan`, `spark_source`, "
                "or `state`"
            )
        copy_query = service("stateful_query", "copy_query")
        copy: SparkStart = copy_query(chk, request, keep_state, checkpoint_dir, sink, level)
        return copy
    if state:
        if chk is None or plan is not None or spark_source:
            raise UsageError("a query with keyed state requires a checkpoint (CHK) and one stream")
        prime_query = service("stateful_query", "prime_query")
        start: SparkStart = prime_query(
            chk, request, state, checkpoint_dir, sink, sink_writer, level
        )
        return start
    if plan is not None and chk is None and checkpoint_dir is not None:
        _check_not_applied(plan, checkpoint_dir)
    target, sink_warnings = check_directories(checkpoint_dir, sink, sink_writer)
    if spark_source and (chk is None or plan is not None):
        raise UsageError(f"{option('spark_source')} requires a checkpoint (CHK), not a saved plan")
    writes = target is not None
    move, job_has_ended = None, False
    if plan is not None:
        move = check_plan(chk, request, plan)
    else:
        chosen_input = read_input(chk, request)
        if spark_source:
            from migrate.moves.spark_sources import plan_streams  # imported here; few moves use it

            sources, plans, warnings = plan_streams(chosen_input, request, spark_source)
            check_origin(chosen_input.positions.origin, request, plans, writes=writes)
        else:
            move = plan_move(chosen_input, request)
    if move is not None:
        move.check()
        saved = plan is not None
        judgment = check_job_of_plan(request, move, saved=saved)
        job_has_ended = judgment.has_ended
        if writes:
            check_before_writing_plan(request, move, judgment, saved=saved)
        sources = [SourceStart(0, move.next_offsets, move.only_some_partitions)]
        warnings = move.warnings
    streams = spark_streams(sources, request.target_kafka.broker, level, seeded=target is not None)
    if target is not None:
        with timed(f"writing {target.name}"):
            try:
                write_seed(sources, target)
            except PermissionError as error:
                raise UsageError(
                    f"{option('checkpoint_dir', target.name)}: {error.strerror}; choose a "
                    "different directory"
                ) from error
        log.info(
            f"wrote {target.name}; use it as checkpointLocation (for continuous triggers and "
            "declarative pipelines, use startingOffsets instead)"
        )
        if sink is None:
            note_unchecked_sink(
                f"to check it, rerun with {option('sink', 'DIR')} instead of "
                f"{option('checkpoint_dir')}"
            )
    return SparkStart(
        streams,
        target.for_spark if target is not None else None,
        (*sink_warnings, *warnings),
        move.origin if move is not None else None,
        job_has_ended=job_has_ended,
    )


def _check_not_applied(plan: AnyPath | Plan, checkpoint_dir: AnyPath) -> None:
    """Refuse a location to which this plan was already applied, if no query has used it.

    Raises:
        Refused: the location contains only the start offsets of the plan; or as in ``load_plan``.
        UsageError, InputError: as in ``named_location`` and ``load_plan``.
    """
    target = named_location("checkpoint_dir", checkpoint_dir)
    if target.names() and is_seed_of(target, load_plan(plan)[0].next_offsets):
        raise Refused(PLAN_ALREADY_IN_LOCATION(directory=target.name))


def check_directories(
    checkpoint_dir: AnyPath | None, sink: AnyPath | None, sink_writer: str | None
) -> tuple[Location | None, tuple[str, ...]]:
    """Check that the location can be seeded, and that the sink will not skip batches.

    Returns:
        The location to seed, or None; and warnings about the sink.

    Raises:
        Refused: the location is already in use; or the sink would skip batches or cannot be read.
        UsageError: the location cannot be written to from this machine, or the sink does not exist.
    """
    target = None
    if checkpoint_dir is not None:
        target = named_location("checkpoint_dir", checkpoint_dir)
        check_free(target)
        check_apart(target, sink)
    return target, check_sink_of_a_query(sink, sink_writer)
