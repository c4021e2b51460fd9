"""Write the tables of a scan: Arrow batches, and Parquet or CSV files like Spark's own."""

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
from migrate.fleet.view_columns import ValueType, ViewColumn
from migrate.model.errors import Refused, UsageError
from migrate.model.wording import install_command
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa

# The default of Spark's option spark.sql.execution.arrow.maxRecordsPerBatch.
_BATCH_ROWS = 10_000
_UPLOAD_THREADS = 8
# The file that marks a complete table, as Spark writes it.
_SUCCESS = "_SUCCESS"


class TableFormat(str, Enum):
    """The file format of the tables of a scan."""

    PARQUET = "parquet"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Output:
    """The directory and the file format of the tables.

    Each table is a subdirectory, such as ``DIRECTORY/positions``. CSV files have a header, and
    commas between the items of a list.
    """

    directory: str
    format: TableFormat


def table_exists(table: str) -> Refused:
    """Return the refusal to write a table that exists already."""
    return Refused([f"{table} is there already; name a new directory"])


def check_output(output: Output) -> None:
    """Check, before any work is done, that the tables can be written without Spark.

    Raises:
        UsageError: only Spark can write to a URI of this kind, or pyarrow is not installed.
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
def staged_tables(output: Output, tables: Sequence[str]) -> Iterator[Path]:
    """Yield a local folder with one folder for each table; publish the tables at the end.

    At the end the folders are uploaded, or renamed to the names of the tables. If the block raises
    an error, nothing of the tables is left. ``check_output`` must have accepted the output.

    Raises:
        Refused: one of the tables exists already; no table is published then.
    """
    files = Files()
    target = files.from_uri(output.directory) or output.directory
    remote = "://" in target
    with tempfile.TemporaryDirectory() if remote else _folder_in(Path(target)) as folder:
        stage = Path(folder)
        for table in tables:
            (stage / table).mkdir()
        yield stage
        for table in tables:
            name = join(target, table)
            if files.list_directory(name):
                raise table_exists(name)
        for table in tables:
            if remote:
                _upload(files, stage / table, join(target, table))
            else:
                (stage / table / _SUCCESS).touch()
                (stage / table).rename(Path(target) / table)


def _upload(files: Files, folder: Path, table: str) -> None:
    def upload(part: Path) -> None:
        files.write(join(table, part.name), part.read_bytes())

    with ThreadPoolExecutor(_UPLOAD_THREADS) as pool:
        list(pool.map(upload, folder.iterdir()))
    files.write(join(table, _SUCCESS), b"")


@contextmanager
def _folder_in(target: Path) -> Iterator[str]:
    """Yield a folder in the target directory, so that tables can be moved by a rename."""
    created = not target.exists()
    folder = target / f".migrate-{token_hex(8)}.tmp"
    try:
        folder.mkdir(parents=True)
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if created:
            with suppress(OSError):  # fails if the directory holds the tables
                target.rmdir()


def arrow_schema(columns: Sequence[ViewColumn]) -> pa.Schema:
    """Return the Arrow schema of a table."""
    import pyarrow as pa

    types = {
        ValueType.STRING: pa.string(),
        ValueType.INT: pa.int32(),
        ValueType.LONG: pa.int64(),
        ValueType.BOOLEAN: pa.bool_(),
        ValueType.TIMESTAMP: pa.timestamp("us", tz="UTC"),  # the only unit that Spark accepts
        ValueType.STRINGS: pa.list_(pa.string()),
        ValueType.INTS: pa.list_(pa.int32()),
    }
    return pa.schema([(column.name, types[column.type]) for column in columns])


def batches(columns: Sequence[ViewColumn], rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in batches of at most ``_BATCH_ROWS`` rows."""
    import pyarrow as pa

    schema = arrow_schema(columns)
    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH_ROWS)):
        arrays = [
            _array(field, values)
            for field, values in zip(schema, zip(*batch, strict=True), strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(field: pa.Field, values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_timestamp(field.type):
        values = [value * 1000 if value is not None else None for value in values]
    try:
        return pa.array(values, field.type)
    except UnicodeEncodeError:
        # A name in a checkpoint, or a file name, may hold half of a surrogate pair.
        return pa.array([_encodable(value) for value in values], field.type)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_encodable(item) for item in value] if isinstance(value, tuple) else value


class TableFile(Protocol):
    """A file of a table that is being written."""

    def add(self, rows: Iterable[Row]) -> None: ...

    def close(self) -> None: ...


def table_file(
    directory: Path, number: int, columns: Sequence[ViewColumn], format: TableFormat
) -> TableFile:
    """Create or replace the table file with this number in an existing directory."""
    path = directory / f"part-{number:05}.{format.value}"
    match format:
        case TableFormat.PARQUET:
            return _Parquet(path, columns)
        case TableFormat.CSV:
            return _Csv(path, columns)


class _Parquet:
    def __init__(self, path: Path, columns: Sequence[ViewColumn]) -> None:
        from pyarrow import parquet

        self._columns = columns
        self._rows: list[Row] = []
        self._writer = parquet.ParquetWriter(path, arrow_schema(columns))

    def add(self, rows: Iterable[Row]) -> None:
        self._rows += rows
        if len(self._rows) >= _BATCH_ROWS:
            self._write()

    def _write(self) -> None:
        for batch in batches(self._columns, self._rows):
            self._writer.write_batch(batch)
        self._rows = []

    def close(self) -> None:
        self._write()
        self._writer.close()


class _Csv:
    """A CSV file like Spark's: a header, empty cells for null, times with a zone offset."""

    def __init__(self, path: Path, columns: Sequence[ViewColumn]) -> None:
        self._types = [column.type for column in columns]
        self._file = path.open("w", encoding="utf-8", errors="backslashreplace", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(column.name for column in columns)

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._writer.writerow(map(_cell, self._types, row))

    def close(self) -> None:
        self._file.close()


def _cell(type: ValueType, value: Any) -> Any:
    if value is None:
        return None
    match type:
        case ValueType.BOOLEAN:
            return str(value).lower()
        case ValueType.TIMESTAMP:
            return _format_time(value)
        case ValueType.STRINGS | ValueType.INTS:
            return ",".join(map(str, value))
        case _:
            return value


def _format_time(milliseconds: int) -> str:
    time = EPOCH + timedelta(milliseconds=milliseconds)
    with suppress(OverflowError):  # the last hours of the year 9999
        time = time.astimezone()
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
