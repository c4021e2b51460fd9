"""Findings: what a user must know of a checkpoint before moving from it, beside the positions.

A module each for what is said of the checkpoint as a whole, of a Kafka source, of any operator.
"""

from migrate.inputs.flink.findings.checkpoint import (
    SINKS_THAT_REMEMBER,
    about_the_checkpoint,
    is_last_output,
)
from migrate.inputs.flink.findings.operator import about_an_operator, state_bytes
from migrate.inputs.flink.findings.source import about_a_source

__all__ = [
    "SINKS_THAT_REMEMBER",
    "about_a_source",
    "about_an_operator",
    "about_the_checkpoint",
    "is_last_output",
    "state_bytes",
]
