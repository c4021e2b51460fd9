"""Read checkpoints: extract their Kafka sources with positions, and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from decoder import (
    Checkpoint,
    PendingTransaction,
    SinkState,
    UnknownSource,
    read_checkpoint,
)
from decoder.urls import redact_url
from migrate.inputs.flink.findings.checkpoint import findings_of_checkpoint, job_ended_with
from migrate.inputs.flink.findings.keyed_queues import findings_of_keyed_queues
from migrate.inputs.flink.findings.operator import findings_of_operator, state_bytes
from migrate.inputs.flink.findings.source import findings_of_source
from migrate.inputs.flink.source import Source, SourceKind, source_of
from migrate.model.finding import Code, Finding
from migrate.model.log import timed
from migrate.model.positions import Origin
from migrate.storage.files import Files
from migrate.storage.suggest_path import suggesting_path


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
            any(source.kind is SourceKind.FLINK_KAFKA_CONSUMER for source in self.sources),
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


def read(pointer: str, *, allow_external_files: bool = False) -> Extraction:
    """Read a checkpoint, and extract its sources and findings.

    Args:
        pointer: the path or URI of the checkpoint, as in ``read_checkpoint``.
        allow_external_files: as in ``read_checkpoint``.

    Raises:
        DecodeError: as in ``read_checkpoint``; the message may suggest a different path.
    """
    files = Files()
    with suggesting_path(pointer, files), timed(f"reading {redact_url(pointer)}"):
        checkpoint = read_checkpoint(pointer, files, allow_external_files=allow_external_files)
        return extract_with_state(checkpoint, files, allow_external_files=allow_external_files)


def extract_with_state(
    checkpoint: Checkpoint, files: Files, *, allow_external_files: bool = False
) -> Extraction:
    """Extract as ``extract`` does, and add findings from the keyed state of certain operators.

    Raises:
        DecodeError: as in ``findings_of_keyed_queues``.
    """
    extraction = extract(checkpoint)
    queues = tuple(
        findings_of_keyed_queues(checkpoint, files, allow_external_files=allow_external_files)
    )
    waiting = {finding.operator_id for finding in queues}
    findings = (
        finding
        for finding in extraction.findings
        if finding.code is not Code.STATE_NOT_MOVED or finding.operator_id not in waiting
    )
    return replace(extraction, findings=(*findings, *queues)) if queues else extraction


def extract(checkpoint: Checkpoint) -> Extraction:
    """Extract the Kafka sources in a checkpoint, their positions, and the findings."""
    sources: list[Source] = []
    findings = list(findings_of_checkpoint(checkpoint))
    stopped = job_ended_with(checkpoint)
    for operator in checkpoint.operators:
        own_findings: list[Finding] = []
        state = checkpoint.sources.get(operator.operator_id)
        if state is not None and not isinstance(state, UnknownSource):
            source = source_of(operator, state)
            sources.append(source)
            own_findings += findings_of_source(source, state, checkpoint)
        sink = checkpoint.sinks.get(operator.operator_id)
        own_findings += findings_of_operator(operator, state, sink, stopped)
        findings += (
            replace(finding, operator_id=operator.operator_id, operator_name=operator.name)
            for finding in own_findings
        )
    return Extraction(checkpoint, tuple(sources), tuple(findings))
