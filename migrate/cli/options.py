"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from migrate.storage import local_path

CheckpointOrPlan = Annotated[
    str | None,
    typer.Argument(
        metavar="CHK",
        help="A chk-<n> or savepoint directory, its _metadata, or a job's checkpoint directory "
        "(its newest complete chk-<n>); a local path, or s3://, gs://, abfs://, hdfs://, "
        "webhdfs://; none with --plan.",
        show_default=False,
    ),
]
Checkpoint = Annotated[
    str,
    typer.Argument(
        metavar="CHK",
        help="A chk-<n> or savepoint directory, its _metadata, or a job's checkpoint directory "
        "(its newest complete chk-<n>); a local path, or s3://, gs://, abfs://, hdfs://, webhdfs://.",
        show_default=False,
    ),
]
SourceName = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="S",
        help="The Kafka source to move: its operator id, name, uid, or topic:NAME.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ID",
        help="The Kafka cluster to move, by the id that a DynamicKafkaSource knows it by.",
        show_default=False,
    ),
]
AllowExternalFiles = Annotated[
    bool,
    typer.Option(
        "--allow-external-files",
        help="Open files that the checkpoint names outside of its own directories: for one you "
        "trust, whose state was left elsewhere.",
    ),
]
PlanFileToApply = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        parser=local_path,
        help="Apply a plan saved with --plan-out, unless the cluster or the job has moved "
        "meanwhile.",
        show_default=False,
    ),
]
PlanFileToWrite = Annotated[
    Path | None,
    typer.Option(
        "--plan-out",
        metavar="FILE",
        parser=local_path,
        help="Save the plan as JSON, to be reviewed and applied later; nothing else is written.",
        show_default=False,
    ),
]
