"""Inventory: each job of an estate by its newest complete checkpoint, and what can move today."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from decoder import ErrorKind
from migrate.fleet.lag import OBSTACLES, TOPIC_GONE, Lag
from migrate.fleet.rows import Row
from migrate.fleet.views import VIEWS, View
from migrate.model.wording import counted, join_some

# How a root ends that is not there, and a directory that cannot be listed.
_NOWHERE = {
    kind.value for kind in (ErrorKind.NOT_FOUND, ErrorKind.UNREADABLE, ErrorKind.UNAVAILABLE)
}
# How many topics that are gone a line names.
_NAMED = 5
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WORDS = dict(OBSTACLES.values())
_NAMES = [column.name for column in VIEWS[View.CHECKPOINTS]]


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


def scanned_job(row: Row, lags: Sequence[Lag] | None) -> ScannedJob:
    """The line of a job: its checkpoint's row, and what a broker said of each of its positions.

    Args:
        row: of the view ``checkpoints``.
        lags: None where no broker was asked.
    """
    told = dict(zip(_NAMES, row, strict=True))
    lags = lags or ()
    known = [lag.records for lag in lags if lag.records is not None]
    found = Counter(lag.obstacle for lag in lags)
    at_broker = {code: found[code] for code in _WORDS if found[code]}
    gone = {lag.topic for lag in lags if lag.obstacle == TOPIC_GONE}
    return ScannedJob(
        pointer=told["pointer"],
        job_directory=told["job_directory"],
        job_id=told["job_id"],
        checkpoint_id=told["checkpoint_id"],
        checkpoint_kind=told["checkpoint_kind"],
        stop=told["stop"],
        written_at=_instant(told["written_at"]),
        sources=told["sources"],
        topics=told["topics"] or (),
        positions=told["positions"],
        lag=sum(known) if known else None,
        lag_unknown=len(lags) - len(known),
        obstacles=tuple(sorted({*(told["obstacles"] or ()), *at_broker})),
        why_not=(
            *([told["why_not"]] if told["why_not"] else ()),
            *_in_words(at_broker, sorted(gone)),
        ),
        to_check=told["to_check"] or (),
        error_kind=told["error_kind"],
        error=told["error"],
    )


def _instant(milliseconds: int | None) -> datetime | None:
    return EPOCH + timedelta(milliseconds=milliseconds) if milliseconds is not None else None


def _in_words(at_broker: Mapping[str, int], topics_gone: Sequence[str]) -> Iterator[str]:
    for code, number in at_broker.items():
        what = _WORDS[code]
        if code == TOPIC_GONE:
            what += f": {join_some(topics_gone, _NAMED)}"
        yield f"{counted(number, 'position')} {what}"


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
class BulkPlan:
    """What became of the plan of one job.

    Attributes:
        group: the consumer group it is for; None plans for Spark.
        file: the name of its file; None where there is none.
        warnings: what is not refused, and must be known, of a plan that was made.
        reasons: why none was made.
        failure: what ended the work on this one before it was clear whether it can be planned, a
            bug of ours perhaps; None where nothing did.
    """

    group: str | None
    file: str | None
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    failure: Exception | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a scan has found.

    Attributes:
        jobs: each job by its newest complete checkpoint, and each savepoint; sorted by pointer.
        checkpoints, unreadable: how many checkpoints were read, and how many could not be.
        plans: what became of the plan of each job, by pointer; None where none was asked for.
    """

    jobs: tuple[ScannedJob, ...]
    checkpoints: int
    unreadable: int
    plans: dict[str, BulkPlan] | None = None

    @property
    def failures(self) -> list[Exception]:
        """What ended the planning of a job, of each that it did."""
        plans = (self.plans or {}).values()
        return [plan.failure for plan in plans if plan.failure is not None]

    @property
    def totals(self) -> Totals:
        return totals(self.jobs)
