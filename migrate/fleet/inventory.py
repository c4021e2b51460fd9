"""Inventory: each job of an estate by its newest complete checkpoint, and what can move today."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from decoder.errors import ErrorKind
from migrate.fleet.candidates import Candidate

# How a root ends that is not there, and a directory that cannot be listed.
_NOWHERE = {
    kind.value for kind in (ErrorKind.NOT_FOUND, ErrorKind.UNREADABLE, ErrorKind.UNAVAILABLE)
}


class TableFormat(str, Enum):
    """What the tables of an estate are written as."""

    PARQUET = "parquet"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class ScannedJob:
    """A job, by its newest complete checkpoint; or a savepoint, which lies in no job's directory.

    Attributes:
        pointer: the checkpoint's directory: what the other commands take as CHK.
        job_id: the job's id, where its directory is named by it.
        checkpoint_id, checkpoint_kind, stop, written_at: of the checkpoint; None where it could
            not be read.
        sources: how many Kafka sources it has.
        topics: what they read, sorted.
        positions: how many topic-partitions they read, each source's counted.
        lag: with a broker, how many records lay between its positions and the log ends: an upper
            bound. None without one, and where that is known of no position.
        lag_unknown: of how many positions it is not known.
        obstacles: why it cannot move today, as codes, sorted; of what the broker says, ``expired``,
            ``beyond-end``, ``topic-gone`` and ``partition-gone``. Empty where it can.
        why_not: the same in words.
        to_check: what is to be made sure of before it moves, as codes, sorted.
        error_kind, error: why its checkpoint could not be read.
    """

    pointer: str
    job_directory: str | None
    job_id: str | None
    checkpoint_id: int | None = None
    checkpoint_kind: str | None = None
    stop: str | None = None
    written_at: datetime | None = None
    sources: int | None = None
    topics: tuple[str, ...] = ()
    positions: int | None = None
    lag: int | None = None
    lag_unknown: int = 0
    obstacles: tuple[str, ...] = ()
    why_not: tuple[str, ...] = ()
    to_check: tuple[str, ...] = ()
    error_kind: str | None = None
    error: str | None = None

    @property
    def readable(self) -> bool:
        return self.error_kind is None

    @property
    def movable(self) -> bool:
        """Whether its positions can be moved as they are."""
        return self.readable and not self.obstacles

    @property
    def label(self) -> str:
        """A name for it: the job's id, or that of the directory that stands for it."""
        return self.job_id or posixpath.basename(self.job_directory or self.pointer)


@dataclass(frozen=True, slots=True)
class Totals:
    """An inventory in numbers.

    Attributes:
        jobs, savepoints: how many of both; what is said of jobs below is of both.
        nowhere: how many roots are not there, and directories could not be looked into.
        obstacles: how many jobs each stands in the way of, the most frequent first.
        to_check: of how many that can move each is to be checked first, likewise.
        errors: how many jobs cannot be read for what kind of reason, likewise.
    """

    jobs: int
    savepoints: int
    nowhere: int
    movable: int
    positions: int
    lag: int | None
    obstacles: dict[str, int]
    to_check: dict[str, int]
    errors: dict[str, int]

    @property
    def unreadable(self) -> int:
        return sum(self.errors.values())

    @property
    def blocked(self) -> int:
        return self.jobs + self.savepoints + self.nowhere - self.movable - self.unreadable


def totals(jobs: Sequence[ScannedJob]) -> Totals:
    """What the jobs come to together."""
    known = [job.lag for job in jobs if job.lag is not None]
    alone = [job for job in jobs if job.job_directory is None]
    nowhere = sum(map(_is_nowhere, alone))
    return Totals(
        len(jobs) - len(alone),
        len(alone) - nowhere,
        nowhere,
        sum(job.movable for job in jobs),
        sum(job.positions or 0 for job in jobs),
        sum(known) if known else None,
        _most_frequent(code for job in jobs for code in job.obstacles),
        _most_frequent(code for job in jobs if job.movable for code in job.to_check),
        _most_frequent(job.error_kind for job in jobs if job.error_kind is not None),
    )


def _is_nowhere(job: ScannedJob) -> bool:
    """Of what lies in no job's directory, whether there is nothing that could be a savepoint; one
    whose files are gone still has its name."""
    named = posixpath.basename(job.pointer).startswith("savepoint-")
    return job.error_kind in _NOWHERE and not named


def _most_frequent(codes: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(codes).items(), key=lambda item: (-item[1], item[0])))


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
