"""What was read of a checkpoint -> its rows in a view, as ``views`` lays them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from migrate.fleet.candidates import Candidate, Failure
from migrate.fleet.obstacles import obstacles, to_check
from migrate.fleet.options import Selection, View
from migrate.fleet.views import ERROR, HEAD, OWN, Column, Held, Run, Whole
from migrate.flink.extract import Extraction, Finding, Source

Row = tuple[Any, ...]

_EVERYTHING = Selection()
_NO_ERROR = (None,) * len(ERROR)


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
    head = values_of(HEAD, Whole(candidate, outcome))
    for item in _items(view, candidate, outcome, sources, selection):
        yield (*head, *values_of(OWN[view], item), *_NO_ERROR)


def values_of(columns: Iterable[Column], item: object) -> Row:
    """The columns of one row."""
    return tuple([column.value(item) for column in columns])


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
    }
    head = tuple(known.get(column.name) for column in (*HEAD, *OWN[view]))
    return (*head, *values_of(ERROR, failure))


def _items(
    view: View,
    candidate: Candidate,
    extraction: Extraction,
    sources: Sequence[Source],
    selection: Selection,
) -> Iterable[Held | Run | Whole | Finding]:
    """What the rows of one checkpoint are about."""
    match view:
        case View.POSITIONS:
            return (
                Held(source, position)
                for source in sources
                for position in source.positions
                if not selection.topics or position.topic in selection.topics
            )
        case View.OPERATORS:
            kinds = {source.operator_id: source.kind.value for source in sources}
            return (
                Run(operator, kinds.get(operator.operator_id))
                for operator in extraction.checkpoint.operators
                if not selection or operator.operator_id in kinds
            )
        case View.CHECKPOINTS:
            return [Whole(candidate, extraction, obstacles(extraction), to_check(extraction))]
        case View.FINDINGS:
            return extraction.findings
