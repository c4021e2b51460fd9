"""What stands beside a ``chk-<n>``, and which of it is newer.

A job completes its checkpoints in the order of their numbers: an older one that is still pending is
dropped (CheckpointCoordinator#dropSubsumedCheckpoints @ Flink 2.2.0). But a job that starts without
its state counts from 1 again, and where its directory stays the same (a job id that is fixed, or
``execution.checkpointing.create-subdir: false``), those of an earlier run lie beside it under
higher numbers. Only the times tell then, and only with care: a copy may have the times, and so the
order, of its copying. Hence numbers without a gap between them are taken for one run, in which the
number decides; and of another run the times must differ by more than a moment. Two runs may still
meet without a gap: where times contradict the numbers of one run, that is told.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from decoder.storage import METADATA_FILE, ByteSource, checkpoint_number, join

# Milliseconds: longer than small checkpoints lie apart in a copy, and shorter than a job takes from
# its start to its first checkpoint.
_APART = 10_000
# Of how many runs of lower numbers the time is asked for, and of how many checkpoints of each: the
# last ones may not be complete. A store is asked for one after another.
_MOST_RUNS = 16
_MOST_PENDING = 3
# Of how many numbers of its own run, below and above, the time is asked for.
_MOST_OF_ITS_RUN = 8


@dataclass(frozen=True, slots=True)
class Siblings:
    """The numbers of complete checkpoints beside one.

    Attributes:
        newer: those that are newer, the last written at the end as far as that shows.
        earlier_run: those of higher numbers that were written before it, ascending.
        contradicting: those without a gap to it whose times say the other of what their numbers
            say, ascending: of a lower number and written after it, or higher and before. The
            numbers decide.
    """

    newer: tuple[int, ...] = ()
    earlier_run: tuple[int, ...] = ()
    contradicting: tuple[int, ...] = ()


def find_siblings(
    checkpoint: str, number: int, written_at: int | None, files: ByteSource
) -> Siblings:
    """What stands beside a checkpoint; nothing stands beside a savepoint.

    A store is asked for each higher number, for the times of those next to it and of the lowest
    without a gap and, where numbers are missing in between, for the time of some checkpoint on the
    other side of each such gap.

    Args:
        checkpoint: its directory, absolute.
        number: its number.
        written_at: when its ``_metadata`` was written, in milliseconds of the epoch; where that is
            not known, the numbers alone tell.
        files: where it is.
    """
    if checkpoint_number(checkpoint) is None:
        return Siblings()
    parent = posixpath.dirname(checkpoint)
    paths = dict(numbered(parent, files.list_directory(parent) or []))
    if paths.keys() <= {number}:
        return Siblings()
    newer: list[int] = []
    earlier: list[int] = []
    later: list[tuple[int, list[int]]] = []
    runs_below = 0
    for run in _runs({*paths, number}):
        if run[-1] < number:
            runs_below += 1
            if written_at is None or runs_below > _MOST_RUNS:
                continue
            at = _last_written(run, paths, files)
            if at is not None and at - written_at > _APART:
                later.append((at, [n for n in run if is_complete(paths[n], files)]))
            continue
        complete = [n for n in run if n > number and is_complete(paths[n], files)]
        if not complete or number in run or written_at is None:
            newer += complete
            continue
        at = _last_written(complete, paths, files)
        if at is None:
            newer += complete
        elif written_at - at > _APART:
            earlier += complete
        else:
            later.append((at, complete))
    newer += [n for _, run in sorted(later) for n in run]
    contradicting = _contradicting(number, written_at, paths, files)
    return Siblings(tuple(newer), tuple(earlier), contradicting)


def _contradicting(
    number: int, written_at: int | None, paths: dict[int, str], files: ByteSource
) -> tuple[int, ...]:
    if written_at is None:
        return ()
    (own,) = (run for run in _runs({*paths, number}) if number in run)
    below = [n for n in own if n < number]
    asked = [*below[:1], *below[1:][-_MOST_OF_ITS_RUN:]]
    asked += [n for n in own if n > number][:_MOST_OF_ITS_RUN]
    times = ((n, completed_at(paths[n], files)) for n in asked)
    return tuple(
        n
        for n, at in times
        if at is not None and (at - written_at if n < number else written_at - at) > _APART
    )


def numbered(directory: str, names: Iterable[str]) -> list[tuple[int, str]]:
    """(number, path) of each ``chk-<n>`` in a directory, complete or not, the lowest first."""
    found = ((checkpoint_number(name), join(directory, name)) for name in names)
    return sorted((n, path) for n, path in found if n is not None)


def is_complete(checkpoint: str, files: ByteSource) -> bool:
    return files.is_file(join(checkpoint, METADATA_FILE))


def completed_at(checkpoint: str, files: ByteSource) -> int | None:
    """When its ``_metadata`` was written, in milliseconds of the epoch; None where it is not there,
    or its time is not kept."""
    try:
        return files.modified_at(join(checkpoint, METADATA_FILE))
    except FileNotFoundError:
        return None


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending, each without a gap."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _last_written(run: list[int], paths: dict[int, str], files: ByteSource) -> int | None:
    for number in reversed(run[-_MOST_PENDING:]):
        at = completed_at(paths[number], files)
        if at is not None:
            return at
    return None
