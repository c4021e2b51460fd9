"""A whole query to start: Python for ``spark-submit``, Scala for ``spark-shell``.

As it is printed it is a try: it shows the first records on the console, with a checkpoint location
that Spark makes and removes. A seed is untouched by it: what a query has read from its checkpoint
location, no other reads again. The lines that start it for good stand above the try, as a comment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from migrate.targets.source_options import Connector, KafkaOption, SparkStream

_SEVERAL = (
    "Spark numbers the streams of a query by their place in its plan, from 0, those of other "
    "kinds too:"
)
_COLUMNS = ("topic", "partition", "offset", "CAST(value AS STRING) AS value")
_TRIED = 20
_SUPPOSED = "No Spark is installed beside migrate: name yours with --spark-version."
_OURS = "migrate has written where the query starts. Give this directory to one query alone."
_THEIRS = "Put a new directory here, of this query alone."


@dataclass(frozen=True, slots=True)
class _Language:
    """What differs between the two."""

    comment: str
    # Before a value's first name.
    value: str
    # Between ``records`` and the number of a stream.
    joint: str
    checkpoint_location: str
    literal: Callable[[str], str]
    environment: str
    available_now: str


def python_code(
    streams: Sequence[SparkStream], checkpoint_location: str | None, connector: Connector
) -> str:
    """A PySpark file.

    ``records`` is the stream; ``records_<number>`` of several. ``sink`` is started.

    Args:
        checkpoint_location: the one that was seeded; None leaves a place for one.
        connector: Spark's Kafka source, which its first line names.
    """
    lines = [*python_head(streams, connector), "from pyspark.sql import SparkSession", ""]
    lines += ["spark = SparkSession.builder.getOrCreate()"]
    return "\n".join([*lines, *_query(_PYTHON, streams, checkpoint_location)])


def python_head(streams: Sequence[SparkStream], connector: Connector) -> Iterator[str]:
    """The lines before the first import of a package."""
    yield f"# spark-submit --packages {connector.coordinates} query.py"
    yield from [f"# {_SUPPOSED}"] * connector.supposed
    if any(option.from_environment for stream in streams for option in stream.options):
        yield from ("import os", "")


def python_stream(name: str, stream: SparkStream) -> Iterator[str]:
    """The lines that make a stream of Kafka's records."""
    yield f"{name} = ("
    yield '    spark.readStream.format("kafka")'
    yield from _calls(stream.options, _PYTHON)


def python_literal(text: str) -> str:
    """A text as Python has it."""
    return _python(text)


def scala_code(
    streams: Sequence[SparkStream], checkpoint_location: str | None, connector: Connector
) -> str:
    """The same for ``spark-shell``, or the body of an object; names are ``records``,
    ``records<number>``, ``checkpointLocation`` and ``sink``."""
    lines = [
        f"// spark-shell --packages {connector.coordinates} < query.scala",
        *([f"// {_SUPPOSED}"] * connector.supposed),
        "// Compiled, as the main of an object: spark-submit with the same --packages.",
        "import org.apache.spark.sql.SparkSession",
        "import org.apache.spark.sql.streaming.Trigger",
        "",
        "val spark = SparkSession.builder().getOrCreate()",
    ]
    return "\n".join([*lines, *_query(_SCALA, streams, checkpoint_location)])


def _query(
    language: _Language, streams: Sequence[SparkStream], checkpoint_location: str | None
) -> Iterator[str]:
    """All but the beginning.

    What goes over several lines is in brackets: Scala's shell takes a line that could end for the
    whole.
    """
    note, value = language.comment, language.value
    names = {stream.number: _name(stream, streams, language.joint) for stream in streams}
    if len(streams) > 1:
        places = ", ".join(f"{name} must be number {number}" for number, name in names.items())
        yield from ("", f"{note} {_SEVERAL}", f"{note} {places}")
    for stream in streams:
        yield from ("", f"{value}{names[stream.number]} = (")
        yield '    spark.readStream.format("kafka")'
        yield from _calls(stream.options, language)
    first, *others = names.values()
    union = first + "".join(f".union({name})" for name in others)
    columns = ", ".join(map(language.literal, _COLUMNS))
    yield from ("", f"{note} What your query does with them goes here.")
    yield f"{value}rows = {union}.selectExpr("
    yield from (f"    {columns}", ")", "")
    yield f"{note} {_THEIRS if checkpoint_location is None else _OURS}"
    location = language.literal(checkpoint_location or "DIRECTORY")
    yield f"{value}{language.checkpoint_location} = {location}"
    yield from (
        "",
        f"{note} A try: the first {_TRIED} records on the console. It leaves the directory above "
        "as it is.",
        f'{value}sink = rows.limit({_TRIED}).writeStream.format("console")'
        f".trigger({language.available_now})",
        f"{note} To start for good, put these lines in the place of that one, with your sink:",
        f"{note} {value}sink = (",
        f'{note}     rows.writeStream.format("parquet").option("path", "DIRECTORY")',
        f'{note}     .option("checkpointLocation", {language.checkpoint_location})',
        f"{note} )",
        "",
        "sink.start().awaitTermination()",
    )


def _calls(options: Iterable[KafkaOption], language: _Language) -> Iterator[str]:
    """From the first ``.option`` to the bracket after ``.load()``."""
    for option in options:
        if option.why:
            yield f"    {language.comment} {option.why}"
        value = language.literal(option.value)
        if option.from_environment:
            value = language.environment.format(value)
        yield f"    .option({language.literal(option.name)}, {value})"
    yield from ("    .load()", ")")


def option_lines(streams: Sequence[SparkStream], checkpoint_location: str | None) -> str:
    """``name=value`` lines, a ``# source <number>`` line before those of each of several.

    What must not be printed stands as ``${VARIABLE}``. The checkpoint location, an option of
    ``writeStream``, is the last line.
    """
    return "\n".join(_option_lines(streams, checkpoint_location))


def _option_lines(streams: Sequence[SparkStream], checkpoint_location: str | None) -> Iterator[str]:
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


def _name(stream: SparkStream, streams: Sequence[SparkStream], joint: str) -> str:
    return "records" if len(streams) == 1 else f"records{joint}{stream.number}"


def _python(text: str) -> str:
    plain = text.isascii() and text.isprintable() and not set(text) & set('"\\')
    return f'"{text}"' if plain else repr(text)


def _scala(text: str) -> str:
    # Between three quotes nothing is an escape; JSON reads as it is.
    plain = text.isascii() and text.isprintable() and "\\" not in text
    if plain and '"' in text and '"""' not in text and not text.endswith('"'):
        return f'"""{text}"""'
    return json.dumps(text)


_PYTHON = _Language(
    comment="#",
    value="",
    joint="_",
    checkpoint_location="checkpoint_location",
    literal=_python,
    environment="os.environ[{}]",
    available_now="availableNow=True",
)
_SCALA = _Language(
    comment="//",
    value="val ",
    joint="",
    checkpoint_location="checkpointLocation",
    literal=_scala,
    environment="sys.env({})",
    available_now="Trigger.AvailableNow",
)
