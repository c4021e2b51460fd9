"""``migrate to-spark``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Annotated

import typer

from migrate.cli import options
from migrate.cli.errors import Refused, UsageError
from migrate.cli.planning import Request, decide
from migrate.cli.spark_sources import decide_each, parse_spark_sources
from migrate.cli.streams import emit, say
from migrate.policies import Gone, MergeSources, NewPartitions, OnBeyondEnd, OnExpired
from migrate.targets.spark_checkpoint import TargetInUse, check_free, write_checkpoint
from migrate.targets.spark_code import ReadStream, option_lines, python_code, scala_code
from migrate.targets.spark_locations import (
    BadLocation,
    LocalDirectory,
    Location,
    RemoteDirectory,
    location,
)
from migrate.targets.spark_options import (
    IsolationLevel,
    SparkSource,
    read_options,
    starting_offsets,
)
from migrate.targets.spark_sink import DeltaTable, FileSink, UnreadableSink, look_at_sink


class Format(str, Enum):
    JSON = "json"
    OPTIONS = "options"
    PYTHON = "python"
    SCALA = "scala"


_CODE: dict[Format, Callable[[Sequence[ReadStream], str | None], str]] = {
    Format.OPTIONS: option_lines,
    Format.PYTHON: python_code,
    Format.SCALA: scala_code,
}


def to_spark(
    chk: options.CheckpointOrPlan = None,
    bootstrap_servers: options.BootstrapServers = None,
    checkpoint_dir: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Also write a new checkpoint location from which a Spark query starts there: a "
            "directory, or s3://, gs://, abfs://, hdfs://, dbfs:/.",
            show_default=False,
        ),
    ] = None,
    sink: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="The query's file sink or Delta table: refused where it would skip what the query "
            "writes, because another one has written there.",
            show_default=False,
        ),
    ] = None,
    source: options.SourceName = None,
    spark_source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N=S",
            help="Stream N of the query, by its place in the plan from 0, goes on from source S, "
            "as in --source; N=topic:NAME takes that topic alone. Repeatable: a source may go to "
            "several streams, several to one. Streams that are not Kafka's have a number too: "
            "leave it out.",
            show_default=False,
        ),
    ] = None,
    cluster: options.Cluster = None,
    source_group: options.SourceGroup = None,
    topic_map: options.TopicMap = None,
    partitions: options.Partitions = None,
    format: Annotated[
        Format,
        typer.Option(
            help="json: the value of startingOffsets, a line for each --spark-source N in their "
            "order; options: all options as name=value; python, scala: a readStream to paste.",
        ),
    ] = Format.JSON,
    isolation_level: Annotated[
        IsolationLevel | None,
        typer.Option(
            help="What the printed options or code say of transactions; no Flink checkpoint holds "
            "the job's own, and Kafka's default is read_uncommitted.",
            show_default=False,
        ),
    ] = None,
    on_expired: options.OnExpiredOption = OnExpired.FAIL,
    on_beyond_end: options.OnBeyondEndOption = OnBeyondEnd.FAIL,
    new_partitions: options.NewPartitionsOption = NewPartitions.AS_FLINK,
    gone: options.GoneOption = Gone.FAIL,
    unresolved: options.UnresolvedOption = "fail",
    merge_sources: options.MergeSourcesOption = MergeSources.FAIL,
    allow_in_flight: options.AllowInFlight = False,
    allow_ran_on: options.AllowRanOn = False,
    allow_external_files: options.AllowExternalFiles = False,
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
    if isolation_level is not None and format is Format.JSON:
        raise UsageError("--isolation-level goes with --format options, python or scala")
    target = None if checkpoint_dir is None else _location("--checkpoint-dir", checkpoint_dir)
    if target is not None:
        _refuse_in_use(lambda: check_free(target))
    if sink is not None:
        _look_at(_location("--sink", sink))
    kafka = options.KafkaOptions(bootstrap_servers, kafka_config, kafka_property)
    request = Request(
        chk,
        source,
        cluster,
        kafka,
        source_group,
        policies,
        plan,
        plan_out,
        allow_external_files=allow_external_files,
    )
    if spark_source:
        sources = decide_each(request, parse_spark_sources(spark_source))
    else:
        move = decide(request)
        sources = [SparkSource(0, move.next_offsets, move.saved.only_some_partitions)]
    if plan_out is not None:
        return
    known = kafka.config() if kafka.given else None
    if target is not None:
        _refuse_in_use(lambda: write_checkpoint(sources, target))
        say(
            f"wrote {target.name}: a new query's checkpointLocation, starting there with any "
            "trigger but the continuous one; that, and pipelines that own their checkpoints, go "
            "by startingOffsets alone"
        )
    if format is Format.JSON:
        emit("\n".join(starting_offsets(one.next_offsets) for one in sources))
        return
    streams = [
        ReadStream(one.number, read_options(one, known, isolation_level, seeded=target is not None))
        for one in sources
    ]
    emit(_CODE[format](streams, target.for_spark if target is not None else None))


def _location(option: str, text: str) -> LocalDirectory | RemoteDirectory:
    try:
        return location(text)
    except BadLocation as error:
        raise UsageError(f"{option} {error}") from error


def _refuse_in_use(action: Callable[[], None]) -> None:
    try:
        action()
    except TargetInUse as error:
        raise Refused([str(error)]) from error


def _look_at(sink: Location) -> None:
    """Would this sink skip batches of a new query, whose ids begin at 0?"""
    try:
        found = look_at_sink(sink)
    except UnreadableSink as error:
        raise Refused([f"--sink {sink.name}: {error}"]) from error
    match found:
        case None:
            say(f"{sink.name}: no query has written there as a stream")
        case FileSink(last_batch):
            raise Refused(
                [
                    f"{sink.name} is the sink of another query, up to batch {last_batch} "
                    f"(_spark_metadata): a new query's batches 0 to {last_batch} would be skipped "
                    "without a word, and their records lost; name a new directory for the sink, "
                    "and read both"
                ]
            )
        case DeltaTable():
            _tell_of_delta(sink, found)


def _tell_of_delta(sink: Location, table: DeltaTable) -> None:
    say(
        f"{sink.name}: a Delta table with batches of {len(table.last_batches)} writers; a new "
        "query has an id of its own, so that its sink skips none of its batches"
    )
    for writer, last_batch in table.named_writers.items():
        say(
            f"warning: {sink.name} has batches of txnAppId {writer!r} up to {last_batch}: a "
            f"foreachBatch that writes under that name has its batches 0 to {last_batch} skipped "
            "without a word; take another name"
        )
    if table.files_up_to is not None:
        say(
            f"warning: {sink.name} is the sink of a query that wrote files too (_spark_metadata): "
            f"another one that writes files there has its batches 0 to {table.files_up_to} skipped "
            "without a word"
        )
    if table.unread:
        say(f"warning: {sink.name}: not all of its log was looked at: {table.unread}")
