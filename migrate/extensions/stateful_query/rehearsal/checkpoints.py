"""Read two checkpoints of the same job, and find the records between them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from migrate.extensions.stateful_query.catalog import (
    ANOTHER_RUN,
    CHECKPOINTS_REVERSED,
    IN_FLIGHT_IN_REHEARSAL,
    JOBS_DIFFER,
    NO_RECORD_BETWEEN,
    PARTITION_ONLY_IN_EARLIER,
    PARTITION_ONLY_IN_LATER,
    POSITION_NOT_AN_OFFSET,
    POSITION_REWOUND,
)
from migrate.inputs.flink.choose_source import Choice, choose, source_positions
from migrate.inputs.flink.extract import Extraction, read
from migrate.inputs.flink.source import Source
from migrate.model.errors import Refused
from migrate.model.finding import Code
from migrate.model.message import Message
from migrate.model.positions import (
    Marker,
    PositionSet,
    Start,
    TopicPartition,
    Unknown,
    format_start,
)
from migrate.model.warning import WarningText
from migrate.storage.uris import AnyPath

# Flink's directories: <job id>/chk-<number>, and savepoint-<the job id's first 6 digits>-<random>.
_JOB_ID = re.compile(r"(?:([0-9a-f]{32})/chk-\d+|savepoint-([0-9a-f]{6})-[0-9a-f]+)/?$")


@dataclass(frozen=True, slots=True)
class Range:
    """The records of a partition between two checkpoints.

    Attributes:
        start: the offset of the first record, or EARLIEST for the log start offset.
        end: the offset after the last record.
    """

    start: int | Marker
    end: int

    @property
    def offsets(self) -> int:
        """Return the number of offsets, which is an upper bound on the number of records."""
        return self.end - (self.start if isinstance(self.start, int) else 0)


Ranges = Mapping[TopicPartition, Range]


@dataclass(frozen=True, slots=True)
class CheckpointPair:
    """Two checkpoints of the same job.

    Attributes:
        earlier: the path of the earlier checkpoint.
        later: the path of the later checkpoint.
        ranges: the records between the checkpoints, by partition; a partition without records is
            omitted.
        starts: the positions in the earlier checkpoint.
        ends: the positions in the later checkpoint.
        warnings: the warnings about the checkpoints.
    """

    earlier: str
    later: str
    ranges: Ranges
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    warnings: tuple[WarningText, ...]


def read_pair(earlier: AnyPath, later: AnyPath, choice: Choice) -> CheckpointPair:
    """Read two checkpoints of the same job.

    Raises:
        Refused: the checkpoints are from two jobs, or in the wrong order; the state contains
            in-flight records; a position was rewound or is unknown; or there are no records between
            the checkpoints.
        NoSuchName: a source or cluster is not in a checkpoint.
        DecodeError: a checkpoint cannot be read.
    """
    first, last = read(os.fspath(earlier)), read(os.fspath(later))
    sources = choose(first, choice)
    starts = source_positions(first.checkpoint.pointer, sources)
    ends = source_positions(last.checkpoint.pointer, choose(last, choice))
    problems = [*_pair_problems(first, last), *_in_flight(first), *_in_flight(last)]
    ranges, more = _ranges(starts, ends, sources)
    if problems or more:
        raise Refused([*problems, *more])
    if not ranges:
        raise Refused(NO_RECORD_BETWEEN(earlier=_label(first), later=_label(last)))
    return CheckpointPair(
        first.checkpoint.pointer,
        last.checkpoint.pointer,
        ranges,
        starts.next_offsets,
        ends.next_offsets,
        tuple(_another_run(first, last)),
    )


def _pair_problems(earlier: Extraction, later: Extraction) -> Iterator[Message]:
    ids = [
        {operator.operator_id for operator in extraction.checkpoint.operators}
        for extraction in (earlier, later)
    ]
    if different := sorted(ids[0] ^ ids[1]):
        yield JOBS_DIFFER(earlier=_label(earlier), later=_label(later), operators=different)
        return
    numbers = earlier.checkpoint.checkpoint_id, later.checkpoint.checkpoint_id
    if numbers[0] >= numbers[1]:
        yield CHECKPOINTS_REVERSED(earlier=_label(earlier), later=_label(later))


def _another_run(earlier: Extraction, later: Extraction) -> Iterator[WarningText]:
    """Yield a warning if the checkpoint paths contain the IDs of two different jobs."""
    ids = [_job_id(earlier), _job_id(later)]
    length = min(len(id_) for id_ in ids)
    if ids[0][:length] != ids[1][:length]:
        yield WarningText(ANOTHER_RUN(earlier=ids[0], later=ids[1]))


def _job_id(extraction: Extraction) -> str:
    """Return the job ID in the checkpoint's path.

    The path of a savepoint contains only the first digits of the ID. Return an empty string if the
    path contains no ID.
    """
    checkpoint = extraction.checkpoint
    match = _JOB_ID.search(checkpoint.copied_from or os.path.realpath(checkpoint.pointer))
    return (match[1] or match[2]) if match is not None else ""


def _in_flight(extraction: Extraction) -> Iterator[Message]:
    for finding in extraction.findings:
        if finding.code is Code.IN_FLIGHT_RECORDS:
            yield IN_FLIGHT_IN_REHEARSAL(checkpoint=_label(extraction), finding=finding.text)


def _label(extraction: Extraction) -> str:
    return f"{extraction.origin.title} ({extraction.checkpoint.pointer})"


def _ranges(
    starts: PositionSet, ends: PositionSet, sources: Iterable[Source]
) -> tuple[dict[TopicPartition, Range], list[Message]]:
    """Return the range of each partition, and a refusal for each partition without a valid range.

    Partitions without records between the checkpoints are omitted. ``sources`` are the sources in
    the earlier checkpoint.
    """
    at_log_start = all(source.starts_absent_partitions_at_log_start for source in sources)
    ranges: dict[TopicPartition, Range] = {}
    problems: list[Message] = []
    for topic, partition in sorted(starts.starts.keys() | ends.starts.keys()):
        start, end = starts.at(topic, partition), ends.at(topic, partition)
        if start is Unknown.ABSENT and at_log_start:
            # Flink discovered the partition after the earlier checkpoint.
            start = Marker.EARLIEST
        if start == end:
            continue
        if isinstance(end, int) and (
            start is Marker.EARLIEST or (isinstance(start, int) and start < end)
        ):
            ranges[topic, partition] = Range(start, end)
        else:
            problems.append(_problem(f"{topic}-{partition}", start, end))
    return ranges, problems


def _problem(partition: str, start: Start, end: Start) -> Message:
    if isinstance(start, int) and isinstance(end, int):
        return POSITION_REWOUND(partition=partition, start=start, end=end)
    if end is Unknown.ABSENT:
        return PARTITION_ONLY_IN_EARLIER(partition=partition)
    if start is Unknown.ABSENT:
        return PARTITION_ONLY_IN_LATER(partition=partition)
    is_start_known = isinstance(start, int) or start is Marker.EARLIEST
    unknown, side = (end, "later") if is_start_known else (start, "earlier")
    return POSITION_NOT_AN_OFFSET(partition=partition, side=side, start=format_start(unknown))
