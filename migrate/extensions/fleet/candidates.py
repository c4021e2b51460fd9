"""Split candidates into chunks, and read them.

A candidate is a directory that may be a checkpoint. Reading a candidate never raises an error. An
error is returned as a ``Failure``, so the other candidates are still read.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from decoder import DecodeError, read_checkpoint
from decoder.storage import checkpoint_number
from migrate.inputs.flink.extract import Extraction, extract_with_state
from migrate.inputs.flink.job_id import job_id_of
from migrate.storage.files import Files, MissingExtra

_LONG_MAX = (1 << 63) - 1

# The limits on the average chunk: the number of candidates, and the number of bytes of metadata. A
# chunk is large enough to justify starting a task, and small enough to be retried quickly.
_MAX_CANDIDATES = 250
_MAX_BYTES = 32 * 1024 * 1024
# The cost of finding and opening a checkpoint, expressed as an equivalent number of bytes of
# metadata.
_OPEN_COST = 32 * 1024
# The number of checkpoints to read ahead from an object store. It is lower than the number of
# connections that botocore keeps (ten).
_READ_AHEAD = 8
# The maximum size of metadata that is read ahead, in bytes.
_MAX_BYTES_AHEAD = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason that a checkpoint or a directory of checkpoints could not be read.

    Attributes:
        kind: a value of ``decoder.ErrorKind``, ``missing package`` (a library for the storage or
            the compression is not installed on the reading machine), or ``internal error`` (a bug
            in ``migrate``).
        message: the error and the path, in one line.
    """

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A complete or incomplete checkpoint, or a directory that could not be listed.

    Attributes:
        pointer: the directory of ``_metadata``, or the directory that could not be listed;
            absolute, or a URL.
        job_directory: the job's directory, which contains the ``chk-<n>`` directory; None for a
            savepoint.
        metadata_bytes: the size of the ``_metadata`` file; None if the file does not exist (yet).
        read_newest: True to read the newest complete checkpoint of the job directory, instead of
            ``pointer``.
        chk_numbers: if this is the newest checkpoint of its job, the checkpoint numbers of all the
            job's candidates; otherwise None. A savepoint has no number, so the set contains only
            -1. ``mark_newest`` sets this attribute.
        failure: the reason that this directory could not be listed; None if the directory was
            listed.
    """

    pointer: str
    job_directory: str | None = None
    metadata_bytes: int | None = None
    read_newest: bool = False
    chk_numbers: frozenset[int] | None = None
    failure: Failure | None = None

    @property
    def job_id(self) -> str | None:
        """Return the job ID if it is the name of the job's directory (Flink's default)."""
        return job_id_of(self.job_directory)

    @property
    def number(self) -> int | None:
        """Return ``n`` of ``chk-<n>`` if it fits into a Java long, else None."""
        number = checkpoint_number(self.pointer)
        return number if number is not None and number <= _LONG_MAX else None


def mark_newest(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return all candidates, with ``chk_numbers`` set for each job's newest complete candidate.

    ``chk_numbers`` is also set for every savepoint, and for the newest candidate of a job without a
    complete candidate.
    """
    candidates = list(candidates)
    # For each job, one tuple per candidate: whether it is complete, its number, and its pointer.
    jobs: dict[str, list[tuple[bool, int, str]]] = {}
    for candidate in candidates:
        number = candidate.number
        ranked = (candidate.metadata_bytes is not None, -1 if number is None else number)
        job = candidate.job_directory or candidate.pointer
        jobs.setdefault(job, []).append((*ranked, candidate.pointer))
    newest = {
        max(ranked)[2]: frozenset(number for _, number, _ in ranked) for ranked in jobs.values()
    }
    return [
        replace(candidate, chk_numbers=newest[candidate.pointer])
        if candidate.pointer in newest
        else candidate
        for candidate in candidates
    ]


def split_candidates(
    candidates: Sequence[Candidate], chunks: int | None = None, limit: int = _MAX_CANDIDATES
) -> list[list[Candidate]]:
    """Split candidates into chunks of about the same cost.

    No chunk is empty, and each chunk keeps the order of the candidates.

    Args:
        candidates: the candidates to split.
        chunks: the maximum number of chunks; None to compute it from the number and size of the
            candidates.
        limit: the maximum average number of candidates per chunk, if ``chunks`` is None.
    """
    costs = [_OPEN_COST + (candidate.metadata_bytes or 0) for candidate in candidates]
    if chunks is None:
        size = sum(candidate.metadata_bytes or 0 for candidate in candidates)
        chunks = max(-(-len(candidates) // limit), -(-size // _MAX_BYTES))
    chunks = min(chunks, len(candidates))
    packed: list[list[int]] = [[] for _ in range(chunks)]
    lightest = [(0, chunk) for chunk in range(chunks)]
    for index in sorted(range(len(candidates)), key=lambda index: -costs[index]):
        cost, chunk = lightest[0]
        packed[chunk].append(index)
        heapq.heapreplace(lightest, (cost + costs[index], chunk))
    return [[candidates[index] for index in sorted(indexes)] for indexes in packed]


def read_candidate(
    candidate: Candidate, files: Files, *, allow_external_files: bool = False
) -> Extraction | Failure:
    """Read one checkpoint; return a ``Failure`` if it cannot be read."""
    if candidate.failure is not None:
        return candidate.failure
    path = candidate.pointer
    if candidate.read_newest and candidate.job_directory is not None:
        path = candidate.job_directory
    try:
        checkpoint = read_checkpoint(path, files, allow_external_files=allow_external_files)
        return extract_with_state(checkpoint, files, allow_external_files=allow_external_files)
    except DecodeError as error:
        return Failure(error.kind.value, str(error))
    except (MissingExtra, ImportError) as error:
        return Failure("missing package", f"{candidate.pointer}: {error}")
    except Exception as error:  # a bug in migrate must not prevent reading other candidates
        return Failure("internal error", f"{candidate.pointer}: {type(error).__name__}: {error}")


def read_each(
    candidates: Iterable[Candidate], files: Files, *, allow_external_files: bool = False
) -> Iterator[tuple[Candidate, Extraction | Failure]]:
    """Read candidates in order.

    Threads read candidates at URLs ahead of time, unless the metadata is large.
    """
    read = partial(read_candidate, files=files, allow_external_files=allow_external_files)
    queue: deque[tuple[Candidate, Future[Extraction | Failure] | None]] = deque()

    def read_first() -> tuple[Candidate, Extraction | Failure]:
        candidate, future = queue.popleft()
        return candidate, future.result() if future is not None else read(candidate)

    pool = ThreadPoolExecutor(_READ_AHEAD)  # starts no thread until something is submitted
    try:
        for candidate in candidates:
            small = (candidate.metadata_bytes or 0) <= _MAX_BYTES_AHEAD
            ahead = "://" in candidate.pointer and small
            queue.append((candidate, pool.submit(read, candidate) if ahead else None))
            if len(queue) == _READ_AHEAD:
                yield read_first()
        while queue:
            yield read_first()
    finally:
        # Waiting for the threads could deadlock (see ``decoder.operator_state.fetch``).
        pool.shutdown(wait=False, cancel_futures=True)
