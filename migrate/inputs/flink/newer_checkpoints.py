"""Newer checkpoints beside one: they show that the job ran on, and its checkpoint interval.

A consumer group without members does not show that a job has stopped: KafkaSource joins none. A
newer checkpoint shows that it ran on; the absence of one shows something only if the interval is
known.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from decoder import ByteSource, list_checkpoints
from decoder.checkpoint import translate_os_errors
from decoder.checkpoint_order import completed_at, find_siblings
from decoder.storage import LocalFiles, checkpoint_number

# The interval is measured on the last checkpoints: older ones may have had another.
_LAST = 5


@dataclass(frozen=True, slots=True)
class Beside:
    """The complete checkpoints beside one.

    Attributes:
        newer: the numbers of newer checkpoints, the last written one last.
        interval: the longest time between two of the last ones, in seconds, as an upper bound of
            the job's checkpoint interval; None for less than two.
    """

    newer: tuple[int, ...]
    interval: float | None


def look_beside(
    pointer: str, checkpoint_id: int, source: ByteSource | None = None
) -> Beside | None:
    """Return the checkpoints beside ``chk-<n>``; None for a savepoint, which has none beside it.

    Args:
        pointer: the checkpoint's directory, which may be gone by now.
        checkpoint_id: its number.
        source: reads its files; local files by default.

    Raises:
        DecodeError: the job's checkpoint directory is missing, or cannot be read.
    """
    directory = pointer.rstrip("/")
    if checkpoint_number(directory) is None:
        return None
    files = source if source is not None else LocalFiles()
    complete = list_checkpoints(posixpath.dirname(directory), files)
    with translate_os_errors(directory):
        siblings = find_siblings(directory, checkpoint_id, completed_at(directory, files), files)
        another_run = {
            *siblings.earlier_run,
            *(number for number in siblings.newer if number < checkpoint_id),
        }
        own = [(number, path) for number, path in complete if number not in another_run]
        written = [(number, completed_at(path, files)) for number, path in own[-_LAST:]]
    return Beside(
        siblings.newer,
        checkpoint_interval((number, time) for number, time in written if time is not None),
    )


def checkpoint_interval(written: Iterable[tuple[int, int]]) -> float | None:
    """Return the longest time from one checkpoint to the next, in seconds; None for less than two.

    Args:
        written: (number, milliseconds of the epoch when it was complete), ascending. The time of a
            gap in the numbers is divided by its size.
    """
    return max(
        (
            (time - before) / (number - last) / 1000
            for (last, before), (number, time) in pairwise(written)
        ),
        default=None,
    )
