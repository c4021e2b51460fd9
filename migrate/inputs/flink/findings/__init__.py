"""Findings about a checkpoint as a whole, its Kafka sources, and its operators."""

from migrate.inputs.flink.findings.checkpoint import (
    SINKS_THAT_REMEMBER,
    findings_of_checkpoint,
    is_last_output,
)
from migrate.inputs.flink.findings.operator import findings_of_operator, state_bytes
from migrate.inputs.flink.findings.source import findings_of_source

__all__ = [
    "SINKS_THAT_REMEMBER",
    "findings_of_checkpoint",
    "findings_of_operator",
    "findings_of_source",
    "is_last_output",
    "state_bytes",
]
