"""The result of ``rehearse``, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from decoder.keyed_state import StateKind, read_keyed_states
from migrate.model.wording import counted, join_some
from migrate.planning.state_proof import StateProof
from migrate.spark.rehearsal.checkpoints import CheckpointPair
from migrate.spark.rehearsal.compare import Notes
from migrate.spark.rehearsal.differences import describe_differences
from migrate.spark.rehearsal.kafka_range import KafkaStream, unread_topics
from migrate.spark.transfer.filled_state import Rows, state_rows_of
from migrate.spark.transfer.proof import Comparison
from migrate.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_STATES = 5


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result of a rehearsal; ``str`` returns its report.

    Attributes:
        proof: the comparison of Spark's state with that of the later checkpoint; for a query
            without state, the comparison of its rows with ``output``, Flink's rows. All numbers are
            0 if nothing was compared.
        start_proof: the comparison of Spark's state with that of the earlier checkpoint, before any
            record was read; None for a query without state.
        records: the number of records that were read between the checkpoints.
        wrong: the keys that are not right: ``key``, ``flink`` and ``spark``. Each is a struct;
            ``flink`` or ``spark`` is null if that side lacks the key. For a query without state, a
            key is a row, and the values are how often it was written.
        warnings: what the user must know about the result.
        written: the number of rows that the query wrote; None if they were not kept.
        output_proof: for a query with state, the comparison of its rows with ``output``, Flink's
            rows; otherwise None, and None without ``output``.
        wrong_output: for a query with state, the rows that differ from ``output``, in the form of
            ``wrong``; otherwise None, and None without ``output``.
        lines: the lines of the report.
    """

    proof: StateProof
    start_proof: StateProof | None
    records: int
    wrong: DataFrame
    warnings: tuple[str, ...]
    written: int | None
    output_proof: StateProof | None
    wrong_output: DataFrame | None
    lines: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether something was compared, and all of it is right, the start included."""
        proofs = [self.proof] if self.output_proof is None else [self.proof, self.output_proof]
        is_start_right = self.start_proof is None or self.start_proof.is_right
        is_end_right = all(proof.is_right for proof in proofs)
        return is_start_right and is_end_right and any(proof.right for proof in proofs)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def make_rehearsal(
    pair: CheckpointPair,
    streams: Sequence[KafkaStream],
    events: Sequence[DataFrame],
    start: StateProof | None,
    state: Comparison | None,
    output: Comparison | None,
    written: int | None,
    time: str | None,
    notes: Notes,
) -> Rehearsal:
    """Make the result of a rehearsal, and its report.

    Args:
        pair: the checkpoints.
        streams: the streams, whose events were used.
        events: the files of each stream: rows made from state, and the events between the
            checkpoints.
        start: the comparison of the states before any record; None for a query without state.
        state: the comparison of the states; None for a query without state.
        output: the comparison of the rows that were written; None if Flink's were not given.
        written: the number of rows that the query wrote; None if they were not kept.
        time: the events' column of event time; None if the state has no windows.
        notes: what the comparisons do not show.
    """
    counts = [stream.count() for stream in streams]
    gaps = (stream.gaps(number) for stream, number in zip(streams, counts, strict=True))
    warnings = (*pair.warnings, *unread_topics(pair, streams), *chain(*gaps), *notes.warnings)
    lines = [
        f"{pair.earlier} to {pair.later}: {counted(sum(counts), 'record')} of "
        f"{counted(len(pair.ranges), 'partition')}"
    ]
    if written is not None:
        lines.append(f"the query wrote {counted(written, 'row')}")
    state_wrong, state_lines = _differences("state", state, events, time)
    output_wrong, output_lines = _differences("output", output, events, None)
    lines += [*state_lines, *output_lines, *(f"warning: {warning}" for warning in warnings)]
    lines += [f"not compared: {subject}" for subject in notes.not_compared]
    if output is None:
        lines.append(
            "not compared: what the query wrote, since Flink's output was not given (output)"
        )
    main = output if state is None else state
    output_proof = None if output is None else output.proof
    return Rehearsal(
        StateProof(0, 0, 0, 0) if main is None else main.proof,
        start,
        sum(counts),
        output_wrong if state is None else state_wrong,
        warnings,
        written,
        None if state is None else output_proof,
        None if state is None or output is None else output_wrong,
        tuple(lines),
    )


def _differences(
    title: str, comparison: Comparison | None, events: Sequence[DataFrame], time: str | None
) -> tuple[DataFrame, list[str]]:
    """Return the differences as they are after the scratch is removed, and lines about them."""
    if comparison is None:
        schema = "key STRUCT<>, flink STRUCT<>, spark STRUCT<>"
        return events[0].sparkSession.createDataFrame([], schema), []
    lines = [f"{title}: {comparison.proof}"]
    differences = comparison.differences
    if comparison.proof.is_right:
        wrong = differences.sparkSession.createDataFrame([], differences.schema)
    else:
        wrong = differences.localCheckpoint()
        lines += describe_differences(wrong, events, time)
    return wrong.drop("verdict"), lines


def other_states(checkpoint: str, rows: Rows) -> Iterator[str]:
    """Yield a text that names the keyed states from which no rows were made, if there are any.

    Yield nothing if no rows name the state that they come from.
    """
    read = {
        (stream.origin.operator_id, stream.origin.state)
        for stream in state_rows_of(rows)
        if stream.origin is not None
    }
    names = [
        f"{state.uid or state.operator_name or state.operator_id}/{state.name}"
        for state in read_keyed_states(checkpoint, Files()).states
        if state.kind is not StateKind.TIMERS and (state.operator_id, state.name) not in read
    ]
    if names and read:
        yield f"other states of the job: {join_some(names, _MOST_STATES)}"
