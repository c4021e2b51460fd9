"""``to_spark``: where Spark is to start, and a seeded checkpoint location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from migrate.commands.keep_state import copy_query, new_location
from migrate.commands.plan import planned
from migrate.commands.shared_options import Request, move_request
from migrate.commands.sink import check_sink_of_a_query, named_location
from migrate.commands.spark_sources import plan_streams
from migrate.commands.taken_states import take_states, tell
from migrate.errors import UsageError
from migrate.log import log, timed
from migrate.option_declaration import one_of
from migrate.planning import Plan
from migrate.positions import SPARK
from migrate.spark.locations import Location
from migrate.spark.offsets_json import NextOffsets, starting_offsets
from migrate.spark.primed_code import StateToPrime, priming_code
from migrate.spark.query_code import ReadStream, option_lines, python_code, scala_code
from migrate.spark.seed import check_free, write_checkpoint
from migrate.spark.source_options import (
    IsolationLevel,
    KafkaOption,
    SparkSource,
    kafka_connector,
    read_options,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.commands.shared_options import AnyPath, MoveArguments


@dataclass(frozen=True, slots=True)
class SparkStream:
    """Where one Kafka source of a Spark query starts.

    Attributes:
        number: its place among the query's streams, from 0: Spark's ``sources/<number>``.
        next_offsets: by topic and partition.
        options: all that ``readStream`` is to be told, ``startingOffsets`` among them; what is
            secret as the name of an environment variable.
    """

    number: int
    next_offsets: NextOffsets
    options: tuple[KafkaOption, ...]

    @property
    def starting_offsets(self) -> str:
        """The value of ``startingOffsets``: compact JSON, sorted."""
        return starting_offsets(self.next_offsets)


@dataclass(frozen=True, slots=True)
class SparkStart:
    """Where a Spark query starts.

    Attributes:
        streams: its Kafka sources, in their order.
        checkpoint_location: what the query is to be told where one was seeded; else None.
        warnings: what is not refused, and must be known.
        savepoint: where the keyed states are that go along.
        states: those states; the printed Python puts them into the checkpoint location.
    """

    streams: tuple[SparkStream, ...]
    checkpoint_location: str | None
    warnings: tuple[str, ...]
    savepoint: str | None = None
    states: tuple[StateToPrime, ...] = ()

    @property
    def starting_offsets(self) -> str:
        """The value of ``startingOffsets``; of several streams a line each, in their order."""
        return "\n".join(stream.starting_offsets for stream in self.streams)

    def code(
        self, format: Literal["options", "python", "scala"], spark_version: str | None = None
    ) -> str:
        """All options as ``name=value`` lines, or the file of a whole query.

        Args:
            spark_version: the Spark that is to run it, as ``4.0.0``; None takes the installed one.

        Raises:
            UsageError: that is no version.
        """
        streams = [ReadStream(stream.number, stream.options) for stream in self.streams]
        if self.states and self.savepoint is not None:
            (stream,) = streams
            return priming_code(
                stream,
                self.states,
                self.savepoint,
                self.starting_offsets,
                self.checkpoint_location or "DIRECTORY",
                kafka_connector(spark_version),
            )
        if format == "options":
            return option_lines(streams, self.checkpoint_location)
        write = python_code if format == "python" else scala_code
        return write(streams, self.checkpoint_location, kafka_connector(spark_version))


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
    """Say where Spark is to start and, with ``checkpoint_dir``, seed a checkpoint location.

    Args:
        chk: the checkpoint, as for ``plan``, or another side: ``spark:DIR``, ``group:NAME``,
            ``json:FILE``, ``csv:FILE``; ``broker:earliest`` or ``broker:latest`` of the topics that
            ``partitions`` names.
        plan: instead of it a plan, or the file of one, unless something has moved meanwhile.
        checkpoint_dir: a new or empty directory, or URL, to seed.
        sink: the directory that the query writes to, or its table's: what does it remember?
        sink_writer: the name that the query writes under there: Hudi's checkpoint identifier, or
            Delta's ``txnAppId``.
        spark_source: the Flink sources that each Kafka source of the query goes on from, by its
            number: ``{0: ["topic:orders"], 1: ["topic:payments"]}``.
        isolation_level: what the options say of transactions; None leaves Kafka's default.
        state: keyed states that go along, ``OPERATOR/NAME`` each: then ``code("python")`` primes
            the checkpoint location, and nothing is seeded here.
        keep_state: ``spark:DIR``, a query whose checkpoint location is copied to
            ``checkpoint_dir``, and goes on from these positions with its state.
        arguments: see ``MoveArguments``.

    Raises:
        Refused: what would lose or repeat records is not allowed, or a directory holds something;
            nothing was written.
        UsageError: arguments that do not go together, or name what is not there.
        DecodeError, UnreadableInput: the checkpoint, or the plan, cannot be read.
        BrokerError: the broker did not answer, or denied what was asked.
        OSError: the checkpoint location cannot be written.
    """
    sources: Sequence[SparkSource]
    level = None
    if isolation_level is not None:
        level = one_of(IsolationLevel, "--isolation-level", isolation_level)
    request = move_request(chk, SPARK, arguments)
    if keep_state is not None:
        if plan is not None or spark_source or state:
            raise UsageError("--keep-state goes with a side, not --plan, --spark-source or --state")
        new = new_location(checkpoint_dir)
        sources, warnings = copy_query(request, keep_state, new, sink)
        return SparkStart(_streams(sources, request, level, seeded=True), new.for_spark, warnings)
    target, warnings = check_directories(checkpoint_dir, sink, sink_writer)
    states = None
    if state:
        if chk is None or spark_source:
            raise UsageError("--state goes with a checkpoint (CHK), and with one stream")
        states = take_states(chk, state, allow_external_files=request.allow_external_files)
        request = replace(request, state_taken=states.whole_operators)
    savepoint = None
    if spark_source:
        if chk is None or plan is not None:
            raise UsageError("--spark-source goes with a checkpoint (CHK), not with a saved plan")
        sources, more = plan_streams(request, spark_source)
    else:
        move = planned(request, plan)
        move.check()
        sources = [SparkSource(0, move.next_offsets, move.only_some_partitions)]
        more = move.warnings
        savepoint = move.origin.pointer
    if states is not None:
        tell(states)
    streams = _streams(sources, request, level, seeded=target is not None)
    if target is not None and states is None:
        with timed(f"writing {target.name}"):
            write_checkpoint(sources, target)
        log.info(
            f"wrote {target.name}: use it as checkpointLocation; the continuous trigger and "
            "declarative pipelines need startingOffsets"
        )
    return SparkStart(
        streams,
        target.for_spark if target is not None else None,
        (*warnings, *more),
        savepoint,
        () if states is None else tuple(states.to_prime()),
    )


def _streams(
    sources: Sequence[SparkSource], request: Request, level: IsolationLevel | None, *, seeded: bool
) -> tuple[SparkStream, ...]:
    known = request.kafka.config() if request.kafka.given else None
    return tuple(
        SparkStream(
            one.number, one.next_offsets, tuple(read_options(one, known, level, seeded=seeded))
        )
        for one in sources
    )


def check_directories(
    checkpoint_dir: AnyPath | None, sink: AnyPath | None, sink_writer: str | None
) -> tuple[Location | None, tuple[str, ...]]:
    """Before any work: can the one be seeded, and does the other skip nothing?

    Returns:
        Where the seed goes, and warnings about the sink.

    Raises:
        Refused: it holds something; or the sink would skip batches.
        UsageError: one cannot be written from here.
    """
    target = None
    if checkpoint_dir is not None:
        target = named_location("--checkpoint-dir", checkpoint_dir)
        check_free(target)
    return target, check_sink_of_a_query(sink, sink_writer)
