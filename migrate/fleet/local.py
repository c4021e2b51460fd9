"""An estate read by this machine's processes.

Without a broker each checkpoint is read, told and written in one go. With one, what was read is
kept in files until the broker has been asked about all topics. In memory is what a process makes of
the checkpoint that it is at, and each job's line.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from migrate.fleet.candidates import Marked, pack_marked
from migrate.fleet.estate import (
    Scanned,
    Told,
    Wanted,
    columns_of,
    lags_of,
    read_marked,
    rows_of,
    together,
)
from migrate.fleet.lag import topics_to_ask
from migrate.fleet.options import View
from migrate.fleet.processes import Processes, cores
from migrate.fleet.tables import Stage, TableFile, staged, table_file
from migrate.snapshot import ClusterSnapshot
from migrate.storage.files import Files
from migrate.storage.new_file import named

# What is being done, for how many checkpoints it is done, and of how many.
Progress = Callable[[str, int, int], None]

_Result = TypeVar("_Result")

# In a share: few enough that no process waits long for the last of the others.
_CHECKPOINTS = 100


class _Share(NamedTuple):
    number: int
    marked: list[Marked]


@contextmanager
def local_estate(
    marked: Sequence[Marked], wanted: Wanted, progress: Progress | None = None
) -> Iterator[LocalEstate]:
    """Begin to read; the processes end with the block, and nothing that is unfinished stays."""
    # One at least: without a checkpoint there are tables, if empty ones.
    shares = [_Share(*one) for one in enumerate(pack_marked(marked, _CHECKPOINTS) or [[]])]
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
    """What each process does with its shares; it connects to a store once for all of them."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._files: Files | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_files": None}

    def _read(self, share: _Share) -> Iterator[Scanned]:
        if self._files is None:
            self._files = Files()
        return read_marked(share.marked, self._wanted, self._files)


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
            columns = columns_of(view, self._wanted)
            file = table_file(self._stage / view.value, number, columns, output.format)
            files[view] = stack.enter_context(closing(file))
        return files


def _kept(folder: Path, share: _Share) -> Path:
    return folder / f"share-{share.number}"


def _read_kept(folder: Path, share: _Share) -> Iterator[Scanned]:
    with _kept(folder, share).open("rb") as file, suppress(EOFError):
        while True:
            yield pickle.load(file)
