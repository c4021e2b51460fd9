"""States in RocksDB or ForSt files: checkpoints and native savepoints.

The handle contains the database's files by name, and a stream that contains only the head (the
names and serializers of the states). Each state is a column family with the state's name; the keys
and values of the rows are in canonical format. The files may also contain rows of other subtasks'
key groups.

RocksDB itself reads a temporary copy of the files, through the ``rocksdict`` package. The OPTIONS
file contains the merge operator. Without the merge operator, RocksDB would silently omit the
elements of a LIST. The OPTIONS file also contains the paths of log directories on the TaskManager's
machine, which are removed from the copy.

Source: RocksDBSnapshotStrategyBase, RocksIncrementalSnapshotStrategy, RocksDBOperationUtils @ Flink
1.15.4, 1.20.3, 2.2.0 (frocksdb 6.20.3, 8.10.0; forstjni 0.1.8); rocksdict 0.3.29.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from struct import error as struct_error
from typing import Any

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.canonical import CanonicalReader, encode_key_group, prefix_bytes
from decoder.keyed_state.entries import (
    BATCH,
    BATCH_BYTES,
    Entry,
    KeyGroupLayout,
    Readers,
    fail_truncated,
    with_location,
)
from decoder.keyed_state.stream_head import Head
from decoder.keyed_state.streams import attributes_without
from decoder.metadata.keyed import IncrementalState
from decoder.metadata.model import EmptySegment, InlineState, StreamState
from decoder.state_files import StateFiles

# The names of RocksDB files. A file with any other name is refused.
_NAME = re.compile(r"\d{1,20}\.(sst|blob)|MANIFEST-\d{1,20}|OPTIONS-\d{1,20}|CURRENT|IDENTITY")
_LOG_DIRECTORY = re.compile(rb"(?m)^([ \t]*(?:wal_dir|db_log_dir)[ \t]*=).*$")
# The configuration file of rocksdict; ``raw_mode`` means that keys and values are bytes.
_CONFIG = "rocksdict-config.json"
_RAW = '{"raw_mode":true,"prefix_extractors":{}}'
_FRAME_ROWS = 4096
# The number of bytes to copy in one step.
_COPY_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class RocksSource:
    """The states in one subtask's files."""

    handle: IncrementalState
    head: Head
    files: StateFiles
    max_parallelism: int
    label: str

    @property
    def key_groups(self) -> range:
        return range(self.handle.first, self.handle.first + self.handle.key_groups)

    def blocked_reasons(self) -> dict[int, str]:
        return {}

    def key_group_ranges(self, max_bytes: int) -> list[tuple[range, int]]:
        """Return all key groups as one range, because reading any key group requires all files."""
        return [(self.key_groups, sum(stream.size for _, stream in self.handle.files))]

    def __getstate__(self) -> dict[str, Any]:
        return attributes_without(self, "_database")

    def batches(self, number: int, key_group: int) -> Iterator[list[Entry]]:
        info = self.head.states[number]
        reader = CanonicalReader(Readers(info, self.max_parallelism), number, self.max_parallelism)
        label = f"{self.label} key group {key_group}"
        batch: list[Entry] = []
        size = 0
        for key, value in self._rows(number, key_group):
            try:
                batch.append(reader.entry(key, key_group, 0, len(key), value, 0, len(value)))
            except (IndexError, struct_error):
                fail_truncated(label, info.name)
            except DecodeError as error:
                raise with_location(error, label, info.name) from error
            size += len(key) + len(value)
            if len(batch) == BATCH or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    @property
    def layout(self) -> KeyGroupLayout:
        return KeyGroupLayout.CANONICAL

    def frames(self, number: int, key_group: int) -> Iterator[bytes]:
        """Yield frames in canonical format, with up to ``_FRAME_ROWS`` rows each."""
        rows = self._rows(number, key_group)
        while frame := list(islice(rows, _FRAME_ROWS)):
            yield encode_key_group(number, frame)

    def _rows(self, number: int, key_group: int) -> Iterator[tuple[bytes, bytes]]:
        prefix = key_group.to_bytes(prefix_bytes(self.max_parallelism), "big")
        return self._database.rows(self.head.states[number].name, prefix)

    @cached_property
    def _database(self) -> _Database:
        return _Database(self.handle, self.files, self.label)


class _Database:
    """An open RocksDB on a copy of the files; the copy is deleted with this object."""

    def __init__(self, handle: IncrementalState, files: StateFiles, label: str) -> None:
        rocksdict = _import_rocksdict()
        self._label = label
        self._directory = tempfile.TemporaryDirectory(prefix="flink-keyed-state-")
        path = Path(self._directory.name)
        for name, stream in handle.files:
            if not _NAME.fullmatch(name):
                raise DecodeError(ErrorKind.CORRUPT, f"{name!r} is not a RocksDB file", file=label)
            _copy(stream, files, path / name, f"{label} {name}")
        (path / _CONFIG).write_text(_RAW)
        try:
            options, families = rocksdict.Options.load_latest(
                str(path), ignore_unknown_options=True
            )
            self._db = rocksdict.Rdict(
                str(path),
                options,
                column_families=families,
                access_type=rocksdict.AccessType.read_only(),
            )
        except Exception as error:  # rocksdict has no specific error class
            raise DecodeError(
                ErrorKind.CORRUPT, f"RocksDB cannot open the copied files: {error}", file=label
            ) from error
        self._families = set(families)

    def rows(self, name: str, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield a column family's rows with keys that start with ``prefix``, in key order."""
        if name not in self._families:
            raise DecodeError(
                ErrorKind.CORRUPT, f"RocksDB has no column family {name!r}", file=self._label
            )
        try:
            rows = self._db.get_column_family(name).iter()
            rows.seek(prefix)
            while rows.valid():
                key = rows.key()
                if not key.startswith(prefix):
                    return
                yield key, rows.value()
                rows.next()
            rows.status()
        except DecodeError:
            raise
        except Exception as error:
            raise DecodeError(
                ErrorKind.CORRUPT, f"RocksDB cannot read {name!r}: {error}", file=self._label
            ) from error

    def __del__(self) -> None:
        with suppress(Exception):
            self._db.close()
        with suppress(Exception):
            self._directory.cleanup()


def _import_rocksdict() -> Any:
    try:
        import rocksdict
    except ImportError as error:
        raise DecodeError(
            ErrorKind.UNSUPPORTED,
            "state in RocksDB's files requires the extra rocksdb: pip install rocksdict",
        ) from error
    return rocksdict


def _copy(stream: StreamState, files: StateFiles, path: Path, label: str) -> None:
    if path.name.startswith("OPTIONS"):
        path.write_bytes(_LOG_DIRECTORY.sub(rb"\1", files.read(stream, label)))
        return
    size = stream.size
    if size <= _COPY_BYTES or isinstance(stream, InlineState | EmptySegment):
        path.write_bytes(files.read(stream, label))
        return
    with path.open("wb") as file:
        for start in range(0, size, _COPY_BYTES):
            part = min(_COPY_BYTES, size - start)
            file.write(files.read_range(stream, start, part, label))
