"""Start a Spark query with the positions and the keyed states of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from migrate.extensions.keyed_state.read_state import keyed_states
from migrate.extensions.stateful_query.primed_code import priming_code
from migrate.extensions.stateful_query.taken_states import (
    StateToPrime,
    TakenStates,
    log_states,
    take_states,
)
from migrate.inputs.flink.choose_source import Choice
from migrate.inputs.flink.extract import Extraction
from migrate.model.errors import UsageError
from migrate.model.finding import Code
from migrate.model.option_names import option
from migrate.moves.load_inputs import ChosenInput, read_input
from migrate.moves.options import Request
from migrate.moves.plan import check_before_writing_plan, check_job_of_plan, plan_move
from migrate.moves.sink import note_unchecked_sink
from migrate.moves.to_spark import check_directories
from migrate.storage.uris import AnyPath
from migrate.targets.source_options import (
    IsolationLevel,
    SourceStart,
    kafka_connector,
    spark_streams,
)
from migrate.targets.spark_start import SparkStart


@dataclass(frozen=True, slots=True)
class PrimedStart(SparkStart):
    """The start of a Spark query with keyed states.

    Attributes:
        states: the keyed states that the printed program writes to the checkpoint location.
        allow_ran_on: True if the move was allowed even though the job has output beyond the
            positions.
    """

    states: tuple[StateToPrime, ...] = ()
    allow_ran_on: bool = False

    @property
    def savepoint(self) -> str:
        """The path of the savepoint that contains the keyed states."""
        assert self.origin is not None  # ``prime_query`` passes it
        return self.origin.pointer

    def code(
        self,
        format: Literal["options", "python", "scala", "hudi"],
        spark_version: str | None = None,
        file: str | None = None,
    ) -> str:
        """Return Python code that primes and starts the query.

        For ``hudi``, the text is the same as for a query without state. For the arguments and other
        errors, see ``SparkStart.code``.

        Raises:
            UsageError: the format is neither ``python`` nor ``hudi``.
        """
        if format == "hudi":
            return SparkStart.code(self, format, spark_version, file)
        if format != "python":
            raise UsageError(f'only Python code can prime a query; pass "python", not {format!r}')
        (stream,) = self.streams
        return priming_code(
            stream,
            self.states,
            self.savepoint,
            self.checkpoint_location or "CHECKPOINT-DIR",
            kafka_connector(spark_version),
            file,
            allow_ran_on=self.allow_ran_on,
        )


def prime_query(
    chk: AnyPath,
    request: Request,
    names: Sequence[str],
    checkpoint_dir: AnyPath | None,
    sink: AnyPath | None,
    sink_writer: str | None,
    isolation_level: IsolationLevel | None,
) -> PrimedStart:
    """Return the start of a Spark query with keyed states, without writing anything.

    The program from ``PrimedStart.code`` writes the checkpoint location.

    Args:
        chk: the checkpoint.
        request: the options of the move.
        names: the states, each as ``OPERATOR/NAME``.
        checkpoint_dir: as in ``to_spark``.
        sink: as in ``to_spark``.
        sink_writer: as in ``to_spark``.
        isolation_level: as in ``to_spark``.

    Raises:
        MigrateError, DecodeError: as in ``to_spark`` and ``take_states_along``.
    """
    target, sink_warnings = check_directories(checkpoint_dir, sink, sink_writer)
    chosen_input, states = take_states_along(read_input(chk, request), names, request)
    move = plan_move(chosen_input, request)
    move.check()
    judgment = check_job_of_plan(request, move)
    if target is not None:  # the user will run the printed program, which writes to ``target``
        check_before_writing_plan(request, move, judgment)
    sources = [SourceStart(0, move.next_offsets, move.only_some_partitions)]
    broker = request.target_kafka.broker
    streams = spark_streams(sources, broker, isolation_level, seeded=target is not None)
    log_states(states)
    if target is not None and sink is None:
        note_unchecked_sink(f"to check it, pass {option('sink', 'DIR')}")
    return PrimedStart(
        streams,
        target.for_spark if target is not None else None,
        (*sink_warnings, *move.warnings),
        move.origin,
        tuple(states.to_prime()),
        request.policies.allow_ran_on,
        job_has_ended=judgment.has_ended,
    )


def take_states_along(
    checkpoint: ChosenInput, names: Sequence[str], choice: Choice
) -> tuple[ChosenInput, TakenStates]:
    """Read the keyed states that move to Spark together with the checkpoint's positions.

    Returns:
        The checkpoint and its states, divided into states that move and states that do not. If the
        entire state of an operator moves, the checkpoint no longer has the operator's
        ``STATE_NOT_MOVED`` finding.

    Raises:
        UsageError: the positions do not come from a checkpoint, or ``take_states`` raises it.
        Refused, DecodeError: as in ``take_states``.
    """
    positions = checkpoint.positions
    if not isinstance(positions, Extraction):
        raise UsageError(
            f"{positions.origin.pointer} is not a checkpoint, and only a checkpoint contains keyed "
            "state; pass a checkpoint (CHK)"
        )
    pointer = positions.checkpoint.pointer
    keyed = keyed_states(pointer, allow_external_files=choice.allow_external_files)
    states = take_states(keyed, names)
    without_other_state = {
        operator.operator_id
        for operator in positions.checkpoint.operators
        if not operator.operator_state_bytes
    }
    all_state_moves = states.fully_taken_operators & without_other_state
    findings = tuple(
        finding
        for finding in positions.findings
        if finding.code is not Code.STATE_NOT_MOVED or finding.operator_id not in all_state_moves
    )
    return checkpoint._replace(positions=replace(positions, findings=findings)), states
