"""Findings about a whole checkpoint.

Examples are findings about a job that kept running or about the release that wrote the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decoder import (
    BeamKafkaIO,
    Checkpoint,
    CheckpointKind,
    DynamicKafkaSource,
    HybridSource,
    KafkaSource,
    LegacyConsumer,
    StopKind,
    UnknownSource,
)
from decoder.kafka.dynamic import DYNAMIC_ENUMERATOR_WRITTEN_BY
from decoder.kafka.enumerator import ENUMERATOR_LAYOUTS
from decoder.kafka.sink import COMMITTER_STATE, UnknownSink
from decoder.metadata.layout import LAYOUTS
from migrate.inputs.flink.source import KafkaState
from migrate.model.finding import Finding
from migrate.model.finding_catalog import (
    FINISHED_OPERATORS,
    HIGHER_NUMBER_IS_EARLIER,
    LATER_CHECKPOINT,
    LOWER_NUMBER_IS_LATER,
    NEWER_CHECKPOINT,
    NOT_A_STOP,
    SINK_OF_UNKNOWN_MEMORY,
    WRITTEN_BEFORE_LOWER_NUMBER,
    WRITTEN_BY,
)


def job_ended_with(checkpoint: Checkpoint) -> bool:
    """Return whether the job ended with this checkpoint, with no later output."""
    return checkpoint.type.stop in (StopKind.SUSPEND, StopKind.TERMINATE)


def findings_of_checkpoint(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Yield the findings about a whole checkpoint."""
    if checkpoint.newer_siblings:
        yield _ran_on_finding(checkpoint.checkpoint_id, checkpoint.newer_siblings[-1])
    elif not job_ended_with(checkpoint):
        kind = {
            CheckpointKind.CHECKPOINT: "a checkpoint",
            CheckpointKind.SAVEPOINT: "a savepoint without stop",
            CheckpointKind.UNKNOWN: "a checkpoint or savepoint without evidence of a stop",
        }[checkpoint.type.kind]
        yield Finding(NOT_A_STOP(kind=kind), void_after_stop=True)
    if checkpoint.earlier_run:
        yield Finding(WRITTEN_BEFORE_LOWER_NUMBER(other=checkpoint.earlier_run[-1]))
    elif checkpoint.contradicting:
        yield _contradiction_finding(checkpoint.checkpoint_id, checkpoint.contradicting)
    finished = [operator for operator in checkpoint.operators if operator.finished]
    if finished:
        names = [operator.name or operator.operator_id for operator in finished]
        yield Finding(FINISHED_OPERATORS(count=len(finished), operators=names))
    yield from _sink_findings(checkpoint)
    yield _written_by_finding(checkpoint)


def _sink_findings(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Yield a finding if sinks of an unknown kind might store checkpoint IDs."""
    committers = [
        operator.name or operator.operator_id
        for operator in checkpoint.operators
        if isinstance(checkpoint.sinks.get(operator.operator_id), UnknownSink)
        and COMMITTER_STATE in operator.state_names
    ]
    if committers:
        yield Finding(SINK_OF_UNKNOWN_MEMORY(sinks=committers))


def _ran_on_finding(number: int, newest: int) -> Finding:
    if newest > number:
        return Finding(NEWER_CHECKPOINT(newest=newest))
    # A later run of the job restarted the numbering, or the times belong to copies.
    return Finding(LATER_CHECKPOINT(newest=newest, number=number))


def _contradiction_finding(number: int, others: Sequence[int]) -> Finding:
    """Return the finding about checkpoints whose times contradict their numbers.

    The checkpoints are from two runs of the job, or are copies with different times. The user must
    determine which checkpoint is the last.
    """
    if lower := [other for other in others if other < number]:
        return Finding(LOWER_NUMBER_IS_LATER(other=lower[-1], number=number))
    return Finding(HIGHER_NUMBER_IS_EARLIER(other=others[-1], number=number))


def _written_by_finding(checkpoint: Checkpoint) -> Finding:
    """Return the finding about the Flink releases that may have written the checkpoint."""
    version = checkpoint.metadata_version
    writers = [f"{LAYOUTS[version].written_by} (metadata version {version})"]
    connectors = {
        text
        for source in checkpoint.sources.values()
        if (text := _connector_releases(source)) is not None
    }
    writers += sorted(connectors)
    return Finding(WRITTEN_BY(writers=", and by ".join(writers)))


def _connector_releases(source: KafkaState | UnknownSource) -> str | None:
    match source:
        case KafkaSource(enumerator=enumerator) if enumerator is not None:
            version = enumerator.version
            releases = ENUMERATOR_LAYOUTS[version].releases
        case DynamicKafkaSource(enumerator=dynamic) if dynamic is not None:
            version = dynamic.version
            releases = DYNAMIC_ENUMERATOR_WRITTEN_BY[version]
        case HybridSource():
            return _connector_releases(source.current)
        case LegacyConsumer():
            return "a Kafka connector up to 3.4 (FlinkKafkaConsumer)"
        case BeamKafkaIO():
            return "an Apache Beam pipeline (KafkaIO)"
        case _:
            return None
    return f"a Kafka connector {releases} (enumerator version {version})"
