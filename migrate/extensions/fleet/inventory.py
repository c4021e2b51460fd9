"""List each job's newest complete checkpoint, and the obstacles to a move."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from decoder import ErrorKind
from decoder.checkpoint_order import MIN_GAP_MS
from migrate.extensions.fleet.catalog import POSSIBLY_SUPERSEDED
from migrate.extensions.fleet.lag import OBSTACLES, TOPIC_GONE, UNREACHABLE, UNREACHABLE_WORDS, Lag
from migrate.extensions.fleet.rows import Row
from migrate.extensions.fleet.view_columns import VIEWS, CheckpointView
from migrate.inputs.flink.job_id import FIXED_JOB_ID, SAVEPOINT_NAME
from migrate.model.finding import Code
from migrate.model.warning import warn
from migrate.model.wording import counted, join_some

# The error kinds for a missing root and for a directory that cannot be listed.
_UNLISTABLE_KINDS = {
    kind.value for kind in (ErrorKind.NOT_FOUND, ErrorKind.UNREADABLE, ErrorKind.UNAVAILABLE)
}
# The maximum number of missing topics to list on a line.
_MAX_TOPICS = 5
_MIN_GAP = timedelta(milliseconds=MIN_GAP_MS)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WORDS = {**dict(OBSTACLES.values()), UNREACHABLE: UNREACHABLE_WORDS}
# The columns that a job copies unchanged from its checkpoint's row.
_COPIED_COLUMNS = (
    *("pointer", "job_directory", "job_id", "checkpoint_id", "checkpoint_kind", "stop"),
    *("sources", "positions", "error_kind", "error"),
)
_NAMES = [column.name for column in VIEWS[CheckpointView.CHECKPOINTS]]


@dataclass(frozen=True, slots=True)
class ScannedJob:
    """A job (represented by its newest complete checkpoint), or a savepoint without a job.

    An instance can also represent a missing root, or a directory that could not be listed.

    Attributes:
        pointer: the checkpoint's directory, which is the CHK argument of the other commands.
        job_id: the job ID, if it is the name of the job's directory.
        checkpoint_id, checkpoint_kind, stop, written_at: facts about the checkpoint. If the
            checkpoint could not be read, they are None, but ``checkpoint_id`` is still set if the
            path contains the ID.
        sources: the number of the job's Kafka sources.
        topics: the topics that the sources read, sorted.
        positions: the total number of topic-partitions in all sources.
        lag: the sum of the known lags; None without a broker, or if no lag is known. A lag is the
            log end offset minus the position; the number of records may be lower.
        lag_unknown: the number of positions without a lag; 0 without a broker.
        unlisted: the number of partitions that have records on the broker but no position in the
            checkpoint; 0 without a broker. ``lag`` does not include these partitions.
        obstacles: the codes of the obstacles to a move, sorted. The codes ``expired``,
            ``beyond-end``, ``topic-gone``, and ``partition-gone`` come from the broker. ``ran-on``
            may come from a comparison with a different run of the same job.
        why_not: the obstacles in words.
        to_check: the codes of the items to check before the job moves, sorted.
        error_kind, error: the reason that the checkpoint could not be read.
        operator_ids: the IDs of all operators in the checkpoint.
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
    unlisted: int = 0
    obstacles: tuple[str, ...] = ()
    why_not: tuple[str, ...] = ()
    to_check: tuple[str, ...] = ()
    error_kind: str | None = None
    error: str | None = None
    operator_ids: frozenset[str] = frozenset()

    @property
    def readable(self) -> bool:
        return self.error_kind is None

    @property
    def movable(self) -> bool:
        """Return whether the checkpoint was read and no obstacle to a move was found."""
        return self.readable and not self.obstacles

    @property
    def label(self) -> str:
        """Return a short name for the job: the job ID or, if unknown, the directory's name."""
        return self.job_id or posixpath.basename(self.job_directory or self.pointer)


def scanned_job(
    row: Row, operator_ids: frozenset[str], lags: Sequence[Lag] | None, unlisted: int
) -> ScannedJob:
    """Return a job, built from its checkpoint's row and from the lag of each position.

    Args:
        row: the checkpoint's row in the ``checkpoints`` view.
        operator_ids: as in ``ScannedJob``.
        lags: the lag of each position; None without a broker.
        unlisted: as in ``ScannedJob``.
    """
    values = dict(zip(_NAMES, row, strict=True))
    lags = lags or ()
    known = [lag.records for lag in lags if lag.records is not None]
    counts = Counter(lag.obstacle for lag in lags)
    at_broker = {code: counts[code] for code in _WORDS if counts[code]}
    topics_gone = {lag.topic for lag in lags if lag.obstacle == TOPIC_GONE}
    return ScannedJob(
        **{name: values[name] for name in _COPIED_COLUMNS},
        written_at=_instant(values["written_at"]),
        topics=values["topics"] or (),
        lag=sum(known) if known else None,
        lag_unknown=len(lags) - len(known),
        unlisted=unlisted,
        obstacles=tuple(sorted({*(values["obstacles"] or ()), *at_broker})),
        why_not=(
            *([values["why_not"]] if values["why_not"] else ()),
            *_describe_obstacles(at_broker, sorted(topics_gone), lags),
        ),
        to_check=values["to_check"] or (),
        operator_ids=operator_ids,
    )


def add_ran_on(jobs: Iterable[ScannedJob]) -> list[ScannedJob]:
    """Return the jobs; those that kept running after their checkpoint get the ``ran-on`` obstacle.

    A job numbers its savepoints and its checkpoints in one sequence. If a different run of the same
    job has a higher number, the job kept running after the savepoint or checkpoint with the lower
    number. However, if a job with a fixed ID starts without its state, the numbers restart at 1.
    Therefore, if the times contradict the numbers, the user must check which run is newer
    (``numbering-began-anew``).
    """
    jobs = list(jobs)
    highest: dict[str, ScannedJob] = {}
    last: dict[str, ScannedJob] = {}
    for job in jobs:
        if digits := _first_digits(job):
            highest[digits] = max(highest.get(digits, job), job, key=_number)
            last[digits] = max(last.get(digits, job), job, key=lambda job: job.written_at or EPOCH)
    return [
        _with_ran_on(job, highest[digits], last[digits]) if (digits := _first_digits(job)) else job
        for job in jobs
    ]


def _first_digits(job: ScannedJob) -> str | None:
    """Return the first digits of the job ID if they identify a single job, else None."""
    name = SAVEPOINT_NAME.fullmatch(posixpath.basename(job.pointer))
    digits = name[1] if name is not None else (job.job_id or "")[:6]
    return digits if job.readable and digits not in ("", FIXED_JOB_ID[:6]) else None


def _with_ran_on(job: ScannedJob, highest: ScannedJob, last: ScannedJob) -> ScannedJob:
    """Return a job; if ``add_ran_on`` requires it, add an obstacle or an item to check.

    Of the ``ScannedJob`` instances for this job, ``highest`` has the highest number, and ``last``
    has the latest time.
    """
    if _is_written_later(job, highest) or (job is highest and _is_written_later(last, job)):
        codes = {*job.to_check, Code.NUMBERING_BEGAN_ANEW.value}
        return replace(job, to_check=tuple(sorted(codes)))
    if not 0 <= _number(job) < _number(highest):
        return job
    reason = (
        f"the job kept running; {highest.pointer} has a higher number and, by its name, is from "
        "the same job"
    )
    return replace(
        job,
        obstacles=tuple(sorted({*job.obstacles, Code.RAN_ON.value})),
        why_not=(*job.why_not, reason),
    )


def add_possibly_superseded(jobs: Sequence[ScannedJob]) -> list[ScannedJob]:
    """Return the jobs; those that a job with a different ID may have continued must be checked.

    A checkpoint does not contain the path from which its job was restored. However, a restored job
    has the same operators and topics, and it continues the numbering. Because two jobs of the same
    program can look the same, the result is an item to check instead of an obstacle.
    ``add_ran_on`` has already marked runs with the same job ID.
    """
    highest: dict[tuple[frozenset[str], tuple[str, ...]], ScannedJob] = {}
    for job in jobs:
        if job.readable and job.topics:
            program = (job.operator_ids, job.topics)
            highest[program] = max(highest.get(program, job), job, key=_number)
    superseded = {
        job.pointer: later
        for job in jobs
        if job.movable
        and (later := highest.get((job.operator_ids, job.topics)))
        and 0 <= _number(job) < _number(later)
        and _is_written_later(later, job)
    }
    if superseded:
        first, later = next(iter(superseded.items()))
        count = counted(len(superseded), "checkpoint")
        warn(POSSIBLY_SUPERSEDED(count=count, first=first, later=later.pointer))
    return [
        replace(job, to_check=tuple(sorted({*job.to_check, POSSIBLY_SUPERSEDED.code})))
        if job.pointer in superseded
        else job
        for job in jobs
    ]


def _is_written_later(job: ScannedJob, other: ScannedJob) -> bool:
    if job.written_at is None or other.written_at is None:
        return False
    return job.written_at - other.written_at > _MIN_GAP


def _number(job: ScannedJob) -> int:
    return -1 if job.checkpoint_id is None else job.checkpoint_id


def _instant(milliseconds: int | None) -> datetime | None:
    return EPOCH + timedelta(milliseconds=milliseconds) if milliseconds is not None else None


def _describe_obstacles(
    at_broker: Mapping[str, int], topics_gone: Sequence[str], lags: Iterable[Lag]
) -> Iterator[str]:
    for code, number in at_broker.items():
        words = _WORDS[code]
        if code == TOPIC_GONE:
            words += f": {join_some(topics_gone, _MAX_TOPICS)}"
        if code == UNREACHABLE:
            words += f" ({next(lag.unknown for lag in lags if lag.unknown)})"
        yield f"{counted(number, 'position')} {words}"


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals of an inventory.

    Attributes:
        jobs, savepoints: the number of jobs, and the number of savepoints without a job. In all
            other attributes, such a savepoint counts as a job.
        unlistable: the number of missing roots and of directories that could not be listed.
        obstacles: for each obstacle, the number of jobs that have it; most frequent first.
        errors: for each kind of error, the number of unreadable jobs and unlistable directories;
            most frequent first.
    """

    jobs: int
    savepoints: int
    unlistable: int
    movable: int
    positions: int
    lag: int | None
    obstacles: dict[str, int]
    errors: dict[str, int]

    @property
    def not_read(self) -> int:
        """Return the number of unreadable jobs and unlistable directories."""
        return sum(self.errors.values())


def totals(jobs: Sequence[ScannedJob]) -> Totals:
    known = [job.lag for job in jobs if job.lag is not None]
    without_job = [job for job in jobs if job.job_directory is None]
    unlistable = sum(map(_is_unlistable, without_job))
    return Totals(
        len(jobs) - len(without_job),
        len(without_job) - unlistable,
        unlistable,
        sum(job.movable for job in jobs),
        sum(job.positions or 0 for job in jobs),
        sum(known) if known else None,
        count_by_frequency(code for job in jobs for code in job.obstacles),
        count_by_frequency(job.error_kind for job in jobs if job.error_kind is not None),
    )


def _is_unlistable(job: ScannedJob) -> bool:
    """Return whether a job represents a missing or unlistable directory instead of a savepoint."""
    has_savepoint_name = posixpath.basename(job.pointer).startswith("savepoint-")
    return job.error_kind in _UNLISTABLE_KINDS and not has_savepoint_name


def count_by_frequency(codes: Iterable[str]) -> dict[str, int]:
    """Return the number of occurrences of each code, most frequent code first."""
    return dict(sorted(Counter(codes).items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The plan for one job, or the reasons that there is no plan.

    Attributes:
        group: the consumer group of the plan; None if the plan is for Spark.
        file: the name of the plan's file; None without a plan.
        warnings: the warnings of the plan.
        reasons: the reasons that no plan exists.
        failure: the error that ended the planning, which may be a bug in ``migrate``. None if no
            error occurred, or if the error was a ``DecodeError``.
    """

    group: str | None
    file: str | None
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    failure: Exception | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """The result of a scan.

    Attributes:
        jobs: all jobs (each represented by its newest complete checkpoint), all savepoints, and the
            directories that could not be listed, sorted by pointer.
        checkpoints, unreadable: the number of checkpoints, and the number of unreadable checkpoints
            among them.
        plans: the plan of each job, by the job's pointer; None if no plans were requested.
    """

    jobs: tuple[ScannedJob, ...]
    checkpoints: int
    unreadable: int
    plans: dict[str, JobPlan] | None = None

    @property
    def failures(self) -> list[Exception]:
        """The ``failure`` of each plan that has one."""
        plans = (self.plans or {}).values()
        return [plan.failure for plan in plans if plan.failure is not None]

    @property
    def totals(self) -> Totals:
        return totals(self.jobs)
