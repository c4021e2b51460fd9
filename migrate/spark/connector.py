"""Spark's Kafka source: a jar of its own, of Spark's version, for ``--packages``.

Source: https://spark.apache.org/docs/4.0.0/structured-streaming-kafka-integration.html
("Deploying"). Spark 4 is built for Scala 2.13 alone, what is published of 3.5 for 2.12 first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from migrate.errors import UsageError

# Where no Spark is installed, and none is named: the one that the tests run.
_SUPPOSED = "4.0.0"
_VERSION = re.compile(r"(\d+)\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Connector:
    """One version of it.

    Attributes:
        coordinates: as ``org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0``.
        supposed: whether the version is neither named nor that of an installed Spark.
    """

    coordinates: str
    supposed: bool


def kafka_connector(named: str | None = None) -> Connector:
    """That of a version of Spark; None takes the PySpark that is installed here.

    Raises:
        UsageError: what is named is not a version.
    """
    if named is not None and not _VERSION.fullmatch(named):
        raise UsageError(f"--spark-version {named!r}: not a version of Spark, as {_SUPPOSED}")
    known = named or _installed()
    match = _VERSION.match(known or _SUPPOSED)
    assert match is not None
    scala = "2.13" if int(match[1]) >= 4 else "2.12"
    coordinates = f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{match[0]}"
    return Connector(coordinates, supposed=known is None)


def _installed() -> str | None:
    """PySpark's version, which need not be imported for it: that takes a second."""
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return None
    return found if _VERSION.match(found) else None
