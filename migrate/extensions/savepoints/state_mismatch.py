"""The records that a job's state double-counts or lacks if its positions change; no I/O here."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.extensions.savepoints.catalog import (
    IN_FLIGHT_ALLOWED,
    IN_FLIGHT_IN_SAVEPOINT,
    STATE_DOES_NOT_FIT,
    STATE_MISMATCH,
)
from migrate.inputs.flink.source import Source
from migrate.inputs.plan_input import PlanInput
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.finding import Code, Severity
from migrate.model.message import Message
from migrate.model.policies import Policies
from migrate.model.positions import Origin
from migrate.model.warning import WarningText
from migrate.model.wording import join_some
from migrate.planning.obstacles import blocker_refusals, relevant_findings
from migrate.planning.position_changes import position_changes, position_warnings
from migrate.planning.source_changes import MOST_NAMED, SourceChange
from migrate.planning.transactions import resolve_transactions

# The codes of the findings about the savepoint that become warnings.
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
) -> tuple[list[Message], list[WarningText]]:
    """Return messages about the records that a change of positions duplicates or skips.

    Args:
        changes: the changes to the job's sources.
        savepoint: the savepoint.
        origin: the origin of the new positions.
        allowed: True if the user allows a state that does not match the positions.

    Returns:
        Refusals, and warnings. If the job has state and ``allowed`` is False, changed positions are
        refused. Otherwise, there is a warning for each changed position.
    """
    ids = {
        finding.operator_id
        for finding in savepoint.findings
        if finding.code is Code.STATE_NOT_MOVED
    }
    stale = {
        finding.operator_id
        for finding in savepoint.findings
        if finding.code is Code.STALE_POSITIONS and finding.operator_id is not None
    }
    sizes = [size for operator_id, size in savepoint.state_bytes.items() if operator_id in ids]
    if not sizes:
        return [], position_warnings(changes, origin, stale)
    lines = position_changes(changes, stale=stale)
    if not lines:
        return [], []
    state_bytes = sum(sizes)
    if allowed:
        own_state = STATE_MISMATCH(state_bytes=state_bytes, operators=len(sizes))
        return [], [
            WarningText(own_state),
            *position_warnings(changes, stale=stale),
        ]
    changed = join_some(lines, MOST_NAMED, "; ")
    return [STATE_DOES_NOT_FIT(state_bytes=state_bytes, operators=len(sizes), changes=changed)], []


def check_savepoint(
    savepoint: PlanInput,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    policies: Policies,
    *,
    ignore_other_sources: bool,
) -> tuple[list[Message], list[WarningText]]:
    """Return refusals and warnings about the savepoint itself.

    ``chosen`` are the sources that get different positions. For ``ignore_other_sources``, see
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
        WarningText(finding.text)
        for finding in others
        if finding.code in _WARNING_CODES
        and (finding.severity is Severity.WARNING or finding.code.policy.allowed(policies))
    ]
    if in_flight:
        ids = sorted({finding.operator_id or "" for finding in in_flight})
        if policies.allow_in_flight:
            warnings.append(WarningText(IN_FLIGHT_ALLOWED(operators=ids)))
        else:
            refusals.append(IN_FLIGHT_IN_SAVEPOINT(operators=ids))
    return refusals, warnings
