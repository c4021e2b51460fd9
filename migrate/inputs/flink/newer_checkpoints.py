"""Newer checkpoints in a job's checkpoint directory, and the job's checkpoint interval.

An empty consumer group does not show that a job has stopped, because KafkaSource does not join a
group. A newer checkpoint shows that the job kept running. If no checkpoint is written for longer
than the checkpoint interval, the job has probably stopped.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from decoder import ByteSource, list_checkpoints
from decoder.checkpoint import translate_os_errors
from decoder.checkpoint_order import completed_at, find_siblings
from decoder.storage import LocalFiles, checkpoint_number
from migrate.inputs.watch import longest_interval

# The number of recent checkpoints from which the interval is measured. The job may have had a
# different interval before these checkpoints.
_LAST_CHECKPOINTS = 5


@dataclass(frozen=True, slots=True)
class NewerCheckpoints:
    """The newer complete checkpoints in a job's directory, and the job's checkpoint interval.

    Attributes:
        newer: the numbers of newer checkpoints, in the order of ``Siblings.newer``.
        interval_s: the result of ``longest_interval`` for the most recent checkpoints, in seconds;
            None if the times of fewer than two checkpoints are known.
    """

    newer: tuple[int, ...]
    interval_s: float | None


def find_newer_checkpoints(
    pointer: str, checkpoint_id: int, source: ByteSource | None = None
) -> NewerCheckpoints | None:
    """Return the newer checkpoints next to ``chk-<n>``; None for a savepoint.

    Args:
        pointer: the checkpoint's directory, even if Flink has deleted it in the meantime.
        checkpoint_id: the checkpoint's number.
        source: the storage to read from; local files by default.

    Raises:
        DecodeError: the job's checkpoint directory is missing, or cannot be read.
    """
    directory = pointer.rstrip("/")
    name = checkpoint_number(directory)
    if name is None:
        return None
    files = source if source is not None else LocalFiles()
    complete = list_checkpoints(posixpath.dirname(directory), files)
    with translate_os_errors(directory):
        siblings = find_siblings(directory, checkpoint_id, completed_at(directory, files), files)
        another_run = {
            *siblings.earlier_run,
            *(number for number in siblings.newer if number < checkpoint_id),
        }
        if name != checkpoint_id:
            another_run.add(name)  # the directory is a copy with a different name
        own = [(number, path) for number, path in complete if number not in another_run]
        written = [(number, completed_at(path, files)) for number, path in own[-_LAST_CHECKPOINTS:]]
    return NewerCheckpoints(
        siblings.newer,
        longest_interval((number, time) for number, time in written if time is not None),
    )
