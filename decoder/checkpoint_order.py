"""Find the siblings of a ``chk-<n>``, and determine which of them are newer.

A job completes its checkpoints in the order of their numbers
(CheckpointCoordinator#dropSubsumedCheckpoints @ Flink 2.2.0). However, a job that starts without
its state restarts the count at 1. If its directory stays the same (because of a fixed job ID or
``execution.checkpointing.create-subdir: false``), the directory can also contain higher numbers
from an earlier run. Only the file times show which run is newer, and the files of a copy can have
different times.

Therefore, checkpoints with consecutive numbers are treated as one run, ordered by number. Two runs
with a gap between their numbers are ordered by time if their times differ by more than
``MIN_GAP_MS``, and by number otherwise. After a restart of the count, the new numbers may reach the
numbers of the earlier run, so that no gap separates the runs. For example, 1 to 5 are new, and 6 to
9 are old. A checkpoint in the same run as the examined checkpoint is reported as ``contradicting``
if its time contradicts its number.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import NamedTuple

from decoder.storage import METADATA_FILE, ByteSource, checkpoint_number, join

# The times of two runs show which run is newer only if they differ by more than this many
# milliseconds. The times of small checkpoints that are copied together differ by less than this.
# Most jobs take longer than this from their start to their first checkpoint.
MIN_GAP_MS = 10_000
# The next three constants limit the number of requests to an object store, because reading a
# checkpoint's time takes one request.

# The maximum number of lower-numbered runs to examine, starting with the lowest.
_MAX_LOWER_RUNS = 16
# The maximum number of checkpoints to read, starting from the run's end, to find the time of a run.
# This time is the time of the run's last checkpoint that has a time; an incomplete checkpoint has
# none.
_MAX_TRIED_OF_A_RUN = 3
# The maximum number of neighbors whose times are read on each side of the checkpoint, within the
# checkpoint's own run. The time of the run's first checkpoint is also read.
_MAX_NEIGHBOURS = 8


class Siblings(NamedTuple):
    """The job's other complete checkpoints that are newer, or whose time contradicts their number.

    Attributes:
        newer: the newer checkpoints. Siblings from the checkpoint's own run, and from runs with
            higher numbers and an unknown time, come first, in ascending order. The other runs
            follow, ordered by time.
        earlier_run: the checkpoints that have higher numbers but are from an earlier run, in
            ascending order.
        contradicting: the checkpoints from the same run whose times contradict the order of their
            numbers (lower but written later, or higher but written earlier), in ascending order.
    """

    newer: tuple[int, ...] = ()
    earlier_run: tuple[int, ...] = ()
    contradicting: tuple[int, ...] = ()


def find_siblings(
    checkpoint: str, number: int, written_at: int | None, files: ByteSource
) -> Siblings:
    """Find the siblings of a checkpoint; a savepoint has none.

    Args:
        checkpoint: the absolute directory of the checkpoint.
        number: the checkpoint's number, as in its ``_metadata``.
        written_at: the time when its ``_metadata`` was written, in epoch milliseconds; if None,
            only the numbers are compared.
        files: the source of the files.
    """
    name = checkpoint_number(checkpoint)
    if name is None:
        return Siblings()
    parent = posixpath.dirname(checkpoint)
    paths = dict(numbered_checkpoints(parent, files.list_directory(parent) or []))
    if name != number:  # a renamed copy is not a sibling of the checkpoint
        paths.pop(name, None)
    if paths.keys() <= {number}:
        return Siblings()
    newer: list[int] = []
    earlier: list[int] = []
    newer_runs: list[tuple[int, list[int]]] = []
    runs_below = 0
    for run in _consecutive_runs({*paths, number}):
        if run[-1] < number:
            runs_below += 1
            if written_at is None or runs_below > _MAX_LOWER_RUNS:
                continue
            at = _last_written(run, paths, files)
            if at is not None and at - written_at > MIN_GAP_MS:
                newer_runs.append((at, [n for n in run if is_complete(paths[n], files)]))
            continue
        complete = [n for n in run if n > number and is_complete(paths[n], files)]
        if not complete or number in run or written_at is None:
            newer += complete
            continue
        at = _last_written(complete, paths, files)
        if at is None:
            newer += complete
        elif written_at - at > MIN_GAP_MS:
            earlier += complete
        else:
            newer_runs.append((at, complete))
    newer += [n for _, run in sorted(newer_runs) for n in run]
    contradicting = _find_contradicting(number, written_at, paths, files)
    return Siblings(tuple(newer), tuple(earlier), contradicting)


def _find_contradicting(
    number: int, written_at: int | None, paths: dict[int, str], files: ByteSource
) -> tuple[int, ...]:
    if written_at is None:
        return ()
    (own_run,) = (run for run in _consecutive_runs({*paths, number}) if number in run)
    below = [n for n in own_run if n < number]
    neighbours = [*below[:1], *below[1:][-_MAX_NEIGHBOURS:]]
    neighbours += [n for n in own_run if n > number][:_MAX_NEIGHBOURS]
    times = ((n, completed_at(paths[n], files)) for n in neighbours)
    return tuple(
        n
        for n, at in times
        if at is not None and (at - written_at if n < number else written_at - at) > MIN_GAP_MS
    )


def numbered_checkpoints(directory: str, names: Iterable[str]) -> list[tuple[int, str]]:
    """Return (number, path) for each ``chk-<n>``, complete or not, lowest first."""
    paths = ((checkpoint_number(name), join(directory, name)) for name in names)
    return sorted((n, path) for n, path in paths if n is not None)


def is_complete(checkpoint: str, files: ByteSource) -> bool:
    return files.is_file(join(checkpoint, METADATA_FILE))


def completed_at(checkpoint: str, files: ByteSource) -> int | None:
    """Return the time when ``_metadata`` was written, in epoch milliseconds.

    The result is None if the file does not exist or if its time is unknown.
    """
    try:
        return files.modified_at(join(checkpoint, METADATA_FILE))
    except FileNotFoundError:
        return None


def _consecutive_runs(numbers: Iterable[int]) -> list[list[int]]:
    """Return the runs of consecutive numbers, in ascending order."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _last_written(run: list[int], paths: dict[int, str], files: ByteSource) -> int | None:
    for number in reversed(run[-_MAX_TRIED_OF_A_RUN:]):
        at = completed_at(paths[number], files)
        if at is not None:
            return at
    return None
