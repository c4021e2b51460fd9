"""The elements of one list state over the subtasks of an operator, in their order.

A remote store answers in tens of milliseconds, whatever it is asked for: what the subtasks hold is
asked for side by side, a few ahead of what is being decoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from decoder.metadata.model import NamedState, OperatorStateHandle
from decoder.operator_state.stream import (
    ByteArrays,
    Excerpt,
    byte_arrays,
    extent,
    read_excerpt,
    unsized_elements,
)
from decoder.state_files import StateFiles

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# How many requests are under way at once: as many as botocore keeps connections for, and more.
_AT_ONCE = 16
# A larger state is read when its turn comes, so that what waits stays below 16 MiB.
_LARGEST_AHEAD = 1024 * 1024


class SubtaskState(NamedTuple):
    """One list state of one subtask."""

    subtask: int
    handle: OperatorStateHandle
    state: NamedState


def byte_array_states(
    states: Iterable[SubtaskState], files: StateFiles, what: str
) -> Iterator[tuple[int, ByteArrays]]:
    """(subtask index, elements) of every ``byte[]`` list state that has some, in the order given;
    ``what`` names the operator.

    Raises:
        DecodeError: a file is not there, or not the checkpoint's; walking the elements does where
            it does not hold what it should.
    """
    for held, part in _read_ahead(states, files, what):
        yield held.subtask, byte_arrays(part, held.handle, held.state, _place(held, what))


def state_elements(
    states: Iterable[SubtaskState], files: StateFiles, what: str, *, sized: bool = True
) -> Iterator[tuple[int, bytes]]:
    """(subtask index, element) of every state, in the order given; ``what`` names the operator.

    ``sized`` says whether they are ``byte[]`` lists, whose elements tell their own length.

    Raises:
        DecodeError: a file is not there, not the checkpoint's, or does not hold what it should.
    """
    for held, part in _read_ahead(states, files, what):
        elements = byte_arrays if sized else unsized_elements
        for element in elements(part, held.handle, held.state, _place(held, what)):
            yield held.subtask, element


def _place(held: SubtaskState, what: str) -> str:
    return f"{what} subtask {held.subtask} operator state"


def _read_ahead(
    states: Iterable[SubtaskState], files: StateFiles, what: str
) -> Iterator[tuple[SubtaskState, Excerpt]]:
    def read(held: SubtaskState) -> Excerpt:
        return read_excerpt(held.handle, held.state, files, _place(held, what))

    def next_one() -> tuple[SubtaskState, Excerpt]:
        held, reading = under_way.popleft()
        return held, reading.result() if reading is not None else read(held)

    under_way: deque[tuple[SubtaskState, Future[Excerpt] | None]] = deque()
    pool: ThreadPoolExecutor | None = None
    try:
        for held in states:
            if not held.state.byte_offsets:
                continue  # an empty state needs no file
            reading = None
            if _may_wait(held):
                pool = pool or _new_pool()
                reading = pool.submit(read, held)
            under_way.append((held, reading))
            if len(under_way) == _AT_ONCE:
                yield next_one()
        while under_way:
            yield next_one()
    finally:
        if pool is not None:
            # Without waiting: this may be run by the garbage collector, in a thread that is just
            # being started; it holds the lock that the end of another thread takes (_shutdown_locks
            # in threading @ Python 3.11).
            pool.shutdown(wait=False, cancel_futures=True)


def _new_pool() -> ThreadPoolExecutor:
    # Most small checkpoints hold all that is asked for themselves; the library brings logging in.
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_AT_ONCE)


def _may_wait(held: SubtaskState) -> bool:
    """Whether a state is in a file, and small enough to be read before its turn."""
    place = extent(held.handle, held.state)
    return place is not None and place.end - place.start <= _LARGEST_AHEAD
