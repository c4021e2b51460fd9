"""What a Spark query has read, or written, that its committed batch does not tell.

The rows in ``state/`` have been read and not emitted: they lie below the positions. The other way
round, a query with asynchronous progress tracking logs a batch only now and then, and what it wrote
since the last one lies beyond the positions. Neither is in the offset log; the option that turns it
on is not either: the log keeps settings of the session, and it is one of the query.

Only stateless queries may be so tracked: AsyncProgressTrackingMicroBatchExecution
(checkNotStatefulStreamingQuery, markMicroBatchStart), OffsetSeqMetadata (relevantSQLConfs) @ Spark
3.5.1, 4.0.0, 4.1.1, 4.2.0.
"""

from __future__ import annotations

from itertools import pairwise

from decoder.storage import ByteSource, join
from migrate.spark.progress import numbers
from migrate.wording import counted

_WAY_OUT = (
    "before it hands over, start it once more with asyncProgressTrackingCheckpointIntervalMs=0, "
    "and let two batches run"
)


def about_its_state(directory: str, files: ByteSource) -> str | None:
    """What is lost where somebody else goes on; None of a query that keeps no state.

    Raises:
        UnreadableInput: it cannot be listed.
    """
    operators = len(numbers(files, join(directory, "state")))
    if not operators:
        return None
    return (
        f"the query keeps state of {counted(operators, 'operator')} (in state/): rows that it has "
        "read and not yet emitted may be in it (windows, joins), and are read by nobody who goes "
        "on from here; let its windows close before it hands over, or let the next one begin "
        "before them, into a sink that bears repeats"
    )


def about_its_output(directory: str, files: ByteSource) -> str | None:
    """What may be written again where somebody else goes on; None where that cannot be.

    Raises:
        UnreadableInput: it cannot be listed.
    """
    logged = numbers(files, join(directory, "offsets"))
    if not logged or numbers(files, join(directory, "state")):
        return None
    gaps = [(one, next_one) for one, next_one in pairwise(logged) if next_one > one + 1]
    if not gaps:
        return (
            "whether the query tracks its progress asynchronously (asyncProgressTrackingEnabled) "
            "does not show: if it does, it has written records beyond these positions, even where "
            f"it was stopped cleanly, and they will be written again; then {_WAY_OUT}"
        )
    first, second = gaps[-1]
    return (
        f"after batch {first} the query has logged batch {second}: it tracks its progress "
        "asynchronously (asyncProgressTrackingEnabled), and has written records beyond these "
        "positions, even where it was stopped cleanly; they will be written again; "
        f"{_WAY_OUT}"
    )
