"""A Spark query as what a plan is made from: one source, read up to its newest committed batch.

Named ``spark:DIR`` like a side, and in a saved plan by the whole path, ``spark:///…``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from decoder import ByteSource
from decoder.storage import join
from migrate.inputs.flink.extract import Code, Finding, ListedPositions, Severity, listed_source
from migrate.inputs.spark_log import (
    batch_begun,
    commit_path,
    committed_positions,
    newest_committed_batch,
    numbers,
    query_id,
)
from migrate.model.errors import InputError, Refused
from migrate.model.positions import SPARK_PREFIX, Origin, PositionSet
from migrate.model.wording import counted
from migrate.storage.files import Files, path_of


def query_positions(pointer: str) -> ListedPositions:
    """What a query has committed, in the form in which a plan takes a checkpoint's positions.

    The query's id (its 32 hex digits) stands for the operator's. A partition that the query has not
    met yet it would start at 0, its log's start.

    Raises:
        InputError: a URI of a kind that is not read.
        InputError: as for ``committed_positions``.
        Refused: as for ``committed_positions``.
        Refused: it has not committed a batch yet.
    """
    files = Files()
    directory = files.absolute(path_of(pointer.removeprefix(SPARK_PREFIX), files))
    batch = newest_committed_batch(directory, files)
    # First what is no query at all.
    committed = committed_positions(pointer, directory, files)
    if batch is None:
        raise Refused(
            f"{directory}: the query has not committed a batch yet; what it was seeded from "
            "can be committed instead (in Real-Time Mode a query writes before it logs a "
            "batch: that would be written again)"
        )
    own_id = query_id(directory, files)
    if own_id is None:
        raise InputError(f"{directory}: there is no metadata in it")
    whole = directory if "://" in directory else f"//{directory}"
    written_at = files.modified_at(commit_path(directory, batch))
    return ListedPositions(
        Origin("batch", SPARK_PREFIX + whole, batch, written_at=written_at),
        (listed_source(own_id.replace("-", ""), "Spark query", committed, starts_others=True),),
        tuple(_findings(directory, files, batch)),
    )


def _findings(directory: str, files: Files, batch: int) -> Iterator[Finding]:
    state = state_warning(directory, files)
    if state is not None:
        yield Finding(Code.QUERY_STATE, Severity.WARNING, None, state)
    output = output_warning(directory, files)
    if output is not None:
        yield Finding(Code.OUTPUT_BEYOND, Severity.WARNING, None, output)
    begun = batch_begun(directory, files, batch)
    if begun is not None:
        yield Finding(
            Code.UNCOMMITTED_BATCH,
            Severity.WARNING,
            None,
            f"batch {begun} of the query is begun and not committed: what it has written already "
            "will be read and written again by who goes on from here; where the query is to hand "
            "over, let it commit that batch first",
        )


# Rows in ``state/`` have been read and not emitted: they lie below the positions. A query with
# asynchronous progress tracking logs a batch only now and then: what it wrote since the last one
# lies beyond the positions. Neither is in the offset log, nor is the option that turns the tracking
# on: the log keeps settings of the session, and it is one of the query. Only stateless queries may
# be so tracked: AsyncProgressTrackingMicroBatchExecution (checkNotStatefulStreamingQuery,
# markMicroBatchStart), OffsetSeqMetadata (relevantSQLConfs) @ Spark 3.5.1, 4.0.0, 4.1.1, 4.2.0. In
# Real-Time Mode a batch is logged where it ends, and committed at once; stateful queries may run
# so, too. The trigger is not in the log: MicroBatchExecution (markMicroBatchEnd) @ Spark 4.2.0.
_WAY_OUT = (
    "before it hands over, start it once more with asyncProgressTrackingCheckpointIntervalMs=0, "
    "and let two batches run"
)


def state_warning(directory: str, files: ByteSource) -> str | None:
    """What is lost where somebody else goes on; None of a query that keeps no state.

    Raises:
        InputError: it cannot be listed.
    """
    operators = len(numbers(files, join(directory, "state")))
    if not operators:
        return None
    return (
        f"the query keeps state of {counted(operators, 'operator')} (in state/): rows that it has "
        "read and not yet emitted may be in it (windows, joins), and are read by nobody who goes "
        "on from here; let its windows close before it hands over, or let the next one begin "
        "before them, into a sink that bears repeats; in Real-Time Mode it has also written beyond "
        "its positions, since its last batch ended"
    )


def output_warning(directory: str, files: ByteSource) -> str | None:
    """What may be written again where somebody else goes on; None where that cannot be.

    Raises:
        InputError: it cannot be listed.
    """
    logged = numbers(files, join(directory, "offsets"))
    if not logged or numbers(files, join(directory, "state")):
        return None
    gaps = [(one, next_one) for one, next_one in pairwise(logged) if next_one > one + 1]
    if not gaps:
        return (
            "whether the query tracks its progress asynchronously (asyncProgressTrackingEnabled) "
            "does not show: if it does, it has written records beyond these positions, even where "
            f"it was stopped cleanly, and they will be written again; then {_WAY_OUT}; nor does "
            "Real-Time Mode, in which a query logs a batch at the batch's end: what it has written "
            "since will be written again"
        )
    first, second = gaps[-1]
    return (
        f"after batch {first} the query has logged batch {second}: it tracks its progress "
        "asynchronously (asyncProgressTrackingEnabled), and has written records beyond these "
        "positions, even where it was stopped cleanly; they will be written again; "
        f"{_WAY_OUT}"
    )


@dataclass(frozen=True, slots=True)
class QueryLocation:
    """The checkpoint location of a Spark query: where it started, and where it stands now.

    Attributes:
        started: what the seed says; None where there is none.
        committed: after the newest committed batch; None of a query that has not run yet.
    """

    directory: str
    started: PositionSet | None
    committed: PositionSet | None
