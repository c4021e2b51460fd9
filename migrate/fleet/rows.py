"""What was read of a checkpoint -> its rows in a view, as ``views`` lays them out; and what stands
in the way of moving it as it is, before any broker is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from decoder import Checkpoint, Operator
from migrate.fleet.candidates import Candidate, Failure
from migrate.fleet.views import ERROR, HEAD, OWN, Column, View
from migrate.inputs.flink.extract import Code, Extraction, Finding, Severity, Source, is_last_output
from migrate.model.positions import Position
from migrate.planning.obstacles import operator_prefix, refuse_several_clusters
from migrate.planning.shared_topics import shared_topics

Row = tuple[Any, ...]

_NO_ERROR = (None,) * len(ERROR)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which sources are meant.

    Attributes:
        topics: sources that read one of these, and of their positions those of the topics alone;
            empty: all.
        uid: sources with this uid; None: all.
        uid_operator_id: the operator id that Flink derives from ``uid``, which stands for it where
            the metadata holds no uid (up to version 4).
    """

    topics: frozenset[str] = frozenset()
    uid: str | None = None
    uid_operator_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.topics) or self.uid is not None


_EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class Obstacle:
    """``code`` is a finding's, or one of ``no-positions``, ``several-clusters``,
    ``sources-disagree`` and ``cluster-not-named``."""

    code: str
    message: str


class Whole(NamedTuple):
    """A checkpoint."""

    candidate: Candidate
    extraction: Extraction
    obstacles: Sequence[Obstacle] = ()
    to_check: Sequence[Finding] = ()

    @property
    def checkpoint(self) -> Checkpoint:
        return self.extraction.checkpoint

    @property
    def topics(self) -> set[str]:
        return {topic for source in self.extraction.sources for topic in source.topics}


class Held(NamedTuple):
    """A position, and the source that holds it."""

    source: Source
    position: Position


class Run(NamedTuple):
    """An operator, and what kind of a Kafka source it is."""

    operator: Operator
    source_kind: str | None


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


def obstacles(extraction: Extraction) -> tuple[Obstacle, ...]:
    """Why a checkpoint, all its Kafka sources together, cannot be moved as it is; empty: it can.

    Whatever needs a choice of the user counts: a flag that allows loss or repetition, Flink's own
    consumer group, one of several clusters or sources. A partition still at ``earliest`` does not:
    any broker resolves it.
    """
    checked = to_check(extraction)
    found = [
        Obstacle(finding.code.value, operator_prefix(finding) + finding.message)
        for finding in extraction.findings
        if finding.severity is Severity.BLOCKER or (finding.is_undecided and finding not in checked)
    ]
    if not any(source.positions for source in extraction.sources):
        found.append(Obstacle("no-positions", "it holds no position of a Kafka source"))
    mixed_up = list(refuse_several_clusters(extraction.sources))
    found += [Obstacle("several-clusters", str(refusal)) for refusal in mixed_up]
    if not mixed_up:  # a topic of two clusters is two topics
        shared = shared_topics(extraction.sources)
        found += [
            Obstacle("sources-disagree", str(topic.refuse_disagreement()))
            for topic in shared
            if topic.differing
        ]
        found += [
            Obstacle("cluster-not-named", str(topic.refuse_unnamed_cluster()))
            for topic in shared
            if topic.may_be_two and not topic.differing
        ]
    return tuple(found)


def to_check(extraction: Extraction) -> list[Finding]:
    """What the user is to check before a stopped job moves: did it commit what its sinks hold?"""
    if not is_last_output(extraction.checkpoint):
        return []
    return [one for one in extraction.findings if one.code is Code.PENDING_TRANSACTIONS]
