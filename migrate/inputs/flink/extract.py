"""The Kafka sources of a decoded checkpoint, their positions, and the checkpoint's findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from decoder import Checkpoint, PendingTransaction, SinkState, UnknownSource
from migrate.inputs.flink.findings.checkpoint import findings_of_checkpoint, job_ended_with
from migrate.inputs.flink.findings.operator import findings_of_operator, state_bytes
from migrate.inputs.flink.findings.source import findings_of_source
from migrate.inputs.flink.source import Source, source_of
from migrate.model.finding import Finding
from migrate.model.positions import Origin


@dataclass(frozen=True, slots=True)
class Extraction:
    """The sources and findings of a checkpoint."""

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
            job_ended_with(checkpoint),
            checkpoint.written_at,
            checkpoint.copied_from,
        )

    @property
    def state_bytes(self) -> Mapping[str, int]:
        return {
            operator.operator_id: state_bytes(operator) for operator in self.checkpoint.operators
        }

    @property
    def pending(self) -> Mapping[str, Sequence[PendingTransaction]]:
        return {
            operator_id: sink.pending
            for operator_id, sink in self.checkpoint.sinks.items()
            if isinstance(sink, SinkState)
        }


def extract(checkpoint: Checkpoint) -> Extraction:
    """Extract the Kafka sources of a checkpoint, their positions, and the findings."""
    sources: list[Source] = []
    findings = list(findings_of_checkpoint(checkpoint))
    stopped = job_ended_with(checkpoint)
    for operator in checkpoint.operators:
        state = checkpoint.sources.get(operator.operator_id)
        if state is not None and not isinstance(state, UnknownSource):
            source = source_of(operator, state)
            sources.append(source)
            findings.extend(findings_of_source(source, state, checkpoint))
        sink = checkpoint.sinks.get(operator.operator_id)
        findings.extend(findings_of_operator(operator, state, sink, stopped))
    names = {operator.operator_id: operator.name for operator in checkpoint.operators}
    named = (replace(item, operator_name=names.get(item.operator_id or "")) for item in findings)
    return Extraction(checkpoint, tuple(sources), tuple(named))
