"""``migrate inspect``."""

from __future__ import annotations

import json
import sys
from enum import Enum
from typing import Annotated

import typer

from decoder import list_checkpoints, read_checkpoint
from migrate.cli.options import AllowExternalFiles, Checkpoint
from migrate.cli.streams import emit
from migrate.extract import extract
from migrate.storage import Files


class Format(str, Enum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def inspect(
    chk: Checkpoint,
    format: Annotated[
        Format, typer.Option(help="table for people; json and csv for programs.")
    ] = Format.TABLE,
    list_: Annotated[
        bool,
        typer.Option(
            "--list", help="List the complete checkpoints of a job's checkpoint directory instead."
        ),
    ] = False,
    allow_external_files: AllowExternalFiles = False,
) -> None:
    """Show what a checkpoint holds: positions per source, state per operator, findings."""
    if list_:
        _list(chk, format)
        return
    from migrate.report.inspection import inspect_report

    report = inspect_report(
        extract(read_checkpoint(chk, Files(), allow_external_files=allow_external_files))
    )
    match format:
        case Format.JSON:
            emit(json.dumps(report.model_dump(mode="json"), indent=2))
        case Format.CSV:
            from migrate.report.text import inspection_csv

            emit(inspection_csv(report), end="")
        case Format.TABLE:
            from migrate.report.text import inspection_table

            emit(inspection_table(report, sys.stdout), end="")


def _list(chk: str, format: Format) -> None:
    checkpoints = list_checkpoints(chk, Files())
    match format:
        case Format.JSON:
            emit(json.dumps([{"id": number, "pointer": path} for number, path in checkpoints]))
        case Format.CSV:
            from migrate.report.text import csv_text

            emit(csv_text(("id", "pointer"), checkpoints), end="")
        case Format.TABLE:
            emit("".join(f"{number}\t{path}\n" for number, path in checkpoints), end="")
