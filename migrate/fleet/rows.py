"""What was read of a checkpoint -> its rows in a view, as ``views`` lays them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from decoder.checkpoint import Checkpoint
from migrate.extract import Extraction, Source
from migrate.fleet.candidates import Candidate, Failure
from migrate.fleet.obstacles import obstacles, to_check
from migrate.fleet.options import Selection
from migrate.fleet.views import VIEWS, View

Row = tuple[Any, ...]

_EVERYTHING: Selection = Selection()
_NO_ERROR = (None, None)
_LAST_INSTANT = 253_402_300_799_999  # the end of the year 9999
_LONG_MAX = (1 << 63) - 1


def view_rows(
    view: View,
    candidate: Candidate,
    outcome: Extraction | Failure,
    selection: Selection = _EVERYTHING,
) -> Iterator[Row]:
    """The rows of one checkpoint: values in the order of ``VIEWS[view]``.

    A selection leaves the checkpoints that have a source which it means, with all their findings,
    and of their positions and operators those of such sources. Of what could not be read there is
    always one row, with its error.
    """
    if isinstance(outcome, Failure):
        yield _failed(view, candidate, outcome)
        return
    sources = [source for source in outcome.sources if _is_meant(source, selection)]
    if selection and not sources:
        return
    head = _head(candidate, outcome.checkpoint)
    for values in _ROWS[view](candidate, outcome, sources, selection):
        yield (*head, *values, *_NO_ERROR)


def _is_meant(source: Source, selection: Selection) -> bool:
    if selection.topics and selection.topics.isdisjoint(source.topics):
        return False
    return selection.uid is None or (
        source.uid == selection.uid or source.operator_id == selection.uid_operator_id
    )


def _failed(view: View, candidate: Candidate, failure: Failure) -> Row:
    known: dict[str, Any] = {
        "pointer": candidate.pointer,
        "job_id": candidate.job_id,
        "checkpoint_id": candidate.number,
        "job_directory": candidate.job_directory,
        "metadata_bytes": candidate.metadata_bytes,
        "error_kind": failure.kind,
        "error": failure.message,
    }
    return tuple(known.get(column.name) for column in VIEWS[view])


def _head(candidate: Candidate, checkpoint: Checkpoint) -> Row:
    return (
        checkpoint.pointer,
        candidate.job_id,
        checkpoint.checkpoint_id,
        checkpoint.type.kind.value,
    )


def _positions(
    candidate: Candidate, extraction: Extraction, sources: list[Source], selection: Selection
) -> Iterator[Row]:
    for source in sources:
        operator = (source.operator_id, source.name, source.uid, source.kind.value)
        for position in source.positions:
            if selection.topics and position.topic not in selection.topics:
                continue
            yield (
                *operator,
                position.cluster,
                position.topic,
                position.partition,
                position.state.value,
                position.next_offset,
                position.stopping_offset,
                position.subtask,
                position.reason or None,
            )


def _operators(
    candidate: Candidate, extraction: Extraction, sources: list[Source], selection: Selection
) -> Iterator[Row]:
    kinds = {source.operator_id: source.kind.value for source in sources}
    for operator in extraction.checkpoint.operators:
        if selection and operator.operator_id not in kinds:
            continue
        yield (
            operator.operator_id,
            operator.name,
            operator.uid,
            kinds.get(operator.operator_id),
            operator.parallelism,
            operator.max_parallelism,
            operator.finished,
            operator.state_names,
            _long(operator.keyed_state_bytes),
            _long(operator.operator_state_bytes),
            _long(operator.in_flight_bytes),
            _long(operator.raw_state_bytes),
            operator.finished_subtasks,
        )


def _checkpoints(
    candidate: Candidate, extraction: Extraction, sources: list[Source], selection: Selection
) -> Iterator[Row]:
    checkpoint = extraction.checkpoint
    in_the_way = obstacles(extraction)
    yield (
        candidate.job_directory,
        checkpoint.type.stop.value,
        checkpoint.metadata_version,
        _instant(checkpoint.written_at),
        # Not that of another one, which had become the newest by the time it was read.
        candidate.metadata_bytes if checkpoint.pointer == candidate.pointer else None,
        len(checkpoint.operators),
        len(extraction.sources),
        tuple(sorted({topic for source in extraction.sources for topic in source.topics})),
        sum(len(source.positions) for source in extraction.sources),
        _long(sum(operator.in_flight_bytes for operator in checkpoint.operators)),
        not in_the_way,
        tuple(sorted({obstacle.code for obstacle in in_the_way})),
        "; ".join(obstacle.message for obstacle in in_the_way) or None,
        tuple(sorted({finding.code.value for finding in to_check(extraction)})),
    )


def _findings(
    candidate: Candidate, extraction: Extraction, sources: list[Source], selection: Selection
) -> Iterator[Row]:
    for finding in extraction.findings:
        yield (finding.code.value, finding.severity.value, finding.operator_id, finding.message)


def _long(size: int) -> int:
    """A sum of sizes that a hostile checkpoint claims may be more than a long holds."""
    return min(size, _LONG_MAX)


def _instant(milliseconds: int | None) -> int | None:
    """A file may claim any time; those that no date is written for are none."""
    if milliseconds is None or not 0 <= milliseconds <= _LAST_INSTANT:
        return None
    return milliseconds


_ROWS: dict[View, Callable[[Candidate, Extraction, list[Source], Selection], Iterator[Row]]] = {
    View.POSITIONS: _positions,
    View.OPERATORS: _operators,
    View.CHECKPOINTS: _checkpoints,
    View.FINDINGS: _findings,
}
