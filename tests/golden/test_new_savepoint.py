"""Rewrite every golden checkpoint with its own positions.

The bytes are identical or differ only in file names. In `tests/integration/test_new_positions.py`,
Flink reads checkpoints with changed positions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from decoder import DecodeError, ErrorKind, read_checkpoint
from decoder.cursor import RecordingCursor
from decoder.metadata.model import FileState, RelativeFileState, SegmentState
from decoder.metadata.parse import read_all
from migrate.extensions.savepoints.write import write_savepoint
from migrate.model.errors import Refused
from tests.support.golden import ENTRIES, GOLDEN

# Scenarios in which checkpoints share files, or in which files are merged. The savepoint contains
# copies of these files and refers to them by relative paths.
_NAMED_ANEW = {"file-merging", "file-merging-across", "rocksdb-incremental"}
# Scenarios of the changelog backend. Their changelog files are outside the checkpoint directory.
_OUTSIDE = {"changelog", "changelog-materialized"}


def _files(directory: Path) -> dict[str, bytes]:
    """Return the content of each file that the savepoint's handles refer to, by path."""
    cursor = RecordingCursor((directory / "_metadata").read_bytes(), "_metadata")
    read_all(cursor)
    streams = [span.value for span in cursor.spans]
    assert not any(isinstance(stream, FileState | SegmentState) for stream in streams)
    return {
        stream.path: (directory / stream.path).read_bytes()
        for stream in streams
        if isinstance(stream, RelativeFileState)
    }


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry["name"] for entry in ENTRIES])
def test_rewritten_savepoint_with_same_positions_changes_only_file_names(
    entry: dict[str, Any], tmp_path: Path
) -> None:
    old = read_checkpoint(GOLDEN / entry["path"])
    scenario = entry["name"].partition("/")[2]
    new = tmp_path / "new"
    if entry["expected"]["metadata_version"] == 2:
        with pytest.raises(Refused, match="metadata version 2"):
            write_savepoint(old, {}, new)
    elif scenario in _OUTSIDE:
        with pytest.raises(DecodeError) as error:
            write_savepoint(old, {}, new)
        assert error.value.kind is ErrorKind.EXTERNAL
    else:
        write_savepoint(old, {}, new)
        metadata = (Path(old.pointer) / "_metadata").read_bytes()
        same = (new / "_metadata").read_bytes() == metadata
        assert same == (scenario not in _NAMED_ANEW)
        assert read_checkpoint(new).sources == old.sources
        # Every file belongs to a handle, and no file is missing.
        assert {file.name for file in new.iterdir()} == {"_metadata", *_files(new)}
        return
    assert not new.exists()
    assert not list(tmp_path.iterdir())


def test_each_state_handle_becomes_file_with_its_bytes(tmp_path: Path) -> None:
    """A segment handle becomes a file that contains only that segment.

    A file handle becomes a copy of the file.
    """
    for name in ("1.20/file-merging", "2.2/rocksdb-incremental", "1.20/retained-files"):
        (path,) = (GOLDEN / entry["path"] for entry in ENTRIES if entry["name"] == name)
        old, new = read_checkpoint(path), tmp_path / name
        write_savepoint(old, {}, new)
        cursor = RecordingCursor((path / "_metadata").read_bytes(), "_metadata")
        read_all(cursor)
        before = set()
        for span in cursor.spans:
            match span.value:
                case FileState(uri=uri):
                    before.add(next(path.parent.rglob(Path(uri).name)).read_bytes())
                case RelativeFileState(path=file):
                    before.add((path / file).read_bytes())
                case SegmentState(uri=uri, start=start, size=size):
                    data = next(path.parent.rglob(Path(uri).name)).read_bytes()
                    before.add(data[start : start + size])
        assert before
        assert set(_files(new).values()) == before
