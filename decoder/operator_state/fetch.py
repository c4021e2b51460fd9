"""The elements of one list state over the subtasks of an operator, in their order.

A remote store answers in tens of milliseconds, whatever it is asked for: what the subtasks hold is
asked for side by side, a few ahead of what is being decoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from decoder.metadata.model import NamedState, OperatorStateHandle
from decoder.operator_state.locate import StateFiles
from decoder.operator_state.stream import (
    Excerpt,
    byte_array_elements,
    extent,
    read_excerpt,
    unsized_elements,
)

# How many requests are under way at once: as many as botocore keeps connections for, and more.
_AT_ONCE = 16
# A larger state is read when its turn comes, so that what waits stays below 16 MiB.
_LARGEST_AHEAD = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SubtaskState:
    """One list state of one subtask."""

    subtask: int
    handle: OperatorStateHandle
    state: NamedState


def state_elements(
    states: Iterable[SubtaskState], files: StateFiles, what: str, *, sized: bool = True
) -> Iterator[tuple[int, bytes]]:
    """(subtask index, element) of every state, in the order given; ``what`` names the operator.

    ``sized`` says whether they are ``byte[]`` lists, whose elements tell their own length.

    Raises:
        DecodeError: a file is not there, not the checkpoint's, or does not hold what it should.
    """
    # An empty state needs no file.
    wanted = [state for state in states if state.state.byte_offsets]
    for held, part in _read_ahead(wanted, files, what):
        place = _place(held, what)
        elements = (
            byte_array_elements(part, held.state.byte_offsets, place)
            if sized
            else unsized_elements(part, held.handle, held.state, place)
        )
        for element in elements:
            yield held.subtask, element


def _place(held: SubtaskState, what: str) -> str:
    return f"{what} subtask {held.subtask} operator state"


def _read_ahead(
    states: list[SubtaskState], files: StateFiles, what: str
) -> Iterator[tuple[SubtaskState, Excerpt]]:
    def read(held: SubtaskState) -> Excerpt:
        return read_excerpt(held.handle, held.state, files, _place(held, what))

    def next_one() -> tuple[SubtaskState, Excerpt]:
        held, reading = under_way.popleft()
        return held, reading.result() if reading is not None else read(held)

    under_way: deque[tuple[SubtaskState, Future[Excerpt] | None]] = deque()
    pool = ThreadPoolExecutor(_AT_ONCE)  # no thread is started before something is submitted
    try:
        for held in states:
            under_way.append((held, pool.submit(read, held) if _may_wait(held) else None))
            if len(under_way) == _AT_ONCE:
                yield next_one()
        while under_way:
            yield next_one()
    finally:
        pool.shutdown(cancel_futures=True)


def _may_wait(held: SubtaskState) -> bool:
    """Whether a state is in a file, and small enough to be read before its turn."""
    place = extent(held.handle, held.state)
    return place is not None and place.end - place.start <= _LARGEST_AHEAD
