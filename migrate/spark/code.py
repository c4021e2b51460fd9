"""Code to paste: the ``readStream`` of each Kafka source of a query, in Python or Scala.

It is complete up to the point where the user's own query begins, and names no sink: one that
stood in for theirs would take the records, and the seed with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from migrate.spark.options import Option

_SEVERAL = (
    "Spark numbers the streams of a query by their place in its plan, from 0, those of other "
    "kinds too:"
)


@dataclass(frozen=True, slots=True)
class ReadStream:
    """The options of one Kafka source; ``number`` is its place among the query's streams."""

    number: int
    options: Sequence[Option]


def python_code(streams: Sequence[ReadStream], checkpoint_location: str | None) -> str:
    """A PySpark script whose variable ``records`` is the stream; ``records_<number>`` of several.

    Where a checkpoint location was seeded, ``checkpoint_location`` is that one.
    """
    lines = ["from pyspark.sql import SparkSession"]
    if _asks_the_environment(streams):
        lines = ["import os", "", *lines]
    lines += ["", "spark = SparkSession.builder.getOrCreate()"]
    if len(streams) > 1:
        lines += ["", f"# {_SEVERAL}", "# " + _places(streams, joint="_")]
    for stream in streams:
        lines += ["", f"{_name(stream, streams, joint='_')} = ("]
        lines.append('    spark.readStream.format("kafka")')
        lines += _calls(stream.options, "#", _python, "os.environ[{}]")
    if checkpoint_location is not None:
        lines += [
            "",
            "# Start your query, and no other one, with this checkpoint location:",
            '#     ….writeStream.option("checkpointLocation", checkpoint_location)….start()',
            f"checkpoint_location = {_python(checkpoint_location)}",
        ]
    return "\n".join(lines)


def scala_code(streams: Sequence[ReadStream], checkpoint_location: str | None) -> str:
    """The same for ``spark-shell``, or the body of an object; names are ``records``,
    ``records<number>`` and ``checkpointLocation``."""
    lines = [
        "import org.apache.spark.sql.SparkSession",
        "",
        "val spark = SparkSession.builder().getOrCreate()",
    ]
    if len(streams) > 1:
        lines += ["", f"// {_SEVERAL}", "// " + _places(streams, joint="")]
    for stream in streams:
        # In parentheses: the shell takes a line that could end there for the whole.
        lines += ["", f"val {_name(stream, streams, joint='')} = ("]
        lines.append('  spark.readStream.format("kafka")')
        lines += _calls(stream.options, "//", _scala, "sys.env({})")
    if checkpoint_location is not None:
        lines += [
            "",
            "// Start your query, and no other one, with this checkpoint location:",
            '//     ….writeStream.option("checkpointLocation", checkpointLocation)….start()',
            f"val checkpointLocation = {_scala(checkpoint_location)}",
        ]
    return "\n".join(lines)


def _calls(
    options: Iterable[Option], comment: str, literal: Callable[[str], str], environment: str
) -> Iterator[str]:
    """From the first ``.option`` to the bracket after ``.load()``."""
    for option in options:
        if option.why:
            yield f"    {comment} {option.why}"
        value = literal(option.value)
        if option.from_environment:
            value = environment.format(value)
        yield f"    .option({literal(option.name)}, {value})"
    yield from ("    .load()", ")")


def option_lines(streams: Sequence[ReadStream], checkpoint_location: str | None) -> str:
    """``name=value`` lines, a ``# source <number>`` line before those of each of several.

    What must not be printed stands as ``${VARIABLE}``. The checkpoint location, an option of
    ``writeStream``, is the last line.
    """
    return "\n".join(_option_lines(streams, checkpoint_location))


def _option_lines(streams: Sequence[ReadStream], checkpoint_location: str | None) -> Iterator[str]:
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


def _name(stream: ReadStream, streams: Sequence[ReadStream], joint: str) -> str:
    return "records" if len(streams) == 1 else f"records{joint}{stream.number}"


def _places(streams: Sequence[ReadStream], joint: str) -> str:
    return ", ".join(
        f"{_name(stream, streams, joint)} must be number {stream.number}" for stream in streams
    )


def _asks_the_environment(streams: Sequence[ReadStream]) -> bool:
    return any(option.from_environment for stream in streams for option in stream.options)


def _python(text: str) -> str:
    plain = text.isascii() and text.isprintable() and not set(text) & set('"\\')
    return f'"{text}"' if plain else repr(text)


def _scala(text: str) -> str:
    # Between three quotes nothing is an escape; JSON reads as it is.
    plain = text.isascii() and text.isprintable() and "\\" not in text
    if plain and '"' in text and '"""' not in text and not text.endswith('"'):
        return f'"""{text}"""'
    return json.dumps(text)
