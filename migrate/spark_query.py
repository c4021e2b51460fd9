"""A Spark query as what a plan is made from: one source, read up to its newest committed batch.

Named ``spark:DIR`` like a side, and in a saved plan by the whole path, ``spark:///…``.
"""

from __future__ import annotations

from collections.abc import Iterator

from decoder import Checkpoint
from decoder.metadata.model import CheckpointKind, CheckpointType, StopKind
from migrate.errors import Refused
from migrate.extract import Code, Extraction, Finding, Severity
from migrate.position_set import PositionSet, UnreadableInput
from migrate.positions import Position, PositionState
from migrate.sources import Source, SourceKind
from migrate.spark_progress import (
    batch_begun,
    commit_path,
    committed_positions,
    newest_committed_batch,
    query_id,
)
from migrate.storage import Files, path_of

_PREFIX = "spark:"


class NothingCommitted(Refused):
    """A query that has not committed a batch yet."""


def is_query(pointer: str) -> bool:
    """Whether it names a Spark query, and not a Flink checkpoint."""
    return pointer.startswith(_PREFIX)


def title(pointer: str, number: int) -> str:
    """How a checkpoint or a batch is called: ``checkpoint 42``, ``batch 7``."""
    return f"{'batch' if is_query(pointer) else 'checkpoint'} {number}"


def query_extraction(pointer: str) -> Extraction:
    """What a query has committed, in the form in which a plan takes a checkpoint's positions.

    The batch's number stands for the checkpoint's, the query's id (its 32 hex digits) for the
    operator's. A partition that the query has not met yet it would start at 0, its log's start.

    Raises:
        InputError: a URI of a kind that is not read.
        UnreadableInput: as for ``committed_positions``.
        AmbiguousPositions: as for ``committed_positions``.
        NothingCommitted: it has not committed a batch yet.
    """
    files = Files()
    directory = files.absolute(path_of(pointer.removeprefix(_PREFIX), files))
    batch = newest_committed_batch(directory, files)
    # First what is no query at all.
    committed = committed_positions(pointer, directory, files)
    if batch is None:
        raise NothingCommitted(
            [
                f"{directory}: the query has not committed a batch yet; what it was seeded from "
                "can be committed instead"
            ]
        )
    own_id = query_id(directory, files)
    if own_id is None:
        raise UnreadableInput(f"{directory}: there is no metadata in it")
    checkpoint = Checkpoint(
        pointer=_PREFIX + (directory if "://" in directory else f"//{directory}"),
        checkpoint_id=batch,
        metadata_version=0,
        type=CheckpointType(CheckpointKind.UNKNOWN, StopKind.UNKNOWN),
        operators=(),
        sources={},
        sinks={},
        newer_siblings=(),
        written_at=files.modified_at(commit_path(directory, batch)),
    )
    return Extraction(
        checkpoint,
        (_source(own_id, committed),),
        tuple(_about_its_progress(batch_begun(directory, files, batch))),
    )


def _about_its_progress(begun: int | None) -> Iterator[Finding]:
    if begun is not None:
        yield Finding(
            Code.UNCOMMITTED_BATCH,
            Severity.WARNING,
            None,
            f"batch {begun} of the query is begun and not committed: what it has written already "
            "will be read and written again by who goes on from here; where the query is to hand "
            "over, let it commit that batch first",
        )


def _source(query: str, committed: PositionSet) -> Source:
    return Source(
        operator_id=query.replace("-", ""),
        name="Spark query",
        uid=None,
        kind=SourceKind.KAFKA_SOURCE,
        parallelism=1,
        max_parallelism=1,
        discovery_finished={None: True},
        positions=tuple(
            Position(topic, partition, PositionState.NEXT, start)
            for (topic, partition), start in sorted(committed.starts.items())
            if isinstance(start, int)
        ),
    )
