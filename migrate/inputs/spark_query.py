"""Spark queries as plan inputs: a single source, with the positions after the newest commit.

The name of such an input is ``spark:DIR``. In a saved plan, it is ``spark:///…`` (a path) or
``spark:s3://…`` (a URL).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from decoder import ByteSource
from decoder.storage import join
from migrate.inputs.plan_input import ListedPositions, listed_source
from migrate.inputs.spark_log import (
    assumed_sources,
    committed_positions,
    has_begun_batch,
    is_in_first_batch,
    kafka_offsets,
    kafka_seeds,
    logged_batches,
    newest_committed_batch,
    newest_uncommitted_batch,
    oldest_is_continuous,
    planned_batch,
    positions_after,
    query_id,
    starting_positions,
)
from migrate.inputs.spark_log_entries import Offsets, commit_path, entry_numbers
from migrate.model.catalog import FIRST_BATCH_UNCOMMITTED, NO_BATCH_COMMITTED, NO_QUERY_ID
from migrate.model.errors import InputError, Refused
from migrate.model.finding import Finding
from migrate.model.finding_catalog import (
    KAFKA_ASSUMED,
    OUTPUT_BEYOND,
    OUTPUT_MAY_BE_BEYOND,
    QUERY_ID_MISSING,
    QUERY_STATE,
    SHARED_TOPIC,
    STATEFUL_OUTPUT_MAY_BE_BEYOND,
    UNCOMMITTED_BATCH,
)
from migrate.model.message import Message
from migrate.model.positions import SPARK_PREFIX, Origin, PositionSet
from migrate.storage.files import Files
from migrate.storage.uris import path_of


def query_directory(pointer: str, files: Files) -> str:
    """Return the checkpoint location of ``spark:DIR`` (an absolute path, or a URL)."""
    path = path_of(pointer.removeprefix(SPARK_PREFIX), files)
    return files.absolute(path)


def query_operator_id(directory: str, files: ByteSource) -> str:
    """Return the ID of a query in the format of plans: 32 hex digits.

    Raises:
        InputError: the location has no metadata, or ``query_id`` raises it.
    """
    own_id = query_id(directory, files)
    if own_id is None:
        raise InputError(NO_QUERY_ID(location=directory))
    return own_id.replace("-", "")


def query_positions(pointer: str) -> ListedPositions:
    """Return the committed positions of a query as the input to a plan.

    The plan starts new partitions at the log start offset, as the query does.

    Raises:
        InputError: the URI has an unknown scheme, or ``committed_positions`` or
            ``query_operator_id`` raises it.
        Refused: the query has not committed a batch yet, or ``committed_positions`` raises it.
    """
    files = Files()
    directory = query_directory(pointer, files)
    batch = newest_committed_batch(directory, files)
    if batch is None:
        starting_positions(pointer, directory, files)  # raises if there is no query
        if has_begun_batch(directory, files):
            raise Refused(FIRST_BATCH_UNCOMMITTED(location=directory))
        raise Refused(NO_BATCH_COMMITTED(location=directory))
    operator_id = query_operator_id(directory, files)
    committed = positions_after(pointer, directory, batch, files)
    begun = newest_uncommitted_batch(directory, files, batch)
    url = directory if "://" in directory else f"//{directory}"
    return ListedPositions(
        Origin(
            "batch",
            SPARK_PREFIX + url,
            batch,
            newer=(begun,) if begun is not None else (),
            written_at=committed_at(directory, batch, files),
        ),
        (listed_source(operator_id, "Spark query", committed, starts_others=True),),
        tuple(_findings(directory, files, batch, begun)),
    )


def committed_at(directory: str, batch: int, files: Files) -> int | None:
    """Return the time of a batch's commit, in epoch milliseconds; None if it is not in the log."""
    commit = commit_path(directory, batch)
    return files.modified_at(commit) if files.is_file(commit) else None


def _findings(directory: str, files: Files, batch: int, begun: int | None) -> Iterator[Finding]:
    sources = kafka_offsets(directory, batch, files).values()
    yield from location_warnings(directory, files)
    readers = Counter(topic for offsets in sources for topic in {topic for topic, _ in offsets})
    if shared := sorted(topic for topic, count in readers.items() if count > 1):
        yield Finding(SHARED_TOPIC(topics=shared))
    if operators := len(entry_numbers(files, join(directory, "state"))):
        yield Finding(QUERY_STATE(query=directory, operators=operators))
    if (output := output_warning(directory, files)) is not None:
        yield Finding(output)
    if begun is not None:
        yield Finding(UNCOMMITTED_BATCH(batch=begun))


def location_warnings(directory: str, files: ByteSource) -> Iterator[Finding]:
    """Yield findings about facts that a checkpoint location does not show.

    These facts are the query's ID, and whether a source without a seed is a Kafka source. There are
    no findings before the first commit.

    Raises:
        InputError: as in ``newest_committed_batch``.
    """
    batch = newest_committed_batch(directory, files)
    if batch is None:
        return
    if assumed := assumed_sources(directory, batch, files):
        yield Finding(KAFKA_ASSUMED(count=len(assumed), source=assumed[0]))
    if query_id(directory, files) is None:
        yield Finding(QUERY_ID_MISSING())


# A query with asynchronous progress tracking logs only some batches, so its output since the last
# logged batch is newer than the positions. Only stateless queries support this tracking. The log
# does not show whether it is enabled. Source: AsyncProgressTrackingMicroBatchExecution
# (checkNotStatefulStreamingQuery, markMicroBatchStart), OffsetSeqMetadata (relevantSQLConfs) @
# Spark 3.5.1, 4.0.0, 4.1.1, 4.2.0.
#
# In Real-Time Mode, Spark logs a batch only at its end, so the output of the running batch is newer
# than the positions. The log does not show whether the query uses this mode. Source:
# MicroBatchExecution (markMicroBatchEnd) @ Spark 4.2.0.


def output_warning(directory: str, files: ByteSource) -> Message | None:
    """Return a message about output records that the next reader may duplicate, or None.

    Raises:
        InputError: as in ``newest_committed_batch``.
    """
    logged = entry_numbers(files, join(directory, "offsets"))
    if not logged:
        return None
    if is_in_first_batch(directory, files):
        return UNCOMMITTED_BATCH(batch=0)
    if entry_numbers(files, join(directory, "state")):
        return STATEFUL_OUTPUT_MAY_BE_BEYOND()
    gaps = [(batch, after) for batch, after in pairwise(logged) if after > batch + 1]
    if not gaps:
        return OUTPUT_MAY_BE_BEYOND()
    batch, next_batch = gaps[-1]
    return OUTPUT_BEYOND(batch=batch, next_batch=next_batch)


@dataclass(frozen=True, slots=True)
class QueryLocation:
    """The checkpoint location of a Spark query, with the query's first and current positions.

    Attributes:
        start_positions: the positions in the seeds, or None if there is no seed.
        committed: the positions after the newest committed batch; None if no batch is committed.
    """

    directory: str
    start_positions: PositionSet | None
    committed: PositionSet | None


@dataclass(frozen=True, slots=True)
class QueryStart:
    """The start of a Spark query and its committed batches, from its checkpoint location.

    Attributes:
        start_positions: the positions at which the query started; empty if Spark itself computes
            the start.
        resumes_at: the offsets that a restarted query reads next; None if Spark itself computes
            them.
        has_begun_batch: True if a query has started a batch in the checkpoint location.
        continuous: True if the oldest logged batch is an epoch of the continuous trigger. This
            trigger ignores a seed and does not record the query's start.
        seeds: the offsets in the seeds, by source.
        batches: (number, end offsets by source) of each committed batch in the offset log, oldest
            first, and of the planned batch that is not committed yet. ``seeds`` and ``batches`` are
            empty if no batch has started, and for the continuous trigger.
    """

    start_positions: PositionSet
    resumes_at: PositionSet | None = None
    has_begun_batch: bool = False
    continuous: bool = False
    seeds: Mapping[str, Offsets] = field(default_factory=dict)
    batches: Sequence[tuple[int, Mapping[str, Offsets]]] = ()


def query_start(label: str, directory: str, *, start_from_spark: bool = False) -> QueryStart:
    """Read a query's start and its committed batches.

    Args:
        label: the name of the positions.
        directory: the checkpoint location.
        start_from_spark: True if the caller lets Spark itself compute the start by planning the
            query.

    Raises:
        InputError, Refused: as in ``starting_positions`` and ``committed_positions``.
    """
    files = Files()
    begun, continuous = has_begun_batch(directory, files), oldest_is_continuous(directory, files)
    started, resumes_at = PositionSet(label, {}), None
    if not start_from_spark:
        started = starting_positions(label, directory, files)
        resumes_at = committed_positions(label, directory, files) if begun else started
    if not begun or continuous:
        return QueryStart(started, resumes_at, begun, continuous)
    planned = planned_batch(directory, files)
    return QueryStart(
        started,
        resumes_at,
        begun,
        seeds=kafka_seeds(directory, files),
        batches=[*logged_batches(directory, files), *([planned] if planned else [])],
    )
