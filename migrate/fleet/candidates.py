"""Candidates: directories that may be checkpoints; which of them stand for their jobs, how they are
shared out among tasks, and how they are read.

Whatever is wrong with one, it is read as a ``Failure`` that says why, and the others go on.
"""

from __future__ import annotations

import heapq
import posixpath
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

from decoder import DecodeError, ErrorKind, read_checkpoint
from decoder.storage import checkpoint_number
from migrate.inputs.flink.extract import Extraction, extract
from migrate.storage.files import Files, MissingExtra

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_LONG_MAX = (1 << 63) - 1

# A task is worth its start, and what is lost with an executor is soon read again.
_MOST_CANDIDATES = 250
_MOST_BYTES = 32 * 1024 * 1024
# What a checkpoint costs besides its metadata: finding and opening it, as bytes of metadata.
_BYTES_OF_ONE = 32 * 1024
# What is read ahead from a store, each from another checkpoint; botocore keeps ten connections.
_AHEAD = 8
# A larger one is read when its turn comes.
_LARGEST_AHEAD = 4 * 1024 * 1024


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

    @property
    def metadata_bytes(self) -> int | None:
        return self.candidate.metadata_bytes


_Item = TypeVar("_Item", Candidate, Marked)


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
    items: Sequence[_Item], shares: int | None = None, most: int = _MOST_CANDIDATES
) -> list[list[_Item]]:
    """Cut into ``shares``; by default into as many as their sizes and number need.

    The largest is given away first, each to the share that has the least so far: a giant ends up
    alone, thousands of small ones together. No share is empty, and each keeps the given order.

    Args:
        most: how many a share may hold, where ``shares`` is not given.
    """
    if shares is None:
        size = sum(item.metadata_bytes or 0 for item in items)
        shares = max(-(-len(items) // most), -(-size // _MOST_BYTES))
    shares = min(shares, len(items))
    packed: list[list[int]] = [[] for _ in range(shares)]
    lightest = [(0, index) for index in range(shares)]
    costs = [_BYTES_OF_ONE + (item.metadata_bytes or 0) for item in items]
    for place in sorted(range(len(items)), key=lambda place: -costs[place]):
        cost, index = lightest[0]
        packed[index].append(place)
        heapq.heapreplace(lightest, (cost + costs[place], index))
    return [[items[place] for place in sorted(share)] for share in packed]


def read_candidate(
    candidate: Candidate, files: Files, *, allow_external_files: bool = False
) -> Extraction | Failure:
    """Read one checkpoint; whatever is wrong with it, it comes back as a Failure.

    The newest of a job is read through the job's directory, so that a checkpoint which Flink
    completes or deletes meanwhile does no harm.
    """
    if candidate.failure is not None:
        return candidate.failure
    path = candidate.pointer
    if candidate.newest and candidate.job_directory is not None:
        path = candidate.job_directory
    try:
        return extract(read_checkpoint(path, files, allow_external_files=allow_external_files))
    except DecodeError as error:
        return Failure(error.kind.value, str(error))
    except (MissingExtra, ImportError) as error:
        return Failure("missing package", f"{candidate.pointer}: {error}")
    except Exception as error:  # a bug of ours must not cost the others
        return Failure("internal error", f"{candidate.pointer}: {type(error).__name__}: {error}")


def read_each(
    candidates: Iterable[Candidate], files: Files, *, allow_external_files: bool = False
) -> Iterator[tuple[Candidate, Extraction | Failure]]:
    """Each with what came of it, in their order; a store is asked for a few at once."""
    read = partial(read_candidate, files=files, allow_external_files=allow_external_files)
    under_way: deque[tuple[Candidate, Future[Extraction | Failure] | None]] = deque()

    def next_one() -> tuple[Candidate, Extraction | Failure]:
        candidate, reading = under_way.popleft()
        return candidate, reading.result() if reading is not None else read(candidate)

    pool = ThreadPoolExecutor(_AHEAD)  # no thread is started before something is submitted
    try:
        for candidate in candidates:
            ahead = "://" in candidate.pointer and (
                (candidate.metadata_bytes or 0) <= _LARGEST_AHEAD
            )
            under_way.append((candidate, pool.submit(read, candidate) if ahead else None))
            if len(under_way) == _AHEAD:
                yield next_one()
        while under_way:
            yield next_one()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # see decoder.operator_state.fetch


class Read(NamedTuple):
    """What came of a candidate.

    Attributes:
        newest: whether it stands for its job; each job has one that does.
        listed: whether it is one of the candidates, each of which is listed once; one that is not
            stands in for the newest of a job, which has vanished meanwhile.
    """

    candidate: Candidate
    outcome: Extraction | Failure
    newest: bool
    listed: bool


def read_marked(share: Sequence[Marked], files: Files) -> Iterator[Read]:
    """Read each while its job goes on, and deletes older checkpoints.

    Where the newest of a job has vanished, the one that is the newest by now stands in for the job.
    Most often Flink was about to complete that one, and it is then listed itself too.
    """
    outcomes = read_each([one.candidate for one in share], files)
    for one, (candidate, outcome) in zip(share, outcomes, strict=True):
        if one.newest and isinstance(outcome, Failure) and _may_have_vanished(candidate, outcome):
            now = read_candidate(replace(candidate, newest=True), files)
            if isinstance(now, Extraction):
                yield Read(candidate, outcome, newest=False, listed=True)
                listed = now.checkpoint.checkpoint_id not in one.numbers
                yield Read(candidate, now, newest=True, listed=listed)
                continue
        yield Read(candidate, outcome, one.newest, listed=True)


def _may_have_vanished(candidate: Candidate, failure: Failure) -> bool:
    was_there = candidate.job_directory is not None and candidate.metadata_bytes is not None
    return was_there and failure.kind == ErrorKind.NOT_FOUND.value
