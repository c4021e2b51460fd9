"""An estate read in one pass: a row for each checkpoint, with its rows of every wanted view.

A checkpoint that vanishes while it is scanned is so the same in all of the views.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import ArrayType, BooleanType, StructField, StructType

from decoder import ErrorKind
from migrate.extract import Extraction
from migrate.fleet import (
    VIEWS,
    Candidate,
    Failure,
    View,
    pack,
    read_candidate,
    read_each,
    view_rows,
)
from migrate.fleet.inventory import Marked
from migrate.spark.dataframe import over_shares
from migrate.spark.tables import batches, struct_type
from migrate.storage import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What goes to Spark at a time; a giant alone may be more.
_ROWS_AT_ONCE = 10_000


class _Read(NamedTuple):
    """What came of a candidate; the two flags are columns of ``read_estate``."""

    newest: bool
    listed: bool
    candidate: Candidate
    outcome: Extraction | Failure


def read_estate(spark: SparkSession, marked: Sequence[Marked], views: Sequence[View]) -> DataFrame:
    """What came of each candidate: the rows of the views as arrays, and two flags.

    ``listed`` rows are the estate, each checkpoint once: of these ``inline(positions)`` is the
    positions view, as ``struct_type`` lays it out. ``newest`` rows are the jobs, each once: one
    that is not listed stands in for a newest checkpoint that vanished meanwhile.
    """
    by_pointer = {one.candidate.pointer: one for one in marked}
    shares = [
        [by_pointer[candidate.pointer] for candidate in share]
        for share in pack([one.candidate for one in marked])
    ]
    schema = StructType(
        [
            StructField("newest", BooleanType()),
            StructField("listed", BooleanType()),
            *(StructField(view.value, ArrayType(struct_type(view))) for view in views),
        ]
    )
    return over_shares(spark, shares, partial(_read, tuple(views)), schema)


def _read(views: Sequence[View], share: list[Marked]) -> Iterator[pa.RecordBatch]:
    for some in _some_at_once(_read_share(share, Files())):
        yield _batch(views, some)


def _read_share(share: Sequence[Marked], files: Files) -> Iterator[_Read]:
    """Each candidate as it is found; a job goes on meanwhile, and deletes what newer ones subsume.

    Where the newest checkpoint of a job has vanished, the one that is it by now stands in for the
    job. Most often that is one that Flink was about to complete, and is then read for itself too.
    """
    outcomes = read_each([one.candidate for one in share], files)
    for one, (candidate, outcome) in zip(share, outcomes, strict=True):
        if one.newest and isinstance(outcome, Failure) and _may_have_vanished(candidate, outcome):
            now = read_candidate(replace(candidate, newest=True), files)
            if isinstance(now, Extraction):
                yield _Read(False, True, candidate, outcome)
                listed = now.checkpoint.checkpoint_id not in one.numbers
                yield _Read(True, listed, candidate, now)
                continue
        yield _Read(one.newest, True, candidate, outcome)


def _may_have_vanished(candidate: Candidate, failure: Failure) -> bool:
    was_there = candidate.job_directory is not None and candidate.metadata_bytes is not None
    return was_there and failure.kind == ErrorKind.NOT_FOUND.value


def _some_at_once(read: Iterable[_Read]) -> Iterator[list[_Read]]:
    some: list[_Read] = []
    rows = 0
    for one in read:
        some.append(one)
        rows += 1
        if isinstance(one.outcome, Extraction):
            rows += sum(len(source.positions) for source in one.outcome.sources)
        if rows >= _ROWS_AT_ONCE:
            yield some
            some, rows = [], 0
    if some:
        yield some


def _batch(views: Sequence[View], read: Sequence[_Read]) -> pa.RecordBatch:
    newest = pa.array([one.newest for one in read], pa.bool_())
    listed = pa.array([one.listed for one in read], pa.bool_())
    return pa.RecordBatch.from_arrays(
        [newest, listed, *(_arrays(view, read) for view in views)],
        ["newest", "listed", *(view.value for view in views)],
    )


def _arrays(view: View, read: Sequence[_Read]) -> pa.ListArray:
    """For each the array of its rows in the view."""
    rows: list[Sequence[Any]] = []
    ends = [0]
    for one in read:
        rows += view_rows(view, one.candidate, one.outcome)
        ends.append(len(rows))
    # Of none of them, and not to be seen: there may be no other row to tell the types by.
    rows.append((None,) * len(VIEWS[view]))
    structs = [batch.to_struct_array() for batch in batches(view, rows)]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.concat_arrays(structs))
