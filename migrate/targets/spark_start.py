"""The start of a Spark query, as printed by ``to-spark``: JSON, options, or the code of a query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from migrate.model.positions import Origin
from migrate.targets.query_code import PYTHON, SCALA, option_lines, query_code
from migrate.targets.source_options import SparkStream, kafka_connector


@dataclass(frozen=True, slots=True)
class SparkStart:
    """The start of a Spark query.

    Attributes:
        streams: the query's Kafka sources, in the order of their numbers.
        checkpoint_location: the user's checkpoint location, in the format that the query uses, or
            None.
        origin: the origin of the positions; None if the streams have different origins
            (``--spark-source``).
        job_has_ended: True if Flink lists the job of a retained checkpoint as ended, so it cannot
            be stopped with a savepoint.
    """

    streams: tuple[SparkStream, ...]
    checkpoint_location: str | None
    warnings: tuple[str, ...]
    origin: Origin | None = None
    job_has_ended: bool = field(default=False, kw_only=True)

    @property
    def starting_offsets(self) -> str:
        """The value of ``startingOffsets``; for several streams, one line per stream, in order."""
        return "\n".join(stream.starting_offsets for stream in self.streams)

    def code(
        self,
        format: Literal["options", "python", "scala", "hudi"],
        spark_version: str | None = None,
        file: str | None = None,
    ) -> str:
        """Return the start as Spark options, as a query's code, or as a Hudi Streamer checkpoint.

        Args:
            format: ``options`` for a ``name=value`` line for each option; ``python`` or ``scala``
                for the code of a query, which the user completes; or ``hudi`` for a Hudi Streamer
                checkpoint.
            spark_version: the version of Spark that runs the code, such as ``4.0.0``. The default
                is the version of the installed PySpark, or 4.0.0 if PySpark is not installed.
            file: the name of the file to which the code will be written. The code's first line is
                a comment with the command that runs this file.

        Raises:
            UsageError: ``spark_version`` is not a version.
            Refused: the format is ``hudi``, and there are several topics.
        """
        if format == "hudi":
            from migrate.inputs.hudi_text import hudi_text  # imported here; few moves need it

            return "\n".join(hudi_text(stream.next_offsets) for stream in self.streams)
        if format == "options":
            return "\n".join(option_lines(self.streams, self.checkpoint_location))
        language = {"python": PYTHON, "scala": SCALA}[format]
        connector = kafka_connector(spark_version)
        return query_code(language, self.streams, self.checkpoint_location, connector, file)
