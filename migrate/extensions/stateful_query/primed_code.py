"""The code of a PySpark file that primes a query with keyed state and then starts the query.

The file runs as printed, unless it has a placeholder such as ``ttl_ms=...``. Its example query
emits each key once (``dropDuplicates``), which works for every keyed state. The user replaces the
example with the real query, and ``seen_rows`` with the function that creates rows for that query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate.extensions.stateful_query.taken_states import StateToPrime
from migrate.targets.query_code import PYTHON, SINK_COMMENT, code_head, python_literal, stream_lines
from migrate.targets.source_options import Connector, SparkStream


def priming_code(
    stream: SparkStream,
    states: Sequence[StateToPrime],
    savepoint: str,
    checkpoint_location: str,
    connector: Connector,
    file: str | None = None,
    *,
    allow_ran_on: bool = False,
) -> str:
    """Return the text of the file, with one query for each state.

    Args:
        stream: the stream of Kafka records.
        states: the keyed states with which the queries start.
        savepoint: the path of the savepoint.
        checkpoint_location: the query's checkpoint location; for several states, the directory
            that gets a checkpoint location for each state.
        connector: the JAR file of Spark's Kafka connector.
        file: the name of the printed file, which is shown in its first line.
        allow_ran_on: True if the move was allowed even though the job has output beyond the
            savepoint.
    """
    lines = [
        *code_head(PYTHON, [stream], connector, file),
        "import os",
        "from pathlib import Path",
        "",
        "from pyspark.sql import SparkSession",
        "from pyspark.sql import functions as F",
        "",
        "from migrate.spark import prime, read_keyed_state, seen_rows",
        "",
        "spark = SparkSession.builder.getOrCreate()",
        "",
        *stream_lines(PYTHON, "records", stream),
        "",
        "# State and positions are of one savepoint.",
        f"savepoint = {python_literal(savepoint)}",
        f"positions = {python_literal(stream.starting_offsets)}",
    ]
    suffixes = [""] if len(states) == 1 else [f"_{number}" for number in range(len(states))]
    for number, (state, suffix) in enumerate(zip(states, suffixes, strict=True)):
        location = f"{checkpoint_location}/{number}" if suffix else checkpoint_location
        lines += _priming_lines(state, suffix, location, allow_ran_on)
    # Prime all states before the first query starts. If a query had already started and then
    # failed, resetTerminated() would hide the failure from awaitAnyTermination().
    lines += [
        "",
        "# Ignore the queries that have already ended.",
        "spark.streams.resetTerminated()",
    ]
    lines += ["", f"{PYTHON.comment} {SINK_COMMENT}"]
    for suffix in suffixes:
        lines += [
            "",
            f'sink{suffix} = query{suffix}(parsed{suffix}(records)).writeStream.format("console")',
            f'sink{suffix}.option("checkpointLocation", checkpoint_location{suffix}).start()',
        ]
    return "\n".join([*lines, "", "spark.streams.awaitAnyTermination()"])


def _priming_lines(
    state: StateToPrime, suffix: str, checkpoint_location: str, allow_ran_on: bool
) -> Iterator[str]:
    schema = ", ".join(f"{name} {ddl}" for name, ddl, _ in state.keys)
    columns = ", ".join(python_literal(name) for name, _, _ in state.keys)
    keys = ", ".join(
        f"{python_literal(name)}: {python_literal(expression)}"
        for name, _, expression in state.keys
    )
    ttl = ", ttl_ms=..." if state.ttl else ""  # seen_rows refuses ``...``
    yield from (
        "",
        f"# -- {state.operator}/{state.state}",
        "",
        f"schema{suffix} = {python_literal(schema)}",
        f"checkpoint_location{suffix} = {python_literal(checkpoint_location)}",
        "",
        "",
        f"def parsed{suffix}(records):",
        "    # Parse your records here. This example parses JSON with the parts of the key.",
        f'    parts = F.from_json(F.col("value").cast("STRING"), schema{suffix})',
        '    return records.select(parts.alias("it")).select("it.*")',
        "",
        "",
        f"def query{suffix}(events):",
        "    # Write your query here. This example emits each key once.",
        f"    return events.dropDuplicates([{columns}])",
        "",
        "",
        # A directory without commits is not primed yet. prime() writes to the directory if it is
        # empty, and refuses the directory if it contains a seed.
        f'if not Path(checkpoint_location{suffix}, "commits").is_dir():',
        "    state = read_keyed_state(",
        f"        spark, savepoint, operator={python_literal(state.operator)}, "
        f"state={python_literal(state.state)}",
        "    )",
        *_advice(state),
        f"    rows = seen_rows(state, schema{suffix}, keys={{{keys}}}{ttl})",
        "    prime(",
        f"        query{suffix},",
        "        [rows],",
        "        positions=positions,",
        f"        checkpoint_location=checkpoint_location{suffix},",
        "        # Flink's JobManager, such as http://host:8081, shows a restart of the job.",
        '        flink_rest=os.environ.get("MIGRATE_FLINK_REST"),',
        *(["        allow_ran_on=True,"] if allow_ran_on else []),
        "    )",
    )


def _advice(state: StateToPrime) -> Iterator[str]:
    """Yield comments for the printed code about arguments that this state may require."""
    if state.ttl:
        yield "    # The state has a TTL. Replace ... with the TTL in milliseconds from the job's"
        yield "    # code, or with None to keep every entry."
    if state.merging:
        yield "    # For sessions, session_windows(state, …) joins it with merging-window-set."
    if state.value is not None:
        yield f"    # The value is {state.value}. For counts, sums, and windows, use"
        yield '    # aggregate_rows(state, schema, keys=…, count="value.f0", …), not seen_rows.'
    if state.windowed:
        yield '    # Also pass window="namespace" and time=…. Pass the end of the last window that'
        yield "    # Flink has fired to prime(…, watermark_ms=…)."
