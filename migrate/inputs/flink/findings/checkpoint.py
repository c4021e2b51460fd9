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
from decoder.kafka.enumerator import ENUMERATOR_WRITTEN_BY
from decoder.kafka.sink import COMMITTER_STATE, UnknownSink
from decoder.metadata.layout import LAYOUTS
from migrate.inputs.flink.source import KafkaState
from migrate.model.finding import Code, Finding
from migrate.model.option_names import option
from migrate.model.wording import counted


def sink_memory_text() -> str:
    """Return text for messages; ``migrate.sinks`` describes sinks that remember checkpoint IDs."""
    return (
        "a sink that remembers checkpoint IDs may drop records of a Flink job that starts from "
        f"these offsets without state; to check the table, add {option('sink', 'TABLE')}"
    )


def job_ended_with(checkpoint: Checkpoint) -> bool:
    """Return whether the job ended with this checkpoint, with no later output."""
    return checkpoint.type.stop in (StopKind.SUSPEND, StopKind.TERMINATE)


def findings_of_checkpoint(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Yield the findings about a whole checkpoint."""
    if checkpoint.newer_siblings:
        yield _ran_on_finding(checkpoint.checkpoint_id, checkpoint.newer_siblings[-1])
    elif not job_ended_with(checkpoint):
        what = {
            CheckpointKind.CHECKPOINT: "a checkpoint",
            CheckpointKind.SAVEPOINT: "a savepoint without stop",
            CheckpointKind.UNKNOWN: "a checkpoint or savepoint without evidence of a stop",
        }[checkpoint.type.kind]
        yield Finding(
            Code.NOT_A_STOP,
            f"this is {what}; if the job kept running, its later output will be duplicated",
            void_after_stop=True,
        )
    if checkpoint.earlier_run:
        yield Finding(
            Code.NUMBERING_BEGAN_ANEW,
            f"chk-{checkpoint.earlier_run[-1]} in the same directory has a higher number "
            "but was written earlier; either an earlier run of the job wrote it, or the "
            "checkpoints were copied without their modification times",
        )
    elif checkpoint.contradicting:
        yield _contradiction_finding(checkpoint.checkpoint_id, checkpoint.contradicting)
    finished = [operator for operator in checkpoint.operators if operator.finished]
    if finished:
        names = ", ".join(operator.name or operator.operator_id for operator in finished)
        yield Finding(
            Code.FINISHED_OPERATORS,
            f"{counted(len(finished), 'operator')} had finished and stored no state "
            f"({names}); the positions of a finished Kafka source are not in the checkpoint",
        )
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
        yield Finding(
            Code.SINK_MEMORY,
            f"the kind of the sink {', '.join(committers)} is unknown; {sink_memory_text()}",
        )


def _ran_on_finding(number: int, newest: int) -> Finding:
    if newest > number:
        reason = f"chk-{newest} in the same directory is complete"
    else:
        # A later run of the job restarted the numbering, or the times belong to copies.
        reason = (
            f"chk-{newest} in the same directory was written after this chk-{number}, "
            "although its number is lower (or the checkpoints were copied without their "
            "modification times)"
        )
    return Finding(
        Code.RAN_ON,
        f"the job kept running after this checkpoint; {reason}; the job's later output "
        "would be duplicated",
    )


def _contradiction_finding(number: int, others: Sequence[int]) -> Finding:
    """Return the finding about checkpoints whose times contradict their numbers.

    The checkpoints are from two runs of the job, or are copies with different times. The user must
    determine which checkpoint is the last.
    """
    lower = [other for other in others if other < number]
    when, other, order = (
        ("after", lower[-1], "lower") if lower else ("before", others[-1], "higher")
    )
    return Finding(
        Code.NUMBERING_BEGAN_ANEW,
        f"chk-{other} in the same directory was written {when} this chk-{number}, although "
        f"its number is {order}; find out which checkpoint the job wrote last",
    )


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
    return Finding(
        Code.WRITTEN_BY,
        f"written by {', and by '.join(writers)}; the state does not contain the exact release",
    )


def _connector_releases(source: KafkaState | UnknownSource) -> str | None:
    match source:
        case KafkaSource(enumerator=enumerator) if enumerator is not None:
            version, releases = enumerator.version, ENUMERATOR_WRITTEN_BY
        case DynamicKafkaSource(enumerator=dynamic) if dynamic is not None:
            version, releases = dynamic.version, DYNAMIC_ENUMERATOR_WRITTEN_BY
        case HybridSource():
            return _connector_releases(source.current)
        case LegacyConsumer():
            return "a Kafka connector up to 3.4 (FlinkKafkaConsumer)"
        case BeamKafkaIO():
            return "an Apache Beam pipeline (KafkaIO)"
        case _:
            return None
    return f"a Kafka connector {releases[version]} (enumerator version {version})"
