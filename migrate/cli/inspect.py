"""``migrate inspect``."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from decoder import list_checkpoints
from decoder.urls import redact_url
from migrate.cli import next_step
from migrate.cli.terminal import emit, emit_pieces
from migrate.cli.typer_parameters import WIDE, Checkpoint, TextFormat, option, with_options
from migrate.inputs.flink.extract import Extraction
from migrate.model.catalog import NO_COMPLETE_CHECKPOINT
from migrate.model.errors import InputError
from migrate.model.finding import Finding, Severity
from migrate.model.log import log, timed
from migrate.model.wording import counted
from migrate.moves import inspect as inspecting
from migrate.moves.declare_options import ReadArguments
from migrate.storage.files import Files


@with_options
def inspect(
    chk: Checkpoint,
    format: TextFormat = option(
        "Select the output format. table is for people, and json and csv are for programs."
    ),
    list_: bool = option(
        "List the complete checkpoints in a job's checkpoint directory.", flags=("--list",)
    ),
    *,
    wide: bool = WIDE,
    reading: ReadArguments,
) -> None:
    """Show a checkpoint's positions by source, its state by operator, and findings."""
    if list_:
        _list(chk, format)
        return
    with _without_garbage_collection():
        extraction = inspecting.inspect(chk, **reading)
        match format:
            case TextFormat.JSON:
                from migrate.report.inspection import inspection_json

                emit_pieces(inspection_json(extraction))
            case TextFormat.CSV:
                from migrate.report.inspection import inspection_csv

                emit_pieces(inspection_csv(extraction))
            case TextFormat.TABLE:
                from migrate.report.inspection_table import inspection_table, shown_findings

                emit(inspection_table(extraction, sys.stdout, wide=wide), end="")
                log.info(_summary(chk, extraction, shown_findings(extraction, wide=wide)))


def _summary(chk: str, extraction: Extraction, findings: Sequence[Finding]) -> str:
    """Count the sources, positions, and findings in one line; suggest the next command, if any."""
    positions = sum(len(source.position_fields) for source in extraction.sources)
    severities = Counter(finding.severity for finding in findings)
    summary = ", ".join(
        [
            counted(len(extraction.sources), "Kafka source"),
            counted(positions, "position"),
            *(
                counted(severities[severity], severity.value)
                for severity in Severity
                if severities[severity]
            ),
        ]
    )
    if not positions:
        return summary
    return f"{summary}; next: {next_step.command('to-spark', chk, '-b', 'HOST:PORT')}"


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Turn off the garbage collector within the block.

    A decoded checkpoint has no reference cycles. For 100,000 positions, searches for cycles would
    take a quarter of the run time. ``gc.freeze`` keeps the checkpoint out of later searches.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


def _list(chk: str, format: TextFormat) -> None:
    with timed(f"listing {redact_url(chk)}"):
        checkpoints = list_checkpoints(chk, Files())
    if not checkpoints:
        raise InputError(NO_COMPLETE_CHECKPOINT(chk=chk))
    match format:
        case TextFormat.JSON:
            import json

            emit(json.dumps([{"id": number, "pointer": path} for number, path in checkpoints]))
        case TextFormat.CSV:
            from migrate.report.text import csv_text

            emit(csv_text(("id", "pointer"), checkpoints), end="")
        case TextFormat.TABLE:
            emit("".join(f"{number}\t{path}\n" for number, path in checkpoints), end="")
            if checkpoints:
                newest = next_step.command("inspect", checkpoints[-1][1])
                log.info(f"{counted(len(checkpoints), 'complete checkpoint')}; next: {newest}")
