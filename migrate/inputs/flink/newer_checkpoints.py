"""What stands beside a checkpoint tells of its job: whether it went on, and how often it takes one.

A consumer group without members does not show that a job has stopped: KafkaSource joins none. A
newer checkpoint shows that it ran on; that none comes for longer than it takes one shows something
only where it is known how often that is.
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

# How many of the last checkpoints the interval is taken from: older ones are of other times.
_LAST = 5


@dataclass(frozen=True, slots=True)
class Beside:
    """The complete checkpoints of a job's directory, as seen from one of them.

    Attributes:
        newer: the numbers of those that are newer than it, the last written at the end.
        interval: the longest time between two of the last ones, in seconds, an upper bound of the
            job's checkpoint interval as far as they show; None where there are not two.
    """

    newer: tuple[int, ...]
    interval: float | None


def look_beside(
    pointer: str, checkpoint_id: int, source: ByteSource | None = None
) -> Beside | None:
    """What stands beside ``chk-<n>``; None beside a savepoint, where no checkpoint of its job does.

    Args:
        pointer: the directory that holds ``_metadata``, which may be gone by now.
        checkpoint_id: its number.
        source: where its files are; local files by default.

    Raises:
        DecodeError: the job's checkpoint directory is not there, or cannot be read.
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
    """The longest time from one checkpoint to the next, in seconds; None where there are not two.

    Args:
        written: (number, milliseconds of the epoch when it was complete), ascending. Of numbers
            that are missing in between the time is shared out.
    """
    return max(
        (
            (time - before) / (number - last) / 1000
            for (last, before), (number, time) in pairwise(written)
        ),
        default=None,
    )
