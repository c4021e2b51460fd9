"""``spark.read.format("flink_state")``: keyed state as a data source of Spark 4.

    spark.dataSource.register(FlinkStateDataSource)
    spark.read.format("flink_state").option("operator", S).option("state", NAME).load(CHK)

The driver looks at the checkpoint's metadata and the heads of its state; the executors read ranges
of key groups. Columns that are not selected are read all the same: an entry is read as one.

Filters: with ``option("pushFilters", True)``, one on ``key`` or ``key_group`` leaves out the key
groups that cannot hold it. From 4.1 on Spark hands filters over, and where it is not told to
(spark.sql.python.filterPushdown.enabled), it refuses every reader that could take them.

Source: pyspark.sql.datasource @ Spark 4.0.0, 4.1.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from migrate.spark.running.state_frame import struct_type
from migrate.state.views import (
    BadStateOption,
    StateOptions,
    Table,
    open_table,
    parse_state_options,
    read_share,
)

if TYPE_CHECKING:
    import pyarrow as pa


class FlinkStateDataSource(DataSource):
    """Keyed state of the loaded checkpoint.

    Options (``migrate.state.views``): ``operator``, ``state``, ``view`` (``entries``, ``states``,
    ``timers``), ``pushFilters``, ``allowExternalFiles``.
    """

    @classmethod
    def name(cls) -> str:
        return "flink_state"

    def schema(self) -> StructType:
        return struct_type(self._table().columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        table = self._table()
        if schema != struct_type(table.columns):
            raise BadStateOption("the schema is the state's: choose of its columns by select")
        return _FilteringReader(table) if self._asked().push_filters else _Reader(table)

    def _table(self) -> Table:
        # Spark sends this object from the process that asks for the schema to the next ones.
        found: Table | None = vars(self).get("_opened")
        if found is None:
            found = self._opened = open_table(_path(self.options), self._asked())
        return found

    def _asked(self) -> StateOptions:
        paths = ("path", "paths")
        given = {name: value for name, value in self.options.items() if name.lower() not in paths}
        return parse_state_options(given)


class _Reader(DataSourceReader):
    def __init__(self, table: Table) -> None:
        self._table = table
        self._key_groups: frozenset[int] | None = None

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(share) for share in self._table.shares(self._key_groups)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_share(partition.value)


class _FilteringReader(_Reader):
    def pushFilters(self, filters: Sequence[Any]) -> Iterable[Any]:
        """Take the key groups that they leave; Spark itself filters what is read all the same."""
        for one in filters:
            values = _equal_to(one)
            groups = self._table.key_groups_of(*values) if values is not None else None
            if groups is not None:
                known = self._key_groups
                self._key_groups = groups if known is None else known & groups
        return filters


def _equal_to(filter: Any) -> tuple[str, tuple[Any, ...]] | None:
    """(column, values) where a filter says that the one is among the others. Spark before 4.1 has
    no classes of filters."""
    attribute: tuple[str, ...] = getattr(filter, "attribute", ())
    if len(attribute) != 1:
        return None
    match type(filter).__name__:
        case "EqualTo":
            return attribute[0], (filter.value,)
        case "In":
            return attribute[0], tuple(filter.value)
        case _:
            return None


def _path(options: Mapping[str, str]) -> str:
    given = {name.lower(): value for name, value in options.items()}
    if "path" not in given or "paths" in given:
        raise BadStateOption("one path: load(CHK)")
    return given["path"]
