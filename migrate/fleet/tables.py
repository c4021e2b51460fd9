"""Rows of a table as batches of Arrow, and as files: Parquet or CSV, as Spark writes them too."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Protocol

from decoder.storage import join
from migrate.fleet.inventory import EPOCH
from migrate.fleet.rows import Row
from migrate.fleet.views import Column, ColumnType
from migrate.model.errors import Refused, UsageError
from migrate.model.wording import install_command
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa

# As many rows as Spark itself puts into a batch (spark.sql.execution.arrow.maxRecordsPerBatch).
_ROWS_OF_A_BATCH = 10_000
_UPLOADS_AT_ONCE = 8
# What Spark leaves in a table that is whole.
_SUCCESS = "_SUCCESS"


class TableFormat(str, Enum):
    """What the tables of an estate are written as."""

    PARQUET = "parquet"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Output:
    """Where tables are to be written, ``DIRECTORY/positions`` and so on, and as what.

    CSV has a header, and lists with commas between.
    """

    directory: str
    format: TableFormat


@dataclass(frozen=True, slots=True)
class Stage:
    """Tables before they have their names: a folder of this machine, in which each has its own."""

    folder: Path
    tables: Sequence[str]
    target: str
    files: Files

    def publish(self) -> None:
        """Give the tables their names.

        Raises:
            Refused: one of them is there already; none has its name then.
        """
        for table in self.tables:
            name = join(self.target, table)
            if self.files.list_directory(name):
                raise already_there(name)
        for table in self.tables:
            if "://" in self.target:
                self._upload(table)
            else:
                (self.folder / table / _SUCCESS).touch()
                (self.folder / table).rename(Path(self.target) / table)

    def _upload(self, table: str) -> None:
        def upload(part: Path) -> None:
            self.files.write(join(self.target, table, part.name), part.read_bytes())

        with ThreadPoolExecutor(_UPLOADS_AT_ONCE) as pool:
            list(pool.map(upload, (self.folder / table).iterdir()))
        self.files.write(join(self.target, table, _SUCCESS), b"")


def already_there(table: str) -> Refused:
    """Why nothing is written as this table."""
    return Refused([f"{table} is there already; name a new directory"])


def check_output(output: Output) -> None:
    """Before any work is done: can tables be written there without Spark?

    Raises:
        UsageError: not to a URI of this kind; or the library for such files is not installed.
    """
    if Files().from_uri(output.directory) is None:
        raise UsageError(
            f"--output {output.directory}: nothing is written to a URI of this kind without Spark: "
            "name its --master"
        )
    if output.format is TableFormat.PARQUET and find_spec("pyarrow") is None:
        raise UsageError(
            "Parquet is written by pyarrow, which is not installed: "
            f"{install_command('parquet')}; or add --format csv"
        )


@contextmanager
def staged(output: Output, tables: Sequence[str]) -> Iterator[Stage]:
    """A stage for these tables; whatever is left on it goes with the block.

    Args:
        output: one that ``check_output`` has nothing against.
    """
    files = Files()
    target = files.from_uri(output.directory) or output.directory
    with tempfile.TemporaryDirectory() if "://" in target else _beside(Path(target)) as folder:
        for table in tables:
            (Path(folder) / table).mkdir()
        yield Stage(Path(folder), tables, target, files)


@contextmanager
def _beside(target: Path) -> Iterator[str]:
    """A folder in the one that the tables are to be in, so that they can be renamed."""
    made = not target.exists()
    folder = target / f".migrate-{token_hex(8)}.tmp"
    try:
        folder.mkdir(parents=True)
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if made:
            with suppress(OSError):  # it holds the tables
                target.rmdir()


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    import pyarrow as pa

    types = {
        ColumnType.STRING: pa.string(),
        ColumnType.INT: pa.int32(),
        ColumnType.LONG: pa.int64(),
        ColumnType.BOOLEAN: pa.bool_(),
        ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),  # the one unit that Spark takes
        ColumnType.STRINGS: pa.list_(pa.string()),
        ColumnType.INTS: pa.list_(pa.int32()),
    }
    return pa.schema([(column.name, types[column.type]) for column in columns])


def batches(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows of a table, some thousands at a time."""
    import pyarrow as pa

    schema = arrow_schema(columns)
    remaining = iter(rows)
    while some := list(islice(remaining, _ROWS_OF_A_BATCH)):
        arrays = [
            _array(field, values)
            for field, values in zip(schema, zip(*some, strict=True), strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(field: pa.Field, values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_timestamp(field.type):
        values = [value * 1000 if value is not None else None for value in values]
    try:
        return pa.array(values, field.type)
    except UnicodeEncodeError:
        # A name in a checkpoint, or of a file, may hold half of a surrogate pair.
        return pa.array([_encodable(value) for value in values], field.type)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_encodable(each) for each in value] if isinstance(value, tuple) else value


class TableFile(Protocol):
    """One file of a table, being written."""

    def add(self, rows: Iterable[Row]) -> None: ...

    def close(self) -> None: ...


def table_file(
    directory: Path, number: int, columns: Sequence[Column], format: TableFormat
) -> TableFile:
    """A new file of a table, by its number in a directory that is there; an older one goes."""
    path = directory / f"part-{number:05}.{format.value}"
    match format:
        case TableFormat.PARQUET:
            return _Parquet(path, columns)
        case TableFormat.CSV:
            return _Csv(path, columns)


class _Parquet:
    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        from pyarrow import parquet

        self._columns = columns
        self._rows: list[Row] = []
        self._writer = parquet.ParquetWriter(path, arrow_schema(columns))

    def add(self, rows: Iterable[Row]) -> None:
        self._rows += rows
        if len(self._rows) >= _ROWS_OF_A_BATCH:
            self._write()

    def _write(self) -> None:
        for batch in batches(self._columns, self._rows):
            self._writer.write_batch(batch)
        self._rows = []

    def close(self) -> None:
        self._write()
        self._writer.close()


class _Csv:
    """As Spark writes it: a header, nothing for null, times with their zone's offset."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self._types = [column.type for column in columns]
        self._file = path.open("w", encoding="utf-8", errors="backslashreplace", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(column.name for column in columns)

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._writer.writerow(map(_cell, self._types, row))

    def close(self) -> None:
        self._file.close()


def _cell(type: ColumnType, value: Any) -> Any:
    if value is None:
        return None
    match type:
        case ColumnType.BOOLEAN:
            return str(value).lower()
        case ColumnType.TIMESTAMP:
            return _time(value)
        case ColumnType.STRINGS | ColumnType.INTS:
            return ",".join(map(str, value))
        case _:
            return value


def _time(milliseconds: int) -> str:
    at = EPOCH + timedelta(milliseconds=milliseconds)
    with suppress(OverflowError):  # the last hours of the year 9999
        at = at.astimezone()
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
