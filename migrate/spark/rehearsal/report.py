"""The result of ``rehearse``, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decoder.keyed_state import StateKind, read_keyed_states
from migrate.model.wording import counted, join_some
from migrate.planning.state_proof import StateProof
from migrate.spark.rehearsal.checkpoints import CheckpointPair
from migrate.spark.rehearsal.compare_output import compare_output
from migrate.spark.rehearsal.compare_state import StateComparison
from migrate.spark.rehearsal.differences import describe_wrong
from migrate.spark.transfer.filled_state import Rows, state_rows_of
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
    records: int,
    state: StateComparison | None,
    written: DataFrame | None,
    output: DataFrame | None,
    events: Sequence[DataFrame],
    warnings: tuple[str, ...],
    not_compared: Sequence[str],
) -> Rehearsal:
    """Compare the output, and make the report.

    Args:
        pair: the checkpoints.
        records: the number of records that were read.
        state: the comparison of the states; None for a query without state.
        written: the rows that the query wrote; None if they were not kept.
        output: the rows that Flink wrote; None if the user did not give them.
        events: the events of each stream between the checkpoints.
        warnings: what the user must know about the result.
        not_compared: what was not compared, in addition to the output.
    """
    out = None if written is None or output is None else compare_output(written, output)
    rows = None if written is None else written.count()
    nothing = StateProof(0, 0, 0, 0)
    main = out if state is None else state.comparison
    empty = events[0].sparkSession.createDataFrame(
        [], "key STRUCT<>, flink STRUCT<>, spark STRUCT<>"
    )
    lines = [
        f"{pair.earlier} to {pair.later}: {counted(records, 'record')} of "
        f"{counted(len(pair.ranges), 'partition')}"
    ]
    if rows is not None:
        lines.append(f"the query wrote {counted(rows, 'row')}")
    for title, comparison in (("state", state and state.comparison), ("output", out)):
        if comparison is not None:
            lines += [f"{title}: {comparison.proof}", *describe_wrong(comparison, events)]
    lines += [f"warning: {warning}" for warning in warnings]
    if out is None:
        not_compared = [
            *not_compared,
            "what the query wrote, since Flink's output was not given (output)",
        ]
    lines += [f"not compared: {subject}" for subject in not_compared]
    return Rehearsal(
        nothing if main is None else main.proof,
        None if state is None else state.start,
        records,
        empty if main is None else main.wrong.drop("verdict"),
        warnings,
        rows,
        None if state is None or out is None else out.proof,
        None if state is None or out is None else out.wrong.drop("verdict"),
        tuple(lines),
    )


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
