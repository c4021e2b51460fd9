"""Candidates: directories that are to be read as checkpoints, and how they are shared out.

A ``Failure`` says why one could not be read; ``mark_newest`` tells which of them stand for their
jobs, ``pack`` cuts them into shares of about the same work.
"""

from __future__ import annotations

import heapq
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decoder.storage import checkpoint_number

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_LONG_MAX = (1 << 63) - 1

# A task is worth its start, and what is lost with an executor is soon read again.
_MOST_CANDIDATES = 250
_MOST_BYTES = 32 * 1024 * 1024
# What a checkpoint costs besides its metadata: finding and opening it, as bytes of metadata.
_BYTES_OF_ONE = 32 * 1024


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


@dataclass(frozen=True, slots=True)
class Marked:
    """A candidate, and whether it stands for its job.

    Attributes:
        newest: whether it is the newest complete one of its job's directory, or lies in none.
        numbers: of the newest, the numbers of all of its job's that are candidates.
    """

    candidate: Candidate
    newest: bool
    numbers: frozenset[int] = frozenset()


def mark_newest(candidates: Iterable[Candidate]) -> list[Marked]:
    """Each job's newest complete checkpoint marked as such, in a list of all of them.

    Where none of a job's is complete, its newest is; of what lies in no job's directory each is.
    """
    candidates = list(candidates)
    jobs: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        jobs.setdefault(candidate.job_directory or candidate.pointer, []).append(candidate)
    newest = {max(of_job, key=_rank).pointer: of_job for of_job in jobs.values()}
    return [
        Marked(one, True, frozenset(_number(other) for other in newest[one.pointer]))
        if one.pointer in newest
        else Marked(one, False)
        for one in candidates
    ]


def _rank(candidate: Candidate) -> tuple[bool, int]:
    return candidate.metadata_bytes is not None, _number(candidate)


def _number(candidate: Candidate) -> int:
    return candidate.number if candidate.number is not None else -1


def pack(
    candidates: Sequence[Candidate], shares: int | None = None, most: int = _MOST_CANDIDATES
) -> list[list[Candidate]]:
    """Cut into ``shares``, or as many as their size asks for and their number, at ``most`` a share.

    The largest is given away first, each to the share that has the least so far: a giant ends up
    alone, thousands of small ones together. No share is empty, and each keeps the given order.
    """
    if shares is None:
        size = sum(candidate.metadata_bytes or 0 for candidate in candidates)
        shares = max(-(-len(candidates) // most), -(-size // _MOST_BYTES))
    shares = min(shares, len(candidates))
    packed: list[list[int]] = [[] for _ in range(shares)]
    lightest = [(0, index) for index in range(shares)]
    costs = [_BYTES_OF_ONE + (candidate.metadata_bytes or 0) for candidate in candidates]
    for place in sorted(range(len(candidates)), key=lambda place: -costs[place]):
        cost, index = lightest[0]
        packed[index].append(place)
        heapq.heapreplace(lightest, (cost + costs[place], index))
    return [[candidates[place] for place in sorted(share)] for share in packed]


def pack_marked(marked: Sequence[Marked], most: int = _MOST_CANDIDATES) -> list[list[Marked]]:
    """The same of candidates that are marked."""
    by_pointer = {one.candidate.pointer: one for one in marked}
    return [
        [by_pointer[candidate.pointer] for candidate in share]
        for share in pack([one.candidate for one in marked], most=most)
    ]
