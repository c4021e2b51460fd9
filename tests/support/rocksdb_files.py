"""Write RocksDB databases with RocksDB itself. As in Flink, a column family is a state."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from pathlib import Path

from rocksdict import Options, Rdict


def write_rocksdb(directory: Path, family: str, rows: Iterable[tuple[bytes, bytes]]) -> list[Path]:
    """Write a database with rows in one column family; return the files for a checkpoint."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    database = Rdict(str(directory), options)
    column_family = database.create_column_family(family, Options(raw_mode=True))
    for key, value in rows:
        column_family[key] = value
    column_family.flush()
    column_family.close()
    database.close()
    del column_family, database
    gc.collect()
    names = ("CURRENT", "MANIFEST", "OPTIONS")
    return [
        file for file in directory.iterdir() if file.name.startswith(names) or file.suffix == ".sst"
    ]
