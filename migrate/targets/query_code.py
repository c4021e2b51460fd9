"""The code of a complete query: Python for ``spark-submit``, Scala for ``spark-shell``.

The printed query is a trial that shows the first records on the console. It uses a temporary
checkpoint location that Spark chooses, so it does not change the seed. A comment in the code
contains the lines that start the real query.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from migrate.model.option_names import option as written_option
from migrate.targets.source_options import Connector, SparkStream

_SEVERAL_STREAMS = (
    "Spark numbers all streams of a query from 0, in the order of its plan, including streams "
    "that do not read Kafka:"
)
_COLUMNS = ("topic", "partition", "offset", "CAST(value AS STRING) AS value")
# The number of records that the trial shows.
TRIAL_RECORDS = 20
LOCATION_PLACEHOLDER = "CHECKPOINT-DIR"
_TRIAL = f'rows.limit({TRIAL_RECORDS}).writeStream.format("console")'
_SEEDED_LOCATION = (
    "migrate has written the query's start positions to this directory. Use it for one query only."
)
SINK_COMMENT = (
    "The sink of an earlier query may skip the first batches of this query. Use a new sink, or "
    "check the sink with to-spark --sink."
)
_NEW_LOCATION = (
    "COMPLETE: the path of a new directory; for a cut-over, the absolute path of "
    "target.checkpoint-dir. Use it for one query only."
)


@dataclass(frozen=True, slots=True)
class Language:
    """The parts of the code that differ between Python and Scala."""

    comment: str
    # A template that takes the connector's coordinates and the file name.
    launch: str
    file: str
    # The import that the code requires if an option's value comes from the environment.
    environment_import: tuple[str, ...]
    session: tuple[str, ...]
    declaration: str
    # In a variable name such as ``records_1``, the text between ``records`` and the stream's
    # number.
    separator: str
    checkpoint_location: str
    literal: Callable[[str], str]
    environment: str
    available_now: str


def query_code(
    language: Language,
    streams: Sequence[SparkStream],
    checkpoint_location: str | None,
    connector: Connector,
    file: str | None = None,
) -> str:
    """Return a PySpark file, or a Scala file for ``spark-shell``.

    An expression that spans several lines is in parentheses. Without them, the Scala shell ends the
    expression at the first line at which it is complete.

    ``checkpoint_location`` is the seeded location; if None, the code has a placeholder. The first
    line contains ``connector`` and ``file``.
    """
    note, declare = language.comment, language.declaration
    lines = [
        *code_head(language, streams, connector, file),
        f"{note} A query template. Edit the lines with COMPLETE. Unedited, it shows "
        f"{TRIAL_RECORDS} records and ends.",
        *language.session,
    ]
    names = ["records"]
    if len(streams) > 1:
        names = [f"records{language.separator}{stream.number}" for stream in streams]
        numbers = ", ".join(
            f"{name} must be number {stream.number}"
            for name, stream in zip(names, streams, strict=True)
        )
        lines += ["", f"{note} {_SEVERAL_STREAMS}", f"{note} {numbers}"]
    for name, stream in zip(names, streams, strict=True):
        lines += ["", *stream_lines(language, name, stream)]
    union = names[0] + "".join(f".union({name})" for name in names[1:])
    columns = ", ".join(map(language.literal, _COLUMNS))
    location = language.literal(checkpoint_location or LOCATION_PLACEHOLDER)
    lines += [
        "",
        f"{note} COMPLETE: process the records.",
        f"{declare}rows = {union}.selectExpr(",
        f"    {columns}",
        ")",
        "",
        f"{note} {_NEW_LOCATION if checkpoint_location is None else _SEEDED_LOCATION}",
        f"{declare}{language.checkpoint_location} = {location}",
        "",
        f"{note} COMPLETE: write the rows. This line shows {TRIAL_RECORDS} records, and does not "
        "change the directory.",
        f"{declare}sink = {_TRIAL}.trigger({language.available_now})",
        f"{note} {SINK_COMMENT}",
        f"{note} For the real query, replace the line above with these lines and your sink:",
        f"{note} {declare}sink = (",
        f'{note}     rows.writeStream.format("parquet").option("path", SINK_DIRECTORY)',
        f'{note}     .option("checkpointLocation", {language.checkpoint_location})',
        f"{note} )",
        "",
        "sink.start().awaitTermination()",
    ]
    return "\n".join(lines)


def runs_trial(code: str) -> bool:
    """Return whether code from ``query_code`` starts the trial of a query template."""
    return any(_TRIAL in line for line in _code_lines(code))


def lacks_location(code: str) -> bool:
    """Return whether code still contains the placeholder for the checkpoint location."""
    return any(f'"{LOCATION_PLACEHOLDER}"' in line for line in _code_lines(code))


def _code_lines(code: str) -> Iterator[str]:
    """Yield the lines of Python or Scala code that are not comments."""
    comments = (PYTHON.comment, SCALA.comment)
    return (line for line in code.splitlines() if not line.lstrip().startswith(comments))


def code_head(
    language: Language, streams: Sequence[SparkStream], connector: Connector, file: str | None
) -> Iterator[str]:
    """Yield the comments at the top of the code, and any imports that the options require."""
    launch = language.launch.format(connector.coordinates, shlex.quote(file or language.file))
    yield f"{language.comment} {launch}"
    if connector.is_guess:
        yield (
            f"{language.comment} Spark is not installed in migrate's environment. Specify your "
            f"Spark version with {written_option('spark_version')}."
        )
    if any(option.from_environment for stream in streams for option in stream.options):
        yield from language.environment_import


def stream_lines(language: Language, name: str, stream: SparkStream) -> Iterator[str]:
    """Yield the lines that create a stream of Kafka records."""
    yield f"{language.declaration}{name} = ("
    yield '    spark.readStream.format("kafka")'
    for option in stream.options:
        if option.why:
            yield f"    {language.comment} {option.why}"
        value = language.literal(option.value)
        if option.from_environment:
            value = language.environment.format(value)
        yield f"    .option({language.literal(option.name)}, {value})"
    yield from ("    .load()", ")")


def option_lines(streams: Sequence[SparkStream], checkpoint_location: str | None) -> Iterator[str]:
    """Yield a ``name=value`` line for each option.

    With several sources, ``# source <number>`` comes before the options of each source. A secret is
    printed as ``${VARIABLE}``. The checkpoint location, if known, is in the last line as an option
    of ``writeStream``. All other options are options of ``readStream``.
    """
    for stream in streams:
        if len(streams) > 1:
            yield f"# source {stream.number}"
        for option in stream.options:
            value = f"${{{option.value}}}" if option.from_environment else option.value
            yield f"{option.name}={value}"
    if checkpoint_location is not None:
        if len(streams) > 1:
            yield "# the query"
        yield f"checkpointLocation={checkpoint_location}"


def python_literal(text: str) -> str:
    """Return the Python literal for a string."""
    plain = text.isascii() and text.isprintable() and not set(text) & set('"\\')
    return f'"{text}"' if plain else repr(text)


def _scala_literal(text: str) -> str:
    # A literal in triple quotes has no escapes, so JSON stays readable.
    plain = text.isascii() and text.isprintable() and "\\" not in text
    if plain and '"' in text and '"""' not in text and not text.endswith('"'):
        return f'"""{text}"""'
    return json.dumps(text)


PYTHON = Language(
    comment="#",
    launch="spark-submit --packages {} {}",
    file="query.py",
    environment_import=("import os", ""),
    session=(
        "from pyspark.sql import SparkSession",
        "",
        "spark = SparkSession.builder.getOrCreate()",
    ),
    declaration="",
    separator="_",
    checkpoint_location="checkpoint_location",
    literal=python_literal,
    environment="os.environ[{}]",
    available_now="availableNow=True",
)
# The code for the Scala shell can also be the body of an object.
SCALA = Language(
    comment="//",
    launch="spark-shell --packages {} < {}",
    file="query.scala",
    environment_import=(),
    session=(
        "// To compile it, make it the main method of an object, and run the object with "
        "spark-submit and the same --packages.",
        "import org.apache.spark.sql.SparkSession",
        "import org.apache.spark.sql.streaming.Trigger",
        "",
        "val spark = SparkSession.builder().getOrCreate()",
    ),
    declaration="val ",
    separator="",
    checkpoint_location="checkpointLocation",
    literal=_scala_literal,
    environment="sys.env({})",
    available_now="Trigger.AvailableNow",
)
