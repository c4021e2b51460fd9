"""A copy of a query's checkpoint location that goes on from other positions, with its state.

The query goes on where its newest committed batch ended, which the batch's entry of the offset log
tells. Only the offsets of Kafka sources in that entry change: the batch's number, its watermark and
the version of its state stay, and all other files are copied as they are. Hadoop's checksum of the
entry is left out; Spark writes it for itself, and does not need it.

Source: MicroBatchExecution.populateStartOffsets, OffsetSeqLog, OneByOneCommitLog @ Spark 4.0.0 to
4.2.0; the layouts are those of ``migrate.spark.progress``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from decoder.storage import join
from migrate.errors import Refused
from migrate.positions import TopicPartition
from migrate.spark.offsets_json import starting_offsets
from migrate.spark.progress import (
    batch_begun,
    began_continuous,
    kafka_offsets_of,
    newest_committed_batch,
    numbers,
    offsets_path,
)
from migrate.storage.files import Files
from migrate.storage.new_directory import new_directory
from migrate.storage.new_file import named

_PIECE_BYTES = 8 * 1024 * 1024


def check_can_be_copied(directory: str, files: Files) -> int:
    """The number of the batch whose entry is to be rewritten.

    Raises:
        Refused: the query could not go on from a copy with other offsets.
        UnreadableInput: its logs are damaged, or of a version not known.
    """
    batch = newest_committed_batch(directory, files)
    if batch is None:
        raise Refused([f"{directory}: the query has not committed a batch yet; seed a new one"])
    if began_continuous(directory, files):
        raise Refused([f"{directory}: the query runs with the continuous trigger"])
    begun = batch_begun(directory, files, batch)
    if begun is not None:
        raise Refused(
            [
                f"{directory}: batch {begun} is begun and not committed, and would run again from "
                "where it began; start the query once more with availableNow, and let it end"
            ]
        )
    if not numbers(files, join(directory, "state")):
        raise Refused(
            [
                f"{directory}: the query keeps no state (or tracks its progress asynchronously); "
                "seed a new one with --checkpoint-dir alone"
            ]
        )
    return batch


def write_copy(
    directory: str,
    batch: int,
    changed: Mapping[TopicPartition, int | None],
    out: Path,
    files: Files,
) -> None:
    """Copy a checkpoint location whose newest committed batch ended elsewhere.

    Args:
        changed: the next offset of each partition that changes; None: the query reads it no more.

    Raises:
        Refused: the query has run meanwhile.
        UnreadableInput: the entry cannot be read.
        OSError: the copy cannot be written.
    """
    entry = offsets_path(directory, batch)
    rewritten = _rewritten(entry, files, changed)
    stale = join(directory, "offsets", f".{batch}.crc")
    with new_directory(out, str(out)) as stage:
        for path, name in _walk(directory, "", files):
            target = stage / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if path == stale:
                continue
            pieces = iter([rewritten]) if path == entry else _pieces(path, files)
            with named(target), target.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
        if numbers(files, join(directory, "offsets"))[-1] != batch:
            raise Refused([f"{directory}: the query has run meanwhile; stop it first"])


def _rewritten(entry: str, files: Files, changed: Mapping[TopicPartition, int | None]) -> bytes:
    lines = files.read(entry).decode().split("\n")
    named_lines = lines[0].strip() == "v2"
    for index, line in enumerate(lines[2:], start=2):
        name, colon, offsets = line.partition(":") if named_lines else ("", "", line)
        held = kafka_offsets_of(entry, offsets.strip())
        if not held:
            continue
        topics = {topic for topic, _ in held}
        new = {**held, **{place: at for place, at in changed.items() if place[0] in topics}}
        left = {place: at for place, at in new.items() if at is not None}
        if left != held:
            lines[index] = name + colon + starting_offsets(left)
    return "\n".join(lines).encode()


def _walk(directory: str, below: str, files: Files) -> Iterator[tuple[str, str]]:
    """Every file: its path, and its name from the directory on."""
    for entry in files.entries(directory) or ():
        path, name = join(directory, entry.name), below + entry.name
        if entry.is_directory:
            yield from _walk(path, f"{name}/", files)
        elif files.is_file(path):
            yield path, name


def _pieces(path: str, files: Files) -> Iterator[bytes]:
    done = 0
    while piece := files.read_range(path, done, _PIECE_BYTES):
        yield piece
        done += len(piece)
