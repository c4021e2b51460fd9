"""``migrate to-spark``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import partial

from migrate.cli import next_step
from migrate.cli.changes import PLAN_TO_APPLY, check_plan_alone, save_plan
from migrate.cli.kafka_environment import with_move_environment
from migrate.cli.terminal import emit, output_after_writing
from migrate.cli.typer_parameters import (
    PLAN_TO_WRITE,
    SERVERS,
    WIDE,
    SideOrPlan,
    option,
    with_options,
)
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.moves import to_spark as spark
from migrate.moves.declare_options import declared_option
from migrate.moves.options import QUERY, MoveArguments, SinkArguments
from migrate.moves.sink import check_sink_of_a_query
from migrate.storage.new_file import check_new_file, check_separate, write_new
from migrate.storage.uris import local_path
from migrate.targets.query_code import TRIAL_RECORDS
from migrate.targets.source_options import IsolationLevel, kafka_connector


class SparkFormat(str, Enum):
    JSON = "json"
    OPTIONS = "options"
    PYTHON = "python"
    SCALA = "scala"
    HUDI = "hudi"


_SPARK_SOURCE = re.compile(r"(0|[1-9][0-9]{0,3})=(.+)")


def parse_spark_sources(texts: Iterable[str]) -> dict[int, list[str]]:
    """Parse ``N=S`` arguments; return the names of the Flink sources for each stream number.

    Raises:
        UsageError: an argument does not have this format.
    """
    names: dict[int, list[str]] = {}
    for text in texts:
        match = _SPARK_SOURCE.fullmatch(text)
        if match is None:
            raise UsageError(f"--spark-source {text!r}: expected N=SOURCE, such as 0=topic:orders")
        names.setdefault(int(match[1]), []).append(match[2])
    return names


@partial(
    with_options,
    daily=("source_group", "flink_rest"),
    help={
        "bootstrap_servers": "Connect to the job's Kafka cluster, and check the positions. "
        + SERVERS,
        "source_group": "Pass the group that the Flink job commits to. Its offsets resolve "
        "'committed', and show whether the job kept running.",
        "flink_rest": "Query Flink's JobManager. The move is refused if the job is running. [env: "
        "MIGRATE_FLINK_REST]",
    },
)
def to_spark(
    chk: SideOrPlan = None,
    *,
    checkpoint_dir: str | None = option(
        "Also write a checkpoint location for a query that starts at these positions. DIR is a "
        "new directory, local or at s3://, gs://, abfs://, hdfs://, or dbfs:/.",
        metavar="DIR",
    ),
    sink: str | None = declared_option(SinkArguments, "sink"),
    sink_writer: str | None = declared_option(SinkArguments, "sink_writer"),
    arguments: MoveArguments,
    spark_source: Mapping[int, Sequence[str]] | None = option(
        "Start stream N of the query at the positions of source S. The first stream is 0. S is a "
        "name as in --source; N=topic:NAME selects one topic. Repeatable.",
        metavar="N=S",
        panel=QUERY,
        read=parse_spark_sources,
    ),
    format: SparkFormat = option(
        "Select the output format. json prints startingOffsets, options prints lines of "
        "name=value, python and scala print a query to complete, and hudi prints the --checkpoint "
        "of a Hudi Streamer.",
        metavar="F",
    ),
    query_file: str | None = option(
        "With --format python or scala, write the query to this new file, and print "
        "startingOffsets.",
        metavar="FILE",
        panel=QUERY,
    ),
    spark_version: str | None = option(
        "Print the query for this Spark version, such as 4.0.0. [default: the version of the "
        "installed PySpark]",
        metavar="V",
        panel=QUERY,
    ),
    isolation_level: IsolationLevel | None = option(
        "Set the Kafka isolation level in the printed options or query: read_committed or "
        "read_uncommitted.",
        metavar="LEVEL",
        panel=QUERY,
    ),
    plan: str | None = PLAN_TO_APPLY,
    plan_out: str | None = PLAN_TO_WRITE,
    wide: bool = WIDE,
) -> None:
    """Print startingOffsets for a Spark query, or write its checkpoint location.

    Positions that would lose or duplicate records are refused (exit 4, nothing written).
    """
    if plan_out is not None:
        if spark_source:
            raise UsageError("--spark-source requires a checkpoint (CHK), not a saved plan")
        check_plan_alone(
            {
                "--checkpoint-dir": checkpoint_dir is not None,
                "--format": format is not SparkFormat.JSON,
                "--query-file": query_file is not None,
                "--spark-version": spark_version is not None,
                "--isolation-level": isolation_level is not None,
            }
        )
    if format is SparkFormat.HUDI and (checkpoint_dir is not None or spark_source):
        raise UsageError(
            "--format hudi cannot be combined with --checkpoint-dir or --spark-source; a Hudi "
            "Streamer stores its positions in its table, and reads one topic"
        )
    if isolation_level is not None and format in (SparkFormat.JSON, SparkFormat.HUDI):
        raise UsageError(
            "--isolation-level requires --format options, --format python, or --format scala"
        )
    if spark_version is not None:
        if format not in (SparkFormat.PYTHON, SparkFormat.SCALA):
            raise UsageError("--spark-version requires --format python or --format scala")
        kafka_connector(spark_version)
    new_file = local_path(query_file) if query_file is not None else None
    if new_file is not None:
        if format not in (SparkFormat.PYTHON, SparkFormat.SCALA):
            raise UsageError("--query-file requires --format python or --format scala")
        check_separate({"checkpoint_dir": checkpoint_dir, "query_file": new_file})
        check_new_file("query_file", new_file)
    arguments = with_move_environment(arguments)
    if plan_out is not None:
        check_sink_of_a_query(sink, sink_writer)
        save_plan(plan_out, chk, plan, None, arguments, wide=wide)
        return
    start = spark.to_spark(
        chk,
        plan=plan,
        checkpoint_dir=checkpoint_dir,
        sink=sink,
        sink_writer=sink_writer,
        spark_source=spark_source,
        isolation_level=isolation_level,
        **arguments,
    )
    note = ""
    if checkpoint_dir is not None:
        note = f"the checkpoint location {checkpoint_dir} is complete"
    code = ""
    if format is not SparkFormat.JSON:
        code = start.code(format.value, spark_version, str(new_file) if new_file else None)
    if new_file is not None:
        with output_after_writing(note):
            write_new(new_file, f"{code}\n")
        log.info(
            f"wrote {query_file}; complete it, and start it with the command in its first "
            f"line; until you complete it, it only shows {TRIAL_RECORDS} records"
        )
        note = "; ".join(filter(None, (note, f"the query {query_file} is complete")))
    with output_after_writing(note):
        emit(code if code and new_file is None else start.starting_offsets)
    if checkpoint_dir is None:
        origin = start.origin
        has_ended = start.job_has_ended or (origin is not None and origin.stopped)
        if origin is not None and origin.kind == "checkpoint" and not has_ended:
            step = f"{origin.how_to_stop}, and rerun the command with the savepoint"
            if new_file is not None:
                step = (
                    "complete the query; then run migrate cut-over, which stops the job itself, or "
                    f"{step}"
                )
            log.info(f"next: {step}")
        elif format is SparkFormat.HUDI:
            log.info("next: start Hudi Streamer once with this output as --checkpoint")
        elif format is SparkFormat.JSON:
            new_sink = " and a new sink" if sink is None else ""
            log.info(
                "next: use this output as startingOffsets of a query with a new "
                f"checkpointLocation{new_sink}; to have migrate write this location, add "
                "--checkpoint-dir DIR"
            )
    elif not spark_source:
        target = f"spark:{checkpoint_dir}"
        if check := next_step.verification(chk, plan, start.origin, target, arguments):
            origin = start.origin if plan is None else None
            is_diff = origin is not None and origin.kind != "checkpoint"
            again = "now, and again soon after the query's first batch"
            when = "before the query starts" if is_diff else again
            log.info(f"next ({when}): {check}")
        elif start.origin is not None and start.origin.kind == "checkpoint":
            log.info(
                "verify can check a move with these options only against its plan; to verify this "
                f"move, delete {checkpoint_dir}, save a plan with --plan-out, and apply the plan "
                "with --plan"
            )
