"""An estate, each checkpoint read once: what a broker is to be asked, the jobs, the tables.

Here is what is made of one checkpoint, and of some. ``Estate`` is what a scan asks; it is answered
by this machine's processes (``migrate.fleet.local``) or on Spark
(``migrate.spark.running.estate``), both by these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from decoder import ErrorKind
from migrate.fleet.candidates import Candidate, Failure, Marked
from migrate.fleet.inventory import ScannedJob, scanned_job
from migrate.fleet.lag import LAG_COLUMNS, Lag, lag_of
from migrate.fleet.options import View
from migrate.fleet.reading import read_candidate, read_each
from migrate.fleet.rows import Row, values_of, view_rows
from migrate.fleet.tables import Output
from migrate.fleet.views import VIEWS, Column
from migrate.flink.extract import Extraction
from migrate.positions import Position
from migrate.snapshot import ClusterSnapshot
from migrate.storage.files import Files


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a scan is for; ``broker``: whether one will be asked."""

    broker: bool = False
    output: Output | None = None

    @property
    def views(self) -> tuple[View, ...]:
        """The views whose rows it needs."""
        if self.output is not None:
            return tuple(View)
        return (View.CHECKPOINTS,)


class Scanned(NamedTuple):
    """What a scan keeps of one checkpoint.

    Attributes:
        newest: whether it stands for its job; each job has one that does.
        listed: whether it is one of the estate, in which each checkpoint is once: one that is not
            stands in for a newest one that vanished meanwhile.
        rows: those of each wanted view.
        positions: with a broker, what it holds, in the order of its rows; empty where it could not
            be read.
    """

    newest: bool
    listed: bool
    rows: dict[View, list[Row]]
    positions: tuple[Position, ...] = ()


@dataclass(slots=True)
class Told:
    """What checkpoints come to: the jobs that they stand for, how many there are, and how many of
    them could not be read."""

    jobs: list[ScannedJob] = field(default_factory=list)
    checkpoints: int = 0
    unreadable: int = 0

    def add(self, one: Scanned, lags: Sequence[Lag] | None) -> None:
        (row,) = one.rows[View.CHECKPOINTS]
        job = scanned_job(row, lags)
        if one.newest:
            self.jobs.append(job)
        if one.listed:
            self.checkpoints += 1
            self.unreadable += not job.readable


class Estate(Protocol):
    """Checkpoints being read, once; each question is asked once, and in this order."""

    def topics(self) -> set[str]:
        """What a broker is to be asked about; where one is."""

    def finish(self, snapshot: ClusterSnapshot | None) -> Told:
        """Write the tables that are wanted, and tell the jobs, sorted by pointer.

        Args:
            snapshot: what the broker said; None where none was asked.

        Raises:
            Refused: one of the tables is there already.
        """


def read_marked(share: Sequence[Marked], wanted: Wanted, files: Files) -> Iterator[Scanned]:
    """Each candidate as it is found; a job goes on meanwhile, and deletes what newer ones subsume.

    Where the newest checkpoint of a job has vanished, the one that is it by now stands in for the
    job. Most often that is one that Flink was about to complete, and is then read for itself too.
    """
    outcomes = read_each([one.candidate for one in share], files)
    for one, (candidate, outcome) in zip(share, outcomes, strict=True):
        if one.newest and isinstance(outcome, Failure) and _may_have_vanished(candidate, outcome):
            now = read_candidate(replace(candidate, newest=True), files)
            if isinstance(now, Extraction):
                yield _scanned(False, True, candidate, outcome, wanted)
                listed = now.checkpoint.checkpoint_id not in one.numbers
                yield _scanned(True, listed, candidate, now, wanted)
                continue
        yield _scanned(one.newest, True, candidate, outcome, wanted)


def _may_have_vanished(candidate: Candidate, failure: Failure) -> bool:
    was_there = candidate.job_directory is not None and candidate.metadata_bytes is not None
    return was_there and failure.kind == ErrorKind.NOT_FOUND.value


def _scanned(
    newest: bool, listed: bool, candidate: Candidate, outcome: Extraction | Failure, wanted: Wanted
) -> Scanned:
    positions: tuple[Position, ...] = ()
    if wanted.broker and isinstance(outcome, Extraction):
        positions = tuple(one for source in outcome.sources for one in source.positions)
    rows = {view: list(view_rows(view, candidate, outcome)) for view in wanted.views}
    return Scanned(newest, listed, rows, positions)


def lags_of(one: Scanned, snapshot: ClusterSnapshot | None) -> list[Lag] | None:
    """What the broker says of each of its positions; None where none was asked."""
    if snapshot is None:
        return None
    return [lag_of(position, snapshot) for position in one.positions]


def columns_of(view: View, wanted: Wanted) -> tuple[Column, ...]:
    """The columns of a view's table."""
    return VIEWS[view] + LAG_COLUMNS if _with_lag(view, wanted) else VIEWS[view]


def rows_of(one: Scanned, view: View, wanted: Wanted, lags: Sequence[Lag] | None) -> Iterable[Row]:
    """The rows of one checkpoint in a view's table."""
    if not one.listed:
        return ()
    rows = one.rows[view]
    if not _with_lag(view, wanted):
        return rows
    known = lags or [Lag()] * len(rows)  # of what could not be read
    return [(*row, *values_of(LAG_COLUMNS, lag)) for row, lag in zip(rows, known, strict=True)]


def _with_lag(view: View, wanted: Wanted) -> bool:
    return wanted.broker and view is View.POSITIONS


def together(parts: Iterable[Told]) -> Told:
    """What all parts of an estate come to, its jobs sorted by pointer."""
    whole = Told()
    for part in parts:
        whole.jobs += part.jobs
        whole.checkpoints += part.checkpoints
        whole.unreadable += part.unreadable
    whole.jobs.sort(key=lambda job: job.pointer)
    return whole
