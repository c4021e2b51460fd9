"""What stands in the way of moving a checkpoint as it is, before any broker is asked.

Whatever needs a choice of the user counts: a flag that allows loss or repetition, Flink's own
consumer group, one cluster or one source of several. A partition still at ``earliest`` does not:
any broker resolves it.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrate.flink.extract import Code, Extraction, Finding, Severity, is_last_output
from migrate.planning.obstacles import clusters_mixed_up, disagreements, where


@dataclass(frozen=True, slots=True)
class Obstacle:
    """``code`` is a finding's, or ``no-positions``, ``several-clusters``, ``sources-disagree``."""

    code: str
    message: str


def obstacles(extraction: Extraction) -> tuple[Obstacle, ...]:
    """Why a checkpoint, all its Kafka sources together, cannot be moved today; empty: it can."""
    checked = to_check(extraction)
    found = [
        Obstacle(finding.code.value, where(finding) + finding.message)
        for finding in extraction.findings
        if finding.severity is Severity.BLOCKER or (finding.is_undecided and finding not in checked)
    ]
    if not any(source.positions for source in extraction.sources):
        found.append(Obstacle("no-positions", "it holds no position of a Kafka source"))
    mixed_up = list(clusters_mixed_up(extraction.sources))
    found += [Obstacle("several-clusters", str(refusal)) for refusal in mixed_up]
    if not mixed_up:  # a topic of two clusters is two topics
        found += [
            Obstacle("sources-disagree", str(refusal))
            for refusal in disagreements(extraction.sources)
        ]
    return tuple(found)


def to_check(extraction: Extraction) -> list[Finding]:
    """What is to be made sure of before a stopped job moves: it has committed what its sinks hold,
    unless it died of it."""
    if not is_last_output(extraction.checkpoint):
        return []
    return [one for one in extraction.findings if one.code is Code.PENDING_TRANSACTIONS]
