"""Create a checkpoint's rows in each view, and list the obstacles to a move.

This module does not query a broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from decoder import Checkpoint
from migrate.extensions.fleet import view_columns
from migrate.extensions.fleet.candidates import Candidate, Failure
from migrate.extensions.fleet.catalog import NO_POSITIONS
from migrate.extensions.fleet.view_columns import CheckpointView, ViewColumn
from migrate.inputs.flink.extract import Extraction
from migrate.inputs.flink.findings.checkpoint import job_ended_with
from migrate.inputs.flink.source import Source
from migrate.model.finding import Code, Finding, Severity
from migrate.planning.obstacles import several_cluster_refusals
from migrate.planning.shared_topics import shared_topics

# Values in the order of a view's columns.
Row = tuple[Any, ...]

_NO_ERROR = (None,) * len(view_columns.ERROR)


@dataclass(frozen=True, slots=True)
class Selection:
    """The sources whose rows are returned.

    Attributes:
        topics: the selected topics. A source is selected if it reads at least one of these topics,
            and its positions in other topics are omitted. If empty, all topics are selected.
        uid: the uid of the selected sources; None for all sources.
        uid_operator_id: the operator ID that Flink derives from ``uid``. It identifies sources in
            metadata without uids (up to version 4).
    """

    topics: frozenset[str] = frozenset()
    uid: str | None = None
    uid_operator_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.topics) or self.uid is not None

    def includes(self, source: Source) -> bool:
        if self.topics and self.topics.isdisjoint(source.topics):
            return False
        return self.uid is None or (
            source.uid == self.uid or source.operator_id == self.uid_operator_id
        )


_EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason that a checkpoint cannot be moved with the default options.

    ``code`` is the code of a finding, or one of ``fleet.OBSTACLE_CODES``.
    """

    code: str
    message: str  # a ``Message``, unless the obstacle is a finding


class CheckpointRow(NamedTuple):
    """A checkpoint, in the format that the IDENTITY and CHECKPOINT_DETAILS columns require.

    Attributes:
        obstacles, to_check: the results of the ``obstacles`` and ``findings_to_check`` functions;
            IDENTITY does not need them.
    """

    candidate: Candidate
    extraction: Extraction
    obstacles: Sequence[Obstacle] = ()
    to_check: Sequence[Finding] = ()

    @property
    def checkpoint(self) -> Checkpoint:
        return self.extraction.checkpoint


def view_rows(
    view: CheckpointView,
    candidate: Candidate,
    outcome: Extraction | Failure,
    selection: Selection = _EVERYTHING,
) -> Iterator[Row]:
    """Yield the rows of one checkpoint, in the order of the ``VIEWS[view]`` columns.

    If sources are selected, only these sources have rows for positions and operators. A checkpoint
    that contains a selected source has rows for all its findings. A checkpoint that contains no
    selected source has no rows. A checkpoint that could not be read has one row, with the error.
    """
    if isinstance(outcome, Failure):
        yield _failed_row(view, candidate, outcome)
        return
    sources = [source for source in outcome.sources if selection.includes(source)]
    if selection and not sources:
        return
    head = values_of(view_columns.IDENTITY, CheckpointRow(candidate, outcome))
    rows: Iterable[Row]
    match view:
        case CheckpointView.POSITIONS:
            rows = (
                values_of(view_columns.SOURCE, source) + values_of(view_columns.POSITION, position)
                for source in sources
                for position in source.positions
                if not selection.topics or position.topic in selection.topics
            )
        case CheckpointView.OPERATORS:
            kinds = {source.operator_id: source.kind.value for source in sources}
            rows = (
                (
                    *values_of(view_columns.NAMES, operator),
                    kinds.get(operator.operator_id),
                    *values_of(view_columns.OPERATOR, operator),
                )
                for operator in outcome.checkpoint.operators
                if not selection or operator.operator_id in kinds
            )
        case CheckpointView.CHECKPOINTS:
            checkpoint = CheckpointRow(
                candidate, outcome, obstacles(outcome), findings_to_check(outcome)
            )
            rows = [values_of(view_columns.CHECKPOINT_DETAILS, checkpoint)]
        case CheckpointView.FINDINGS:
            rows = (values_of(view_columns.FINDING, finding) for finding in outcome.findings)
    for row in rows:
        yield (*head, *row, *_NO_ERROR)


def values_of(columns: Iterable[ViewColumn], item: object) -> Row:
    """Return an item's values in the order of the columns."""
    return tuple([column.value(item) for column in columns])


def _failed_row(view: CheckpointView, candidate: Candidate, failure: Failure) -> Row:
    known: dict[str, Any] = {
        "pointer": candidate.pointer,
        "job_id": candidate.job_id,
        "checkpoint_id": candidate.number,
        "job_directory": candidate.job_directory,
        "metadata_bytes": candidate.metadata_bytes,
    }
    names = [column.name for column in (*view_columns.IDENTITY, *view_columns.BODY[view])]
    return (*map(known.get, names), *values_of(view_columns.ERROR, failure))


def obstacles(extraction: Extraction) -> tuple[Obstacle, ...]:
    """Return the reasons that a checkpoint cannot be moved with the default options.

    A move with the default options includes all Kafka sources. Each decision that the user must
    make is an obstacle. These decisions are whether to accept loss or duplication, which consumer
    group Flink uses, and which cluster or source to choose. A partition that is still at
    ``earliest`` is not an obstacle, because the broker provides the log start offset.
    """
    checked = findings_to_check(extraction)
    reasons = [
        Obstacle(finding.code.value, finding.text)
        for finding in extraction.findings
        if finding.severity is Severity.BLOCKER
        or (finding.code.policy.scan_obstacle and finding not in checked)
    ]
    if not any(source.positions for source in extraction.sources):
        reasons.append(Obstacle(NO_POSITIONS.code, NO_POSITIONS().what))
    clusters = list(several_cluster_refusals(extraction.sources))
    reasons += [Obstacle("several-clusters", refusal) for refusal in clusters]
    if not clusters:  # the same name in two clusters means two topics
        shared = shared_topics(extraction.sources)
        reasons += [
            Obstacle("sources-disagree", topic.disagreement_refusal())
            for topic in shared
            if topic.differing
        ]
        reasons += [
            Obstacle("cluster-not-named", topic.unnamed_cluster_refusal())
            for topic in shared
            if topic.may_be_two_topics and not topic.differing
        ]
    return tuple(reasons)


def findings_to_check(extraction: Extraction) -> list[Finding]:
    """Return the findings on pending transactions if the job ended with this checkpoint.

    These findings are not obstacles, but the user must check them before the job moves. If the job
    did not end with this checkpoint, return an empty list.
    """
    if not job_ended_with(extraction.checkpoint):
        return []
    return [finding for finding in extraction.findings if finding.code is Code.PENDING_TRANSACTIONS]
