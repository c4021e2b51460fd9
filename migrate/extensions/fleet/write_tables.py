"""Write the tables of a scan as Arrow batches, or as Parquet or CSV files in the Spark layout."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from decoder.storage import join
from migrate.extensions.fleet.inventory import EPOCH
from migrate.extensions.fleet.rows import Row
from migrate.extensions.fleet.view_columns import TIMESTAMP, ViewColumn
from migrate.model.column_types import (
    BOOLEAN,
    ArrayOf,
    Column,
    ColumnType,
    arrow_array,
    arrow_schema,
)
from migrate.model.errors import UsageError
from migrate.model.option_names import option
from migrate.model.wording import install_command
from migrate.storage.files import Files
from migrate.storage.new_file import already_there

if TYPE_CHECKING:
    import pyarrow as pa

# The default of the Spark option spark.sql.execution.arrow.maxRecordsPerBatch.
_BATCH_ROWS = 10_000
_UPLOAD_THREADS = 8
# The empty file with which Spark marks a complete table.
_SUCCESS = "_SUCCESS"


class TableFormat(str, Enum):
    """The file format of a scan's tables."""

    PARQUET = "parquet"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Output:
    """The directory and the file format of the tables.

    Each table is a subdirectory, such as ``DIRECTORY/positions``. CSV files have a header, and the
    items of a list are separated by commas.
    """

    directory: str
    format: TableFormat


def check_output(output: Output) -> None:
    """Check, before any work is done, that the tables can be written without Spark.

    Raises:
        UsageError: Spark is required for this kind of URI, or the format is Parquet but pyarrow is
            not installed.
    """
    if Files().from_uri(output.directory) is None:
        raise UsageError(
            f"{option('output', output.directory)}: only Spark can write to a URI of this kind; "
            f"add {option('master', 'URL')}"
        )
    if output.format is TableFormat.PARQUET and find_spec("pyarrow") is None:
        raise UsageError(
            f"Parquet output requires pyarrow: {install_command('parquet')}; without pyarrow, add "
            f"{option('format', TableFormat.CSV)}"
        )


@contextmanager
def staged_tables(output: Output, tables: Sequence[str]) -> Iterator[Path]:
    """Yield a local folder with a subfolder for each table; publish the tables afterward.

    After the ``with`` block, the subfolders are uploaded or renamed. If the block raises an error,
    no table is published. Call ``check_output`` first.

    Raises:
        Refused: a table's directory already contains files; no table is published.
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
                raise already_there(name, "directory")
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
    """Yield a temporary folder in the target directory, so that a rename can publish a table."""
    created = not target.exists()
    folder = target / f".migrate-{token_hex(8)}.tmp"
    try:
        folder.mkdir(parents=True)
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if created:
            with suppress(OSError):  # fails if the directory contains the tables
                target.rmdir()


def batches(columns: Sequence[ViewColumn], rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in batches of at most ``_BATCH_ROWS`` rows."""
    import pyarrow as pa

    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH_ROWS)):
        arrays = list(map(_array, columns, zip(*batch, strict=True)))
        yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))


def _array(column: Column, values: Sequence[Any]) -> pa.Array:
    try:
        return arrow_array(column, values)
    except UnicodeEncodeError:
        # A name in a checkpoint, or a file name, may contain a lone surrogate.
        return arrow_array(column, [_encodable(value) for value in values])


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_encodable(item) for item in value] if isinstance(value, tuple) else value


@contextmanager
def table_file(
    directory: Path, number: int, columns: Sequence[ViewColumn], format: TableFormat
) -> Iterator[Callable[[Iterable[Row]], None]]:
    """Create or replace a table's file with this ``number``; yield a function that adds rows."""
    path = directory / f"part-{number:05}.{format.value}"
    match format:
        case TableFormat.PARQUET:
            from pyarrow import parquet

            pending: list[Row] = []
            with parquet.ParquetWriter(path, arrow_schema(columns)) as writer:

                def write() -> None:
                    for batch in batches(columns, pending):
                        writer.write_batch(batch)
                    pending.clear()

                def add(rows: Iterable[Row]) -> None:
                    pending.extend(rows)
                    if len(pending) >= _BATCH_ROWS:
                        write()

                yield add
                write()
        case TableFormat.CSV:  # the same as on Spark: a header, and empty cells for null
            types = [column.type for column in columns]
            with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                csv_writer = csv.writer(file, lineterminator="\n")
                csv_writer.writerow(column.name for column in columns)
                yield lambda rows: csv_writer.writerows(map(_cell, types, row) for row in rows)


def _cell(type_: ColumnType, value: Any) -> Any:
    if value is None:
        return None
    if type_ == BOOLEAN:
        return str(value).lower()
    if type_ == TIMESTAMP:
        return _format_time(value)
    return ",".join(map(str, value)) if isinstance(type_, ArrayOf) else value


def _format_time(milliseconds: int) -> str:
    """Return a time in the local time zone, with the UTC offset."""
    time = EPOCH + timedelta(milliseconds=milliseconds)
    with suppress(OverflowError):  # in the last hours of the year 9999, keep UTC
        time = time.astimezone()
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
