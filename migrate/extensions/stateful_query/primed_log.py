"""The logs of a checkpoint location in which Kafka sources replace the file sources.

At first, the location contains batch 0, for which Spark read rows from files. The log entries of
this batch are rewritten as if the batch had read from Kafka:

- ``offsets/0`` contains a line for each source. Each line gets the start positions of batch 1.
- ``sources/<source>/0`` becomes the seed of a Kafka source.
- ``commits/0`` gets the watermark for batch 1.

The watermark is also written to ``offsets/0``. When Spark determines the late records of batch 1,
it reads the watermark of the previous batch from this file. The state does not change.

For hopping windows, the location contains two batches, and the first batch has no rows. The entries
of both batches are rewritten.

Source: OffsetSeq, OffsetSeqLog, OffsetSeqMetadata, CommitLog, CommitMetadata, FileStreamSourceLog,
MicroBatchExecution.populateStartOffsets, IncrementalExecution (inputWatermarkForLateEvents of
prevOffsetSeqMetadata) @ Spark 4.0.0.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from decoder.storage import LocalFiles
from migrate.extensions.stateful_query.catalog import (
    FILE_SOURCE_LOG_UNKNOWN,
    LOG_METADATA_DAMAGED,
    POSITIONS_FOR_OTHER_SOURCES,
    PRIMING_BATCHES_DIFFER,
    PRIMING_BATCHES_MISSING,
)
from migrate.inputs.offsets_json import NextOffsets, NotOffsets, parse_json, starting_offsets
from migrate.inputs.spark_log_entries import (
    OffsetEntry,
    commit_path,
    offsets_path,
    read_commit,
    read_entry,
)
from migrate.model.errors import InputError, Refused
from migrate.targets.seed import seed_of

_BATCH = re.compile(r"[0-9]+")

# Spark takes these settings from the newest logged batch, and ignores their values in the session.
_LOGGED_SETTINGS = {
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.compression.codec",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion",
    "spark.sql.streaming.multipleWatermarkPolicy",
}


def source_directory(checkpoint: Path, source: str) -> str | None:
    """Return the name of the directory from which a source has read files.

    Return None if the source keeps no log of the files that it has read.

    Raises:
        InputError: the source's log is not the log of a file source.
    """
    log = checkpoint / "sources" / source / "0"
    if not log.is_file():
        return None
    version, _, rest = log.read_text(encoding="utf-8").partition("\n")
    try:
        paths = [json.loads(line)["path"] for line in rest.splitlines()]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(FILE_SOURCE_LOG_UNKNOWN(path=str(log), version=version[:20])) from error
    folders = {path.rpartition("/")[0].rpartition("/")[2] for path in paths}
    if version != "v1" or len(folders) != 1:
        raise InputError(FILE_SOURCE_LOG_UNKNOWN(path=str(log), version=version[:20]))
    return str(folders.pop())


def source_names(checkpoint: Path) -> list[str]:
    """Return the names by which the logs identify the query's sources.

    These are numbers, such as ``0``, or the names of streams that have a name (Spark 4.2).

    Raises:
        InputError: the logs have an unknown version.
    """
    return list(_offsets(checkpoint, 0).offsets)


def write_watermark(checkpoint: Path, batch: int, watermark_ms: int) -> None:
    """Write the watermark for the next batch to a batch's entries in both logs.

    Raises:
        InputError: the logs have an unknown version.
        OSError: the logs cannot be read or written.
    """
    entry = _offsets(checkpoint, batch)
    path = offsets_path(str(checkpoint), batch)
    changed = {**_parse_object(entry.metadata, path), "batchWatermarkMs": watermark_ms}
    entry = replace(entry, metadata=_compact_json(changed))
    _write(checkpoint / "offsets" / str(batch), str(entry))
    version, metadata = _commit(checkpoint, batch)
    path = commit_path(str(checkpoint), batch)
    changed = {**_parse_object(metadata, path), "nextBatchWatermarkMs": watermark_ms}
    _write(checkpoint / "commits" / str(batch), f"{version}\n{_compact_json(changed)}")


def last_batch(checkpoint: Path) -> int:
    """Return the number of the last committed batch; the location must contain one."""
    return max(int(f.name) for f in (checkpoint / "commits").iterdir() if _BATCH.fullmatch(f.name))


def watermark_of(checkpoint: Path, batch: int) -> int:
    """Return the watermark with which a batch ran, in epoch milliseconds; 0 if there is none.

    Raises:
        InputError: the logs have an unknown version.
    """
    return int(_offsets_metadata(checkpoint, batch)["batchWatermarkMs"])


def next_watermark(checkpoint: Path, batch: int) -> int:
    """Return the watermark that a batch has set for the next batch, in epoch milliseconds.

    Return 0 if the batch has not set a watermark.

    Raises:
        InputError: the logs have an unknown version.
    """
    metadata = _parse_object(_commit(checkpoint, batch)[1], commit_path(str(checkpoint), batch))
    return int(metadata.get("nextBatchWatermarkMs", 0))


def replace_with_kafka(
    checkpoint: Path,
    positions: Sequence[NextOffsets],
    watermark_ms: int | None,
    batches: int = 1,
) -> dict[str, str]:
    """Replace every source with a Kafka source in a checkpoint location that no query uses yet.

    Args:
        checkpoint: the location. All of its batches must be committed.
        positions: the offsets from which each source resumes, in the order of ``source_names``.
        watermark_ms: the watermark, in epoch milliseconds; None for a query without a watermark.
        batches: the number of batches in the location.

    Returns:
        The settings that Spark takes from the location. Later sessions cannot change them.

    Raises:
        Refused: the location does not have ``batches`` batches, or ``positions`` does not have an
            entry for each of the query's sources.
        InputError: the logs have an unknown version.
        OSError: the logs cannot be read or written.
    """
    _check_batches(checkpoint, batches)
    sources = source_names(checkpoint)
    if len(sources) != len(positions):
        raise Refused(POSITIONS_FOR_OTHER_SOURCES(sources=len(sources), positions=len(positions)))
    offsets = dict(zip(sources, map(starting_offsets, positions), strict=True))
    for batch in range(batches):
        entry = _offsets(checkpoint, batch)
        _commit(checkpoint, batch)  # checks the entry before any file changes
        _write(checkpoint / "offsets" / str(batch), str(replace(entry, offsets=offsets)))
        write_watermark(checkpoint, batch, watermark_ms or 0)
    for source, starts in zip(sources, positions, strict=True):
        folder = checkpoint / "sources" / source
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _write(folder / "0", seed_of(starts).decode())
    conf = _offsets_metadata(checkpoint, batches - 1).get("conf", {})
    return {name: conf[name] for name in sorted(_LOGGED_SETTINGS & conf.keys())}


def setting_of(checkpoint: Path, batch: int, name: str) -> str | None:
    """Return the value of a Spark setting in a batch's log entry; None if it is not logged.

    Raises:
        InputError: the logs have an unknown version.
    """
    setting = _offsets_metadata(checkpoint, batch).get("conf", {}).get(name)
    return None if setting is None else str(setting)


def commit_version(checkpoint: Path, batch: int) -> str:
    """Return the version of a batch's entry in the commit log.

    Raises:
        InputError: the commit log has an unknown version.
    """
    return _commit(checkpoint, batch)[0]


def copy_to_read(checkpoint: Path, batch: int, copy: Path, source_file: Path) -> None:
    """Copy a checkpoint location up to a batch, so that a helper query can read the state.

    Args:
        checkpoint: the location.
        batch: the last batch of the copy.
        copy: the new directory. It becomes the checkpoint location of the helper query, which has
            one source, a file source.
        source_file: a file in the directory of this source. The copy's log lists the file as
            already read, so the helper query does not read it.

    Raises:
        InputError: the logs have an unknown version.
        OSError: the location cannot be read, or the copy cannot be written.
    """
    _copy_folder_in_use(checkpoint / "state", copy / "state")
    for folder in ("offsets", "commits", "sources/0"):
        (copy / folder).mkdir(parents=True)
    for number in range(batch + 1):
        entry = replace(
            _offsets(checkpoint, number), offsets={"0": _compact_json({"logOffset": 0})}
        )
        _write(copy / "offsets" / str(number), str(entry))
        _write(copy / "commits" / str(number), "\n".join(_commit(checkpoint, number)))
    # Log the file's real modification time, because Spark removes files with old times from its
    # list of read files.
    modified_ms = source_file.stat().st_mtime_ns // 1_000_000
    read = _compact_json(
        {"path": source_file.absolute().as_uri(), "timestamp": modified_ms, "batchId": 0}
    )
    _write(copy / "sources" / "0" / "0", f"v1\n{read}")
    shutil.copyfile(checkpoint / "metadata", copy / "metadata")


def _copy_folder_in_use(folder: Path, copy: Path) -> None:
    """Copy a folder to which a running query may write.

    The query renames its temporary files and deletes old files, so a file may disappear while the
    folder is copied. The copy can be used even then. If the batch's state needs a missing file,
    Spark fails and does not return an incomplete state.
    """

    def copy_if_present(source: str, target: str) -> None:
        with suppress(FileNotFoundError):
            shutil.copy2(source, target)

    shutil.copytree(
        folder,
        copy,
        ignore=shutil.ignore_patterns(".*.tmp", ".*.tmp.crc"),
        copy_function=copy_if_present,
    )


def _check_batches(checkpoint: Path, batches: int) -> None:
    for log in ("offsets", "commits"):
        folder = checkpoint / log
        names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
        logged = [name for name in names if _BATCH.fullmatch(name)]
        required = list(range(batches))
        if not logged:
            raise Refused(PRIMING_BATCHES_MISSING(log=log, required=required))
        if logged != list(map(str, required)):
            present = sorted(map(int, logged))
            raise Refused(PRIMING_BATCHES_DIFFER(log=log, present=present, required=required))


def _offsets(checkpoint: Path, batch: int) -> OffsetEntry:
    return read_entry(LocalFiles(), offsets_path(str(checkpoint), batch))


def _offsets_metadata(checkpoint: Path, batch: int) -> dict[str, Any]:
    path = offsets_path(str(checkpoint), batch)
    return _parse_object(_offsets(checkpoint, batch).metadata, path)


def _commit(checkpoint: Path, batch: int) -> tuple[str, str]:
    """Return the version line and the JSON of a batch's entry in the commit log."""
    return read_commit(LocalFiles(), commit_path(str(checkpoint), batch))


def _parse_object(text: str, path: str) -> dict[str, Any]:
    """Parse the metadata in the log entry ``path``."""
    try:
        value = parse_json(text)
    except NotOffsets as error:
        raise InputError(LOG_METADATA_DAMAGED(path=path, problem=str(error))) from error
    if not isinstance(value, dict):
        problem = "not a JSON object"
        raise InputError(LOG_METADATA_DAMAGED(path=path, problem=problem))
    return value


def _compact_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _write(path: Path, content: str) -> None:
    """Write a file, and remove its Hadoop checksum file, which no longer matches the content."""
    path.write_bytes(content.encode())
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
