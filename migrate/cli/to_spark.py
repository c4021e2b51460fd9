"""``migrate to-spark``."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from decoder.storage import LocalFiles
from migrate.cli import options
from migrate.cli.errors import Refused, UsageError
from migrate.cli.planning import Move, Request, decide
from migrate.cli.streams import emit, say
from migrate.policies import Gone, MergeSources, NewPartitions, OnBeyondEnd, OnExpired
from migrate.targets.spark_checkpoint import TargetInUse, check_free, write_seed
from migrate.targets.spark_options import starting_offsets

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class Format(str, Enum):
    JSON = "json"


def to_spark(
    chk: options.CheckpointOrPlan = None,
    bootstrap_servers: options.BootstrapServers = None,
    checkpoint_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Also write a new checkpoint location from which a Spark query starts there.",
            show_default=False,
        ),
    ] = None,
    source: options.SourceName = None,
    cluster: options.Cluster = None,
    source_group: options.SourceGroup = None,
    topic_map: options.TopicMap = None,
    partitions: options.Partitions = None,
    format: Annotated[
        Format, typer.Option(help="json: the value of startingOffsets.")
    ] = Format.JSON,
    on_expired: options.OnExpiredOption = OnExpired.FAIL,
    on_beyond_end: options.OnBeyondEndOption = OnBeyondEnd.FAIL,
    new_partitions: options.NewPartitionsOption = NewPartitions.AS_FLINK,
    gone: options.GoneOption = Gone.FAIL,
    unresolved: options.UnresolvedOption = "fail",
    merge_sources: options.MergeSourcesOption = MergeSources.FAIL,
    allow_in_flight: options.AllowInFlight = False,
    allow_ran_on: options.AllowRanOn = False,
    plan: options.PlanFileToApply = None,
    plan_out: options.PlanFileToWrite = None,
    kafka_config: options.KafkaConfigFile = None,
    kafka_property: options.KafkaProperties = None,
) -> None:
    """Write where Spark is to start: startingOffsets on stdout, and a seeded checkpoint location.

    Refuses (exit 4, nothing on stdout, nothing written) what would lose or repeat records.
    """
    policies = options.PolicyOptions(
        on_expired,
        on_beyond_end,
        new_partitions,
        gone,
        unresolved,
        merge_sources,
        allow_in_flight,
        allow_ran_on,
        topic_map,
        partitions,
    ).policies()
    if checkpoint_dir is not None:
        checkpoint_dir = _local(checkpoint_dir)
        _check_free(checkpoint_dir)
    kafka = options.KafkaOptions(bootstrap_servers, kafka_config, kafka_property)
    move = decide(Request(chk, source, cluster, kafka, source_group, policies, plan, plan_out))
    if plan_out is not None:
        return
    if checkpoint_dir is not None:
        _write(move, checkpoint_dir)
        say(f"wrote {checkpoint_dir}: a new query's checkpointLocation, starting there")
    emit(starting_offsets(move.next_offsets))


def _local(directory: Path) -> Path:
    """A local directory, also as ``file:/…``; a URI of another kind would become a local folder of
    that name, and the query at the real one would find no seed."""
    text = str(directory)
    if not _URI.match(text):
        return directory
    path = LocalFiles().from_uri(text)
    if path is None:
        raise UsageError(
            f"--checkpoint-dir {text}: only local directories are written; write a local one and "
            "copy it there whole before the query's first start"
        )
    return Path(path)


def _check_free(directory: Path) -> None:
    try:
        check_free(directory)
    except TargetInUse as error:
        raise Refused([str(error)]) from error


def _write(move: Move, directory: Path) -> None:
    try:
        write_seed(move.next_offsets, directory)
    except TargetInUse as error:
        raise Refused([str(error)]) from error
