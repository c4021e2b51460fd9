"""Findings: what a user must know of a checkpoint before moving from it, beside the positions.

A module each for what is said of the checkpoint as a whole, of a Kafka source, of any operator.
"""

from migrate.flink.findings.checkpoint import (
    SINKS_THAT_REMEMBER,
    about_the_checkpoint,
    is_last_output,
)
from migrate.flink.findings.codes import Code, Finding, Severity
from migrate.flink.findings.operator import about_an_operator, state_bytes
from migrate.flink.findings.source import about_a_source

__all__ = [
    "SINKS_THAT_REMEMBER",
    "Code",
    "Finding",
    "Severity",
    "about_a_source",
    "about_an_operator",
    "about_the_checkpoint",
    "is_last_output",
    "state_bytes",
]
