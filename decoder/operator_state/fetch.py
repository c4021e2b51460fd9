"""The elements of one list state in all subtasks of an operator, in subtask order.

While one subtask's state is decoded, the states of the next few subtasks are fetched in parallel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from decoder.metadata.model import NamedState, OperatorStateHandle
from decoder.operator_state.stream import (
    ByteArrays,
    Excerpt,
    Extent,
    byte_arrays,
    extent,
    read_excerpt,
    unsized_elements,
)
from decoder.state_files import StateFiles

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_PARALLEL_REQUESTS = 16
# The largest state to read ahead. Each request reads one state, so all requests together read at
# most 16 MiB.
_MAX_READ_AHEAD_BYTES = 1024 * 1024


class SubtaskState(NamedTuple):
    """One list state in one subtask."""

    subtask: int
    handle: OperatorStateHandle
    state: NamedState


def byte_array_states(
    states: Iterable[SubtaskState], files: StateFiles, label: str
) -> Iterator[tuple[int, ByteArrays]]:
    """Yield (subtask index, elements) for each non-empty ``byte[]`` list state, in order.

    ``label`` is the operator's name in messages.

    Raises:
        DecodeError: a file is missing, outside the checkpoint, truncated, or too large. Iterating
            over the elements raises this error for a corrupt element.
        OSError: as in ``StateFiles.read``.
    """
    for owner, part, part_label in _read_ahead(states, files, label):
        yield owner.subtask, byte_arrays(part, owner.handle, owner.state, part_label)


def state_elements(
    states: Iterable[SubtaskState], files: StateFiles, label: str, *, sized: bool = True
) -> Iterator[tuple[int, bytes]]:
    """Yield (subtask index, element) for each element of every state, in order.

    ``label`` is the operator's name in messages.

    ``sized`` is True if each element starts with its length, as in a ``byte[]`` list.

    Raises:
        DecodeError: a file is missing, outside the checkpoint, too large, or corrupt.
        OSError: as in ``StateFiles.read``.
    """
    elements = byte_arrays if sized else unsized_elements
    for owner, part, part_label in _read_ahead(states, files, label):
        for element in elements(part, owner.handle, owner.state, part_label):
            yield owner.subtask, element


def _read_ahead(
    states: Iterable[SubtaskState], files: StateFiles, label: str
) -> Iterator[tuple[SubtaskState, Excerpt, str]]:
    """Yield each non-empty state, the part of the stream that contains it, and the part's label."""

    def next_result() -> tuple[SubtaskState, Excerpt, str]:
        owner, span, part_label, future = pending.popleft()
        if future is not None:
            return owner, future.result(), part_label
        return owner, read_excerpt(owner.handle, span, files, part_label), part_label

    pending: deque[tuple[SubtaskState, Extent | None, str, Future[Excerpt] | None]] = deque()
    pool: ThreadPoolExecutor | None = None
    try:
        for owner in states:
            if not owner.state.byte_offsets:
                continue  # an empty state needs no file
            part_label = f"{label} subtask {owner.subtask} operator state"
            span = extent(owner.handle, owner.state)
            future = None
            if span is not None and span.end - span.start <= _MAX_READ_AHEAD_BYTES:
                if pool is None:
                    # Imported late, because most small checkpoints have inline state and need no
                    # pool.
                    from concurrent.futures import ThreadPoolExecutor

                    pool = ThreadPoolExecutor(_PARALLEL_REQUESTS)
                future = pool.submit(read_excerpt, owner.handle, span, files, part_label)
            pending.append((owner, span, part_label, future))
            if len(pending) == _PARALLEL_REQUESTS:
                yield next_result()
        while pending:
            yield next_result()
    finally:
        if pool is not None:
            # Do not wait. The garbage collector may close this generator in a thread that is just
            # starting. That thread holds a lock that the pool's threads need before they can end
            # (_shutdown_locks in threading @ Python 3.11).
            pool.shutdown(wait=False, cancel_futures=True)
