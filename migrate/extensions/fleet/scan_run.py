"""Run a scan by reading each checkpoint once, querying the broker once, and writing the tables.

``scan_locally`` runs a scan with processes on this machine;
``migrate.extensions.fleet.scan_on_spark`` runs it on Spark. Both read checkpoints with
``read_chunk``.

On this machine, the rows of each checkpoint are written as soon as the checkpoint is read. If a
broker is queried, however, temporary files store the checkpoints until the broker has been queried
about all topics. In memory, each process keeps only its current checkpoint, one row for each job,
and the rows of one batch.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from decoder import ErrorKind
from migrate.extensions.fleet.candidates import (
    Candidate,
    Failure,
    read_candidate,
    read_each,
    split_candidates,
)
from migrate.extensions.fleet.inventory import ScannedJob, scanned_job
from migrate.extensions.fleet.lag import Lag, count_unlisted, lag_of, topics_to_ask
from migrate.extensions.fleet.rows import Row, values_of, view_rows
from migrate.extensions.fleet.view_columns import LAG, VIEWS, CheckpointView, ViewColumn
from migrate.extensions.fleet.workers import WorkerPool, cores
from migrate.extensions.fleet.write_tables import Output, staged_tables, table_file
from migrate.inputs.flink.extract import Extraction
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.positions import Position
from migrate.storage.files import Files
from migrate.storage.new_file import add_path_to_errors

# A function that takes the step ("read", "compared", or "planned"), the number of checkpoints or
# jobs that have completed the step, and their total number.
Progress = Callable[[str, int, int], None]
# A function that queries a broker about topics.
AskBroker = Callable[[set[str]], ClusterSnapshot]

_Result = TypeVar("_Result")
_Chunk = tuple[int, list[Candidate]]

# The maximum average number of candidates per chunk. The number is low, so that no process waits
# long for another process to finish its last chunk.
_MAX_CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """The options that determine a scan's result.

    Attributes:
        with_lag: True if the result contains lags, which requires a broker query.
        output: the tables to write; None for no tables.
    """

    with_lag: bool = False
    output: Output | None = None

    @property
    def views(self) -> tuple[CheckpointView, ...]:
        """Return the views whose rows are needed."""
        return tuple(CheckpointView) if self.output else (CheckpointView.CHECKPOINTS,)

    def columns(self, view: CheckpointView) -> tuple[ViewColumn, ...]:
        """Return the columns of a view's table."""
        return VIEWS[view] + LAG if self.has_lag(view) else VIEWS[view]

    def has_lag(self, view: CheckpointView) -> bool:
        return self.with_lag and view is CheckpointView.POSITIONS


class ScannedCheckpoint(NamedTuple):
    """The rows and positions of one checkpoint.

    Attributes:
        newest: True for the newest checkpoint of its job, and for a savepoint.
        is_counted: True if the checkpoint counts in the scan totals and has rows in the tables.
            False for a checkpoint that was read in place of a deleted candidate but is also a
            candidate itself, because the scan already counts it as a candidate.
        rows: the rows of each view in the request.
        positions: the positions, in the order of their rows; empty if no broker is queried or if
            the checkpoint could not be read.
        operator_ids: the IDs of all operators of the newest checkpoint; empty for others, or if the
            checkpoint could not be read.
    """

    newest: bool
    is_counted: bool
    rows: dict[CheckpointView, list[Row]]
    positions: tuple[Position, ...] = ()
    operator_ids: frozenset[str] = frozenset()

    def lags(self, snapshot: ClusterSnapshot | None) -> list[Lag] | None:
        """Return the lag of each position; None without a broker."""
        if snapshot is None:
            return None
        return [lag_of(position, snapshot) for position in self.positions]

    def unlisted(self, snapshot: ClusterSnapshot | None) -> int:
        """Return the result of ``count_unlisted``; 0 without a broker."""
        return count_unlisted(self.positions, snapshot) if snapshot is not None else 0

    def table_rows(
        self, view: CheckpointView, request: ScanRequest, lags: Sequence[Lag] | None
    ) -> Iterable[Row]:
        """Return the checkpoint's rows in a view's table."""
        if not self.is_counted:
            return ()
        rows = self.rows[view]
        if not request.has_lag(view):
            return rows
        lags = lags or [Lag()] * len(rows)  # if the checkpoint could not be read
        return [(*row, *values_of(LAG, lag)) for row, lag in zip(rows, lags, strict=True)]


def read_chunk(
    files: Files, request: ScanRequest, candidates: Iterable[Candidate]
) -> Iterator[ScannedCheckpoint]:
    """Read the candidates in a chunk, as returned by ``mark_newest``.

    If a running job has deleted its newest checkpoint since the search, its current newest
    checkpoint is also read. Usually, the search has already found this checkpoint as a candidate,
    but it was not yet complete.
    """
    for candidate, outcome in read_each(candidates, files):
        numbers = candidate.chk_numbers
        newest: Extraction | Failure | None = None
        if numbers is not None and _has_vanished(candidate, outcome):
            newest = read_candidate(replace(candidate, read_newest=True), files)
        if numbers is not None and isinstance(newest, Extraction):
            yield _scanned(request, candidate, outcome, newest=False, is_counted=True)
            is_counted = newest.checkpoint.checkpoint_id not in numbers
            yield _scanned(request, candidate, newest, newest=True, is_counted=is_counted)
        else:
            yield _scanned(request, candidate, outcome, newest=numbers is not None, is_counted=True)


def _has_vanished(candidate: Candidate, outcome: Extraction | Failure) -> bool:
    complete = candidate.job_directory is not None and candidate.metadata_bytes is not None
    missing = isinstance(outcome, Failure) and outcome.kind == ErrorKind.NOT_FOUND.value
    return complete and missing


def _scanned(
    request: ScanRequest,
    candidate: Candidate,
    outcome: Extraction | Failure,
    *,
    newest: bool,
    is_counted: bool,
) -> ScannedCheckpoint:
    positions: tuple[Position, ...] = ()
    if request.with_lag and isinstance(outcome, Extraction):
        positions = tuple(position for source in outcome.sources for position in source.positions)
    rows = {view: list(view_rows(view, candidate, outcome)) for view in request.views}
    operator_ids: frozenset[str] = frozenset()
    if newest and isinstance(outcome, Extraction):
        operator_ids = frozenset(operator.operator_id for operator in outcome.checkpoint.operators)
    return ScannedCheckpoint(newest, is_counted, rows, positions, operator_ids)


@dataclass(slots=True)
class ScanSummary:
    """The jobs of a set of checkpoints, the number of checkpoints, and how many are unreadable."""

    jobs: list[ScannedJob] = field(default_factory=list)
    checkpoints: int = 0
    unreadable: int = 0

    def add(self, checkpoint: ScannedCheckpoint, lags: Sequence[Lag] | None, unlisted: int) -> None:
        (row,) = checkpoint.rows[CheckpointView.CHECKPOINTS]
        job = scanned_job(row, checkpoint.operator_ids, lags, unlisted)
        if checkpoint.newest:
            self.jobs.append(job)
        if checkpoint.is_counted:
            self.checkpoints += 1
            self.unreadable += not job.readable


def merge_summaries(summaries: Iterable[ScanSummary]) -> ScanSummary:
    """Merge summaries into one, with the jobs sorted by pointer."""
    merged = ScanSummary()
    for summary in summaries:
        merged.jobs += summary.jobs
        merged.checkpoints += summary.checkpoints
        merged.unreadable += summary.unreadable
    merged.jobs.sort(key=lambda job: job.pointer)
    return merged


def scan_locally(
    candidates: Sequence[Candidate],
    output: Output | None = None,
    ask_broker: AskBroker | None = None,
    progress: Progress | None = None,
) -> ScanSummary:
    """Read candidates from ``mark_newest`` with local processes, and write the tables.

    If reading or the broker query fails, no part of a table remains.

    Raises:
        Refused: one of the tables already exists.
        ServiceError: worker processes were killed repeatedly.
        Exception: an error from ``ask_broker`` or from writing the tables.
    """
    request = ScanRequest(ask_broker is not None, output)
    # Make at least one chunk, so that empty tables are written even without checkpoints.
    chunks = list(enumerate(split_candidates(candidates, limit=_MAX_CANDIDATES) or [[]]))
    files = Files()
    with ExitStack() as stack:
        folder, stage = None, None
        if output is not None:
            views = [view.value for view in request.views]
            stage = stack.enter_context(staged_tables(output, views))
        if ask_broker is not None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="migrate-scan-")))
        # Entered last, so that the processes are stopped before the folders are deleted.
        pool = stack.enter_context(WorkerPool(min(cores(), len(chunks))))

        def run(function: Callable[[_Chunk], _Result], what: str) -> list[_Result]:
            count = 0

            def done(chunk: _Chunk) -> None:
                nonlocal count
                count += len(chunk[1])
                if progress is not None:
                    progress(what, count, len(candidates))

            return pool.map(function, chunks, done)

        snapshot = None
        if ask_broker is not None and folder is not None:
            topics = run(partial(_save_chunk, files, request, folder), "read")
            snapshot = ask_broker(set().union(*topics))
        summarise = partial(_summarise_chunk, files, request, folder, snapshot, stage)
        summaries = run(summarise, "read" if folder is None else "compared")
    return merge_summaries(summaries)


def _save_chunk(files: Files, request: ScanRequest, folder: Path, chunk: _Chunk) -> set[str]:
    """Read a chunk, save its checkpoints in a file, and return the topics for the broker query."""
    topics: set[str] = set()
    path = _chunk_file(folder, chunk)
    with add_path_to_errors(path), path.open("wb") as file:
        for checkpoint in read_chunk(files, request, chunk[1]):
            topics |= topics_to_ask(checkpoint.positions)
            pickle.dump(checkpoint, file)
    return topics


def _summarise_chunk(
    files: Files,
    request: ScanRequest,
    folder: Path | None,
    snapshot: ClusterSnapshot | None,
    stage: Path | None,
    chunk: _Chunk,
) -> ScanSummary:
    """Return the summary of a chunk, and write its rows to one file per table.

    If ``folder`` is None, the candidates are read now. Otherwise, the checkpoints come from the
    files that ``_save_chunk`` wrote.
    """
    summary = ScanSummary()
    output = request.output
    if folder is None:
        checkpoints = read_chunk(files, request, chunk[1])
    else:
        checkpoints = _load_chunk(folder, chunk)
    with add_path_to_errors(output.directory if output is not None else ""), ExitStack() as stack:
        tables: dict[CheckpointView, Callable[[Iterable[Row]], None]] = {}
        if output is not None and stage is not None:
            for view in request.views:
                columns = request.columns(view)
                table = table_file(stage / view.value, chunk[0], columns, output.format)
                tables[view] = stack.enter_context(table)
        for checkpoint in checkpoints:
            lags = checkpoint.lags(snapshot)
            summary.add(checkpoint, lags, checkpoint.unlisted(snapshot))
            for view, add_rows in tables.items():
                add_rows(checkpoint.table_rows(view, request, lags))
    return summary


def _chunk_file(folder: Path, chunk: _Chunk) -> Path:
    return folder / f"chunk-{chunk[0]}"


def _load_chunk(folder: Path, chunk: _Chunk) -> Iterator[ScannedCheckpoint]:
    with _chunk_file(folder, chunk).open("rb") as file, suppress(EOFError):
        while True:
            yield pickle.load(file)
