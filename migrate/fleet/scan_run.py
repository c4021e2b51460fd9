"""An estate, each checkpoint read once: what a broker is to be asked, the jobs, the tables.

``Estate`` is what a scan asks. It is answered by this machine's processes (``local_estate``) or on
Spark (``migrate.spark.scan_on_spark``), both by the functions of one checkpoint below.

On this machine each checkpoint is read, told and written in one go where there is no broker. With
one, what was read is kept in files until the broker has been asked about all topics. In memory is
the checkpoint that a process is at, and each job's line.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from migrate.fleet.candidates import Marked, Read, pack, read_marked
from migrate.fleet.inventory import ScannedJob, scanned_job
from migrate.fleet.lag import Lag, lag_of, topics_to_ask
from migrate.fleet.rows import Row, values_of, view_rows
from migrate.fleet.tables import Output, Stage, TableFile, staged, table_file
from migrate.fleet.views import LAG, VIEWS, Column, View
from migrate.fleet.workers import Processes, cores
from migrate.inputs.flink.extract import Extraction
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.positions import Position
from migrate.storage.files import Files
from migrate.storage.new_file import named

# What is being done, for how many checkpoints it is done, and of how many.
Progress = Callable[[str, int, int], None]

_Result = TypeVar("_Result")

# In a share: few enough that no process waits long for the last of the others.
_CHECKPOINTS = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a scan is for; ``broker``: whether one will be asked."""

    broker: bool = False
    output: Output | None = None

    @property
    def views(self) -> tuple[View, ...]:
        """The views whose rows it needs."""
        return tuple(View) if self.output is not None else (View.CHECKPOINTS,)

    def columns(self, view: View) -> tuple[Column, ...]:
        """The columns of a view's table."""
        return VIEWS[view] + LAG if self.has_lag(view) else VIEWS[view]

    def has_lag(self, view: View) -> bool:
        return self.broker and view is View.POSITIONS


class Scanned(NamedTuple):
    """What a scan keeps of one checkpoint.

    Attributes:
        newest, listed: as in ``Read``.
        rows: those of each wanted view.
        positions: with a broker, what it holds, in the order of its rows; empty where it could not
            be read.
    """

    newest: bool
    listed: bool
    rows: dict[View, list[Row]]
    positions: tuple[Position, ...] = ()


def scanned(read: Read, wanted: Wanted) -> Scanned:
    """What a scan keeps of what was read."""
    outcome = read.outcome
    positions: tuple[Position, ...] = ()
    if wanted.broker and isinstance(outcome, Extraction):
        positions = tuple(one for source in outcome.sources for one in source.positions)
    rows = {view: list(view_rows(view, read.candidate, outcome)) for view in wanted.views}
    return Scanned(read.newest, read.listed, rows, positions)


def lags_of(one: Scanned, snapshot: ClusterSnapshot | None) -> list[Lag] | None:
    """What the broker says of each of its positions; None where none was asked."""
    if snapshot is None:
        return None
    return [lag_of(position, snapshot) for position in one.positions]


def rows_of(one: Scanned, view: View, wanted: Wanted, lags: Sequence[Lag] | None) -> Iterable[Row]:
    """The rows of one checkpoint in a view's table."""
    if not one.listed:
        return ()
    rows = one.rows[view]
    if not wanted.has_lag(view):
        return rows
    known = lags or [Lag()] * len(rows)  # of what could not be read
    return [(*row, *values_of(LAG, lag)) for row, lag in zip(rows, known, strict=True)]


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


def together(parts: Iterable[Told]) -> Told:
    """What all parts of an estate come to, its jobs sorted by pointer."""
    whole = Told()
    for part in parts:
        whole.jobs += part.jobs
        whole.checkpoints += part.checkpoints
        whole.unreadable += part.unreadable
    whole.jobs.sort(key=lambda job: job.pointer)
    return whole


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


class _Share(NamedTuple):
    number: int
    marked: list[Marked]


@contextmanager
def local_estate(
    marked: Sequence[Marked], wanted: Wanted, progress: Progress | None = None
) -> Iterator[LocalEstate]:
    """Begin to read; the processes end with the block, and nothing that is unfinished stays."""
    # One at least: without a checkpoint there are tables, if empty ones.
    shares = [_Share(*one) for one in enumerate(pack(marked, most=_CHECKPOINTS) or [[]])]
    with ExitStack() as stack:
        folder, stage = None, None
        if wanted.broker:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="migrate-scan-")))
        if wanted.output is not None:
            views = [view.value for view in wanted.views]
            stage = stack.enter_context(staged(wanted.output, views))
        processes = stack.enter_context(Processes(min(cores(), len(shares))))
        yield LocalEstate(shares, wanted, folder, stage, processes, progress)


class LocalEstate:
    """An ``Estate`` on this machine."""

    def __init__(
        self,
        shares: Sequence[_Share],
        wanted: Wanted,
        folder: Path | None,
        stage: Stage | None,
        processes: Processes,
        progress: Progress | None,
    ) -> None:
        self._shares = shares
        self._wanted = wanted
        self._folder = folder
        self._stage = stage
        self._processes = processes
        self._progress = progress

    def topics(self) -> set[str]:
        assert self._folder is not None  # as a broker is wanted
        return set().union(*self._map(_Keep(self._wanted, self._folder), "read"))

    def finish(self, snapshot: ClusterSnapshot | None) -> Told:
        kept = self._folder if snapshot is not None else None
        stage = self._stage.folder if self._stage is not None else None
        what = "read" if kept is None else "compared"
        parts = self._map(_Finish(self._wanted, kept, snapshot, stage), what)
        if self._stage is not None:
            self._stage.publish()
        return together(parts)

    def _map(self, function: Callable[[_Share], _Result], what: str) -> list[_Result]:
        of = sum(len(share.marked) for share in self._shares)
        done = 0

        def tell(share: _Share) -> None:
            nonlocal done
            done += len(share.marked)
            if self._progress is not None:
                self._progress(what, done, of)

        return self._processes.map(function, self._shares, tell)


class _Reader:
    """Reads shares in a process, which connects to a store once for all of them."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._files: Files | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_files": None}

    def _read(self, share: _Share) -> Iterator[Scanned]:
        if self._files is None:
            self._files = Files()
        for read in read_marked(share.marked, self._files):
            yield scanned(read, self._wanted)


class _Keep(_Reader):
    """Reads a share, keeps it in a file, and tells what topics a broker is to be asked about."""

    def __init__(self, wanted: Wanted, folder: Path) -> None:
        super().__init__(wanted)
        self._folder = folder

    def __call__(self, share: _Share) -> set[str]:
        topics: set[str] = set()
        path = _kept(self._folder, share)
        with named(path), path.open("wb") as file:
            for one in self._read(share):
                topics |= topics_to_ask(one.positions)
                pickle.dump(one, file)
        return topics


class _Finish(_Reader):
    """Writes the rows of a share, read or kept, to its files of the tables, and tells the rest."""

    def __init__(
        self,
        wanted: Wanted,
        kept: Path | None,
        snapshot: ClusterSnapshot | None,
        stage: Path | None,
    ) -> None:
        super().__init__(wanted)
        self._kept = kept
        self._snapshot = snapshot
        self._stage = stage

    def __call__(self, share: _Share) -> Told:
        told = Told()
        output = self._wanted.output
        with named(output.directory if output is not None else ""), ExitStack() as stack:
            files = self._table_files(share.number, stack)
            for one in self._read(share) if self._kept is None else _read_kept(self._kept, share):
                lags = lags_of(one, self._snapshot)
                told.add(one, lags)
                for view, file in files.items():
                    file.add(rows_of(one, view, self._wanted, lags))
        return told

    def _table_files(self, number: int, stack: ExitStack) -> dict[View, TableFile]:
        output = self._wanted.output
        if output is None or self._stage is None:
            return {}
        files: dict[View, TableFile] = {}
        for view in self._wanted.views:
            columns = self._wanted.columns(view)
            file = table_file(self._stage / view.value, number, columns, output.format)
            files[view] = stack.enter_context(closing(file))
        return files


def _kept(folder: Path, share: _Share) -> Path:
    return folder / f"share-{share.number}"


def _read_kept(folder: Path, share: _Share) -> Iterator[Scanned]:
    with _kept(folder, share).open("rb") as file, suppress(EOFError):
        while True:
            yield pickle.load(file)
