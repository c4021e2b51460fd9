"""Candidate: a directory that is to be read as a checkpoint; Failure: why one could not be."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from decoder.storage import checkpoint_number

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a checkpoint, or a directory that may hold some, could not be read.

    Attributes:
        kind: a value of ``decoder.ErrorKind``, ``missing package`` (a library that its storage or
            its compression needs is not installed where it was read), or ``internal error`` (a bug
            of ours: it costs this checkpoint alone).
        message: what is wrong and where, in one line.
    """

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of an inventory: a checkpoint, complete or not, or a directory that failed.

    Attributes:
        pointer: the directory that holds ``_metadata``, or should; absolute, or a URL.
        job_directory: the directory of its job, which holds the ``chk-<n>``; None for a savepoint.
        metadata_bytes: the size of its ``_metadata``; None where there is none (yet).
        newest: whether it stands for the newest complete checkpoint of its job directory: it is
            then read as such, so that one which Flink completes meanwhile takes its place.
        failure: why this directory could not even be looked at; None where it could.
    """

    pointer: str
    job_directory: str | None = None
    metadata_bytes: int | None = None
    newest: bool = False
    failure: Failure | None = None

    @property
    def job_id(self) -> str | None:
        """The job's id, where its directory is named by it (Flink's default)."""
        return job_id_of(self.job_directory)

    @property
    def number(self) -> int | None:
        """``n`` of ``chk-<n>``, where it is one that Flink could have given."""
        number = checkpoint_number(self.pointer)
        return number if number is not None and number <= _LONG_MAX else None


def job_id_of(job_directory: str | None) -> str | None:
    """The job id that a job's directory is named by, or None where it is named otherwise."""
    name = posixpath.basename(job_directory) if job_directory is not None else ""
    return name if _JOB_ID.fullmatch(name) else None
