"""A candidate -> its extraction, or why there is none; and a share of them -> rows of a view."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from decoder import DecodeError, read_checkpoint
from migrate.errors import InputError
from migrate.fleet.candidates import Candidate, Failure
from migrate.fleet.options import FleetOptions, Mode
from migrate.fleet.rows import Row, view_rows
from migrate.flink.extract import Extraction, extract
from migrate.storage.files import Files, MissingExtra

# What is read ahead from a store, each from another checkpoint; botocore keeps ten connections.
_AHEAD = 8
# A larger one is read when its turn comes.
_LARGEST_AHEAD = 4 * 1024 * 1024


class UnreadableCheckpoint(InputError):
    """A checkpoint that could not be read, where the mode is FAILFAST."""


def read_candidate(
    candidate: Candidate, files: Files, *, allow_external_files: bool = False
) -> Extraction | Failure:
    """Read one checkpoint; whatever is wrong with it, it comes back as a Failure.

    Its newest one is read through the job's directory: a checkpoint that Flink completes or
    subsumes meanwhile does no harm then.
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


def scan(candidates: Iterable[Candidate], files: Files, options: FleetOptions) -> Iterator[Row]:
    """The rows of ``options.view`` of these candidates, in their order.

    Raises:
        UnreadableCheckpoint: one could not be read, and the mode is FAILFAST.
    """
    external = options.allow_external_files
    for candidate, outcome in read_each(candidates, files, allow_external_files=external):
        if isinstance(outcome, Failure) and options.mode is not Mode.PERMISSIVE:
            if options.mode is Mode.FAILFAST:
                raise UnreadableCheckpoint(f"{outcome.message} ({outcome.kind})")
            continue
        yield from view_rows(options.view, candidate, outcome, options.selection)


def read_each(
    candidates: Iterable[Candidate], files: Files, *, allow_external_files: bool = False
) -> Iterator[tuple[Candidate, Extraction | Failure]]:
    """Each with what came of it, in their order; a store's are asked for a few at once."""
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
        pool.shutdown(cancel_futures=True)
