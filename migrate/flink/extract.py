"""A decoded checkpoint -> the positions of each Kafka source, and what else must be known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from decoder import Checkpoint, PendingTransaction, SinkState, UnknownSource
from migrate.flink.findings import (
    Code,
    Finding,
    Severity,
    about_a_source,
    about_an_operator,
    about_the_checkpoint,
    is_last_output,
    state_bytes,
)
from migrate.flink.source import Source, SourceKind, source_of
from migrate.positions import Origin

__all__ = [
    "Code",
    "Extraction",
    "Finding",
    "PlanInput",
    "Severity",
    "Source",
    "SourceKind",
    "extract",
    "is_last_output",
]


class PlanInput(Protocol):
    """What a plan is made from: what was read of a checkpoint, or of a Spark query."""

    @property
    def origin(self) -> Origin: ...

    @property
    def sources(self) -> tuple[Source, ...]: ...

    @property
    def findings(self) -> tuple[Finding, ...]: ...

    @property
    def state_bytes(self) -> Mapping[str, int]:
        """How much state each operator keeps, by operator id."""

    @property
    def pending(self) -> Mapping[str, Sequence[PendingTransaction]]:
        """The transactions that each KafkaSink had yet to commit, by operator id."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What ``extract`` makes of a checkpoint."""

    checkpoint: Checkpoint
    sources: tuple[Source, ...]
    findings: tuple[Finding, ...]

    @property
    def origin(self) -> Origin:
        checkpoint = self.checkpoint
        return Origin(
            "checkpoint",
            checkpoint.pointer,
            checkpoint.checkpoint_id,
            checkpoint.newer_siblings,
            is_last_output(checkpoint),
            checkpoint.written_at,
            checkpoint.copied_from,
        )

    @property
    def state_bytes(self) -> Mapping[str, int]:
        return {one.operator_id: state_bytes(one) for one in self.checkpoint.operators}

    @property
    def pending(self) -> Mapping[str, Sequence[PendingTransaction]]:
        sinks = self.checkpoint.sinks.items()
        return {name: sink.pending for name, sink in sinks if isinstance(sink, SinkState)}


def extract(checkpoint: Checkpoint) -> Extraction:
    """The Kafka sources of a checkpoint, their positions, and the findings about it."""
    sources: list[Source] = []
    findings = list(about_the_checkpoint(checkpoint))
    stopped = is_last_output(checkpoint)
    for operator in checkpoint.operators:
        state = checkpoint.sources.get(operator.operator_id)
        if state is not None and not isinstance(state, UnknownSource):
            source = source_of(operator, state)
            sources.append(source)
            findings.extend(about_a_source(source, state, checkpoint))
        sink = checkpoint.sinks.get(operator.operator_id)
        findings.extend(about_an_operator(operator, state, sink, stopped))
    return Extraction(checkpoint, tuple(sources), tuple(findings))
