"""The records that a job's state counts twice or lacks if its positions change; no I/O here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from migrate.extensions.savepoints.changes import MOST_NAMED, SourceChange
from migrate.inputs.flink.source import Source
from migrate.inputs.plan_input import PlanInput
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.finding import Code, Severity
from migrate.model.policies import Policies
from migrate.model.positions import Origin
from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import counted, join_some
from migrate.planning.obstacles import blocker_refusals, relevant_findings
from migrate.planning.plan import PlannedPartition, Refusal
from migrate.planning.refusals_and_warnings import reader_clause
from migrate.planning.transactions import resolve_transactions

# The findings about the savepoint that become warnings.
_WARNING_CODES = frozenset(
    (
        Code.NOT_A_STOP,
        Code.NUMBERING_BEGAN_ANEW,
        Code.FINISHED_OPERATORS,
        Code.STALE_POSITIONS,
        Code.PENDING_TRANSACTIONS,
        Code.HYBRID_SOURCE,
    )
)


def state_mismatches(
    changes: Sequence[SourceChange], savepoint: PlanInput, origin: Origin, *, allowed: bool
) -> tuple[list[Refusal], list[WarningText]]:
    """Return messages about the records that a change of positions duplicates or skips.

    Args:
        changes: the changes of the job's sources.
        savepoint: the savepoint.
        origin: the origin of the new positions.
        allowed: True if the user allows a state that does not match the positions.

    Returns:
        Refusals and warnings; if the mismatch is allowed or the job keeps no state, a warning for
        each changed position.
    """
    ids = {
        finding.operator_id
        for finding in savepoint.findings
        if finding.code is Code.STATE_NOT_MOVED
    }
    sizes = [size for operator_id, size in savepoint.state_bytes.items() if operator_id in ids]
    if not sizes:
        return [], position_warnings(changes, origin)
    lines = _position_changes(changes)
    if not lines:
        return [], []
    own_state = (
        f"{counted(len(sizes), 'operator')} of the job {'keeps' if len(sizes) == 1 else 'keep'} "
        f"{sum(sizes)} bytes of state, which is that of the savepoint's own positions"
    )
    if allowed:
        return [], [
            warning_text(WarningCode.STATE_MISMATCH, own_state),
            *position_warnings(changes),
        ]
    return [
        Refusal(
            f"{own_state}: {join_some(lines, MOST_NAMED, '; ')}",
            "go on with that state all the same with --allow-state-mismatch",
        )
    ], []


def position_warnings(
    changes: Sequence[SourceChange], origin: Origin | None = None
) -> list[WarningText]:
    """Return a warning for each changed position; for ``origin``, see ``_position_changes``."""
    lines = _position_changes(changes, origin)
    return [warning_text(WarningCode.POSITION_CHANGED, line) for line in lines]


def _position_changes(changes: Sequence[SourceChange], origin: Origin | None = None) -> list[str]:
    """Return a line for each partition whose position changes, except removed partitions.

    For a job without state, ``origin`` is the origin of the new positions. The lines then state the
    records that Flink reprocesses or skips. For a job with state, ``origin`` is None. The lines
    then state the records that are double-counted in the state or missing from it.
    """
    readers = Counter(topic for change in changes for topic in {p.topic for p in change.partitions})
    return [
        (f"operator {change.operator_id}: " if readers[planned.topic] > 1 else "")
        + _line(planned, origin)
        for change in changes
        for planned in change.partitions
        if planned.next_offset is not None and planned.difference != 0
    ]


def _line(planned: PlannedPartition, origin: Origin | None) -> str:
    by = planned.difference
    if by is None:
        effect = ": how much of it is in the state is not known" if origin is None else ""
        return f"{planned.name} goes on from {planned.next_offset}{effect}"
    records = f"up to {counted(abs(by), 'record')}"
    if origin is None:
        verb = "is" if abs(by) == 1 else "are"
        effect = f"{records} {verb} {'counted twice' if by < 0 else 'not in the state'}"
    elif by < 0:
        effect = f"Flink reads {records} again"
    else:
        effect = f"Flink skips {records}{reader_clause(origin)}"
    direction = "back" if by < 0 else "ahead"
    return (
        f"{planned.name} goes {direction} from {planned.current} to {planned.next_offset}: {effect}"
    )


def check_savepoint(
    savepoint: PlanInput,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    policies: Policies,
    *,
    ignore_other_sources: bool,
) -> tuple[list[Refusal], list[WarningText]]:
    """Return refusals and warnings about the savepoint itself.

    ``chosen`` are the sources that get other positions; ``ignore_other_sources`` is as for
    ``relevant_findings``.
    """
    findings, refusals, _ = resolve_transactions(
        relevant_findings(savepoint, chosen, ignore_other_sources),
        savepoint,
        snapshot,
        policies,
        restored=True,
    )
    in_flight = [finding for finding in findings if finding.code is Code.IN_FLIGHT_RECORDS]
    others = [finding for finding in findings if finding.code is not Code.IN_FLIGHT_RECORDS]
    refusals = [*refusals, *blocker_refusals(others, policies)]
    warnings = [
        warning_text(finding.code, finding.text)
        for finding in others
        if finding.code in _WARNING_CODES and finding.severity is Severity.WARNING
    ]
    if in_flight:
        ids = ", ".join(sorted({finding.operator_id or "" for finding in in_flight}))
        problem = (
            f"records are in flight in the savepoint (operators {ids}): Flink processes them "
            "first, whatever positions it goes on from, and a position that goes back reads them "
            "once more"
        )
        if policies.allow_in_flight:
            warnings.append(warning_text(Code.IN_FLIGHT_RECORDS, problem))
        else:
            refusals.append(
                Refusal(
                    problem,
                    "take an aligned checkpoint, or stop the job with a savepoint (with async I/O "
                    "with --drain); or add --allow-in-flight to let it process them",
                )
            )
    return refusals, warnings
