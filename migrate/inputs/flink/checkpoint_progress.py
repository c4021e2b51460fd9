"""Signs that a job has continued since a checkpoint, and how long to wait for such a sign.

``migrate.inputs.spark_progress`` is the counterpart for a Spark query.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace

from decoder import DecodeError
from decoder.storage import METADATA_FILE, checkpoint_number, join
from migrate.inputs.flink.job_id import job_id_of
from migrate.inputs.flink.newer_checkpoints import find_newer_checkpoints
from migrate.inputs.watch import LONGEST_WAIT, NO_WATCH, Watch, possible_wait, seconds_since
from migrate.model.log import log
from migrate.model.positions import Origin
from migrate.storage.files import Files, MissingExtra


def checkpoint_signs(origin: Origin) -> Iterator[str]:
    """Yield signs in the job's checkpoint directory that the job has continued, one line each.

    Log a note if the directory cannot be read. Checkpoints in ``origin.newer`` do not count as
    signs, because they were already known. A missing savepoint is no sign, because its owner may
    have moved it (``is_missing_savepoint``).
    """
    if origin.kind != "checkpoint":
        return
    files, directory = Files(), posixpath.dirname(origin.pointer)
    try:
        is_deleted = not files.is_file(join(origin.pointer, METADATA_FILE))
        if is_deleted:
            log.info(f"note: {origin.pointer} no longer exists")
        checkpoints = find_newer_checkpoints(origin.pointer, origin.number, files)
        newer = completed_since(origin, checkpoints.newer if checkpoints is not None else ())
        has_directory = is_deleted and files.list_directory(directory) is not None
    except (DecodeError, MissingExtra, OSError) as error:
        log.info(f"note: the job's checkpoints do not show whether the job kept running; {error}")
        return
    if newer:
        yield f"it has completed chk-{newer[-1]}"
    elif has_directory and not _is_savepoint(origin):
        yield (
            f"{origin.pointer} was deleted; Flink deletes a checkpoint after newer checkpoints "
            "are complete"
        )
    elif is_deleted and not has_directory:
        log.info(
            "note: the job's checkpoints do not show whether the job kept running; "
            f"{directory} is not visible from this machine"
        )


def is_missing_savepoint(origin: Origin) -> bool:
    """Return whether the origin is a savepoint that is no longer in its folder.

    Return False if the folder cannot be read; ``checkpoint_signs`` logs a note about this.
    """
    if not _is_savepoint(origin):
        return False
    files = Files()
    try:
        return (
            not files.is_file(join(origin.pointer, METADATA_FILE))
            and files.list_directory(posixpath.dirname(origin.pointer)) is not None
        )
    except (DecodeError, MissingExtra, OSError):
        return False


def _is_savepoint(origin: Origin) -> bool:
    return origin.kind == "checkpoint" and checkpoint_number(origin.pointer) is None


def completed_since(origin: Origin, newer: Sequence[int]) -> Sequence[int]:
    """Return the newer checkpoints that were completed after the plan was made."""
    if not origin.newer:
        return newer
    known = origin.newer[-1]
    if known in newer:
        return newer[newer.index(known) + 1 :]
    return [number for number in newer if number > known]


def find_checkpoint_watch(origin: Origin) -> Watch:
    """Return how long to wait for the job's next checkpoint.

    Return ``NO_WATCH`` if a wait would reveal nothing, for example if the job was stopped with the
    checkpoint, or if the origin is not a ``chk-<n>`` directory.
    """
    if origin.kind != "checkpoint" or origin.stopped or checkpoint_number(origin.pointer) is None:
        return NO_WATCH
    try:
        checkpoints = find_newer_checkpoints(origin.pointer, origin.number, Files())
    except (DecodeError, MissingExtra):
        return NO_WATCH
    interval = checkpoints.interval_s if checkpoints is not None else None
    age = age_of(origin)
    in_a_jobs_directory = job_id_of(posixpath.dirname(origin.pointer)) is not None
    is_fresh = age is not None and age <= LONGEST_WAIT and in_a_jobs_directory
    watch = Watch(interval, age, possible_wait(interval, is_fresh=is_fresh))
    if interval is None or origin.copied_from is None:
        return watch
    # The times may belong to the copy, so a missing newer checkpoint proves nothing.
    return NO_WATCH if watch.is_quiet else replace(watch, interval=None)


def age_of(origin: Origin) -> float | None:
    """Return the time since the origin was written, in seconds; None if unknown."""
    return seconds_since(origin.written_at) if origin.written_at is not None else None
