"""The scan of an estate: its tables, and each job's line of the inventory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import timezone
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from migrate.errors import Refused
from migrate.fleet import View
from migrate.fleet.inventory import Marked, ScannedJob, TableFormat
from migrate.spark.estate import read_estate
from migrate.spark.lag import OBSTACLES, TOPIC_GONE, topics_to_ask, with_lag
from migrate.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from migrate.snapshot import ClusterSnapshot

# How many topics that are gone a line names.
_NAMED = 5


class Scan:
    """Checkpoints being read, once: the first question reads them, and what they hold is kept."""

    def __init__(self, rows: DataFrame, views: Sequence[View]) -> None:
        self._rows = rows
        self._views = views
        self._snapshot: ClusterSnapshot | None = None

    def topics(self) -> Set[str]:
        """The topics that a broker is to be asked about."""
        return topics_to_ask(self._table(View.POSITIONS))

    def compare_with(self, snapshot: ClusterSnapshot) -> None:
        """From here on positions have their lag."""
        self._snapshot = snapshot

    def write(self, directory: str, format: TableFormat) -> None:
        """Each view as a table in a directory of its own, ``DIRECTORY/positions`` and so on.

        CSV has a header, and lists with commas between.

        Raises:
            Refused: one of them is there already.
        """
        for view in self._views:
            table = self._table(view)
            if view is View.POSITIONS:
                table = self._with_lag(table)
            if format is TableFormat.CSV:
                table = table.withColumns(
                    {
                        field.name: F.array_join(field.name, ",")
                        for field in table.schema
                        if isinstance(field.dataType, ArrayType)
                    }
                )
                writer = table.write.options(header=True, escape='"', emptyValue="")
            else:
                writer = table.write
            path = f"{directory.rstrip('/')}/{view.value}"
            try:
                writer.format(format.value).save(path)
            except AnalysisException as error:
                if "PATH_ALREADY_EXISTS" not in str(error):
                    raise
                raise Refused([f"{path} is there already; name a new directory"]) from error

    def jobs(self) -> list[ScannedJob]:
        """The line of each job, sorted by pointer."""
        newest = self._rows.where("newest")
        table = newest.selectExpr(f"inline({View.CHECKPOINTS.value})")
        if self._snapshot is not None:
            positions = self._with_lag(newest.selectExpr(f"inline({View.POSITIONS.value})"))
            table = table.join(_by_checkpoint(positions), "pointer", "left")
        rows = table.collect()
        return sorted((_job(row) for row in rows), key=lambda job: job.pointer)

    def counts(self) -> tuple[int, int]:
        """How many checkpoints there are, and how many of them could not be read."""
        table = self._table(View.CHECKPOINTS)
        (row,) = table.select(F.count("*"), F.count("error_kind")).collect()
        return row[0], row[1]

    def _table(self, view: View) -> DataFrame:
        return self._rows.where("listed").selectExpr(f"inline({view.value})")

    def _with_lag(self, positions: DataFrame) -> DataFrame:
        if self._snapshot is None:
            return positions
        return with_lag(positions.sparkSession, positions, self._snapshot)


@contextmanager
def scan_estate(
    spark: SparkSession, marked: Sequence[Marked], *, tables: bool, broker: bool
) -> Iterator[Scan]:
    """Begin to read: the checkpoints alone, or for ``tables`` every view, for ``broker`` positions.

    Nothing is read before something is asked.
    """
    views = [View.CHECKPOINTS]
    if tables:
        views = list(View)
    elif broker:
        views.append(View.POSITIONS)
    rows = read_estate(spark, marked, views).persist()
    try:
        yield Scan(rows, views)
    finally:
        rows.unpersist()


def _by_checkpoint(positions: DataFrame) -> DataFrame:
    """What the broker says of each checkpoint: its lag, and how often which obstacle is there."""
    obstacle = F.col("obstacle")
    return positions.groupBy("pointer").agg(
        F.sum("lag").alias("lag"),
        F.sum(F.when(F.col("topic").isNotNull() & F.col("lag").isNull(), 1)).alias("lag_unknown"),
        F.collect_set(F.when(obstacle == TOPIC_GONE, F.col("topic"))).alias("topics_gone"),
        *(F.count(F.when(obstacle == code, 1)).alias(code) for code in OBSTACLES),
    )


def _job(row: Row) -> ScannedJob:
    told = row.asDict()
    at_broker = {code: told[code] for code in OBSTACLES if told.get(code)}
    return ScannedJob(
        pointer=row.pointer,
        job_directory=row.job_directory,
        job_id=row.job_id,
        checkpoint_id=row.checkpoint_id,
        checkpoint_kind=row.checkpoint_kind,
        stop=row.stop,
        written_at=row.written_at.astimezone(timezone.utc) if row.written_at is not None else None,
        sources=row.sources,
        topics=tuple(row.topics or ()),
        positions=row.positions,
        lag=told.get("lag"),
        lag_unknown=told.get("lag_unknown") or 0,
        obstacles=tuple(sorted({*(row.obstacles or ()), *at_broker})),
        why_not=(
            *([row.why_not] if row.why_not else ()),
            *_in_words(at_broker, sorted(told.get("topics_gone") or ())),
        ),
        to_check=tuple(row.to_check or ()),
        error_kind=row.error_kind,
        error=row.error,
    )


def _in_words(at_broker: Mapping[str, int], topics_gone: Sequence[str]) -> Iterator[str]:
    for code, number in at_broker.items():
        what = OBSTACLES[code]
        if code == TOPIC_GONE:
            more = f" and {len(topics_gone) - _NAMED} more" if len(topics_gone) > _NAMED else ""
            what += f": {', '.join(topics_gone[:_NAMED])}{more}"
        yield f"{counted(number, 'position')} {what}"
