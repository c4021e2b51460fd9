"""Read two checkpoints of the same job, and find the records between them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from migrate.inputs.flink.choose_source import Choice, choose, source_positions
from migrate.inputs.flink.extract import Extraction, read
from migrate.inputs.flink.source import Source
from migrate.model.errors import Refused
from migrate.model.finding import Code
from migrate.model.positions import (
    Marker,
    PositionSet,
    Start,
    TopicPartition,
    Unknown,
    format_start,
)
from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import join_some
from migrate.storage.uris import AnyPath

# Flink's directories: <job id>/chk-<number>, and savepoint-<the job id's first 6 digits>-<random>.
_JOB_ID = re.compile(r"(?:([0-9a-f]{32})/chk-\d+|savepoint-([0-9a-f]{6})-[0-9a-f]+)/?$")
_MOST_SHOWN = 5


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
        ranges: the records between them; a partition without records is omitted.
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
            in-flight records; a position was rewound or is unknown; or there is no record between
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
        raise Refused(
            f"the job read no record between {_label(first)} and {_label(last)}; choose a "
            "later checkpoint"
        )
    return CheckpointPair(
        first.checkpoint.pointer,
        last.checkpoint.pointer,
        ranges,
        starts.next_offsets,
        ends.next_offsets,
        tuple(_another_run(first, last)),
    )


def _pair_problems(earlier: Extraction, later: Extraction) -> Iterator[str]:
    ids = [
        {operator.operator_id for operator in extraction.checkpoint.operators}
        for extraction in (earlier, later)
    ]
    if different := sorted(ids[0] ^ ids[1]):
        yield (
            f"{_label(earlier)} and {_label(later)} are from different jobs; only one of "
            f"them has the operators {join_some(different, _MOST_SHOWN)}"
        )
        return
    numbers = earlier.checkpoint.checkpoint_id, later.checkpoint.checkpoint_id
    if numbers[0] >= numbers[1]:
        yield (
            f"earlier is {_label(earlier)}, and later is {_label(later)}; later must have "
            "the higher checkpoint number"
        )


def _another_run(earlier: Extraction, later: Extraction) -> Iterator[WarningText]:
    """Yield a warning if the checkpoint paths contain the IDs of two different jobs."""
    ids = [_job_id(earlier), _job_id(later)]
    length = min(len(id_) for id_ in ids)
    if ids[0][:length] != ids[1][:length]:
        yield warning_text(
            WarningCode.ANOTHER_RUN,
            f"the checkpoints are from two runs, {ids[0]} and {ids[1]}; check that run "
            f"{ids[1]} was restored from the earlier checkpoint, or from a later checkpoint "
            f"of run {ids[0]}",
        )


def _job_id(extraction: Extraction) -> str:
    """Return the job ID in the checkpoint's path, or its first digits, or an empty string."""
    checkpoint = extraction.checkpoint
    match = _JOB_ID.search(checkpoint.copied_from or os.path.realpath(checkpoint.pointer))
    return (match[1] or match[2]) if match is not None else ""


def _in_flight(extraction: Extraction) -> Iterator[str]:
    for finding in extraction.findings:
        if finding.code is Code.IN_FLIGHT_RECORDS:
            yield (
                f"{_label(extraction)}: {finding.text}; the state does not contain these "
                "records, although the positions are after them"
            )


def _label(extraction: Extraction) -> str:
    return f"{extraction.origin.title} ({extraction.checkpoint.pointer})"


def _ranges(
    starts: PositionSet, ends: PositionSet, sources: Iterable[Source]
) -> tuple[dict[TopicPartition, Range], list[str]]:
    """Return each partition's range or problem; neither if the range is empty.

    ``sources`` are the sources in the earlier checkpoint.
    """
    at_log_start = all(source.starts_absent_partitions_at_log_start for source in sources)
    ranges: dict[TopicPartition, Range] = {}
    problems: list[str] = []
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
            problems.append(f"{topic}-{partition}: {_problem(start, end)}")
    return ranges, problems


def _problem(start: Start, end: Start) -> str:
    if isinstance(start, int) and isinstance(end, int):
        return (
            f"the position was rewound from {start} in the earlier checkpoint to {end} in the "
            "later checkpoint"
        )
    if end is Unknown.ABSENT:
        return "the later checkpoint does not contain the partition"
    if start is Unknown.ABSENT:
        return (
            "the earlier checkpoint contains neither the partition nor the start of new partitions"
        )
    is_start_known = isinstance(start, int) or start is Marker.EARLIEST
    unknown, side = (end, "later") if is_start_known else (start, "earlier")
    return f"the {side} checkpoint contains {format_start(unknown)} instead of an offset"
