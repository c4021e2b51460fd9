"""A copy of a query's checkpoint location that goes on from other positions, with its state.

The query goes on where its newest committed batch ended, which the batch's entry of the offset log
tells. Only the offsets of Kafka sources in that entry change: the batch's number, its watermark and
the version of its state stay. All other files are copied as they are, but for the metadata of an
operator that names the schemas of its state (transformWithState; from Spark 4.2 on joins too): by
whole paths, in the old location, ``state/<operator>/_metadata/v2/<batch>``, ``v2`` and a line of
JSON. Hadoop's checksum of what changes is left out; Spark writes it for itself, and does not need
it.

Source: MicroBatchExecution.populateStartOffsets, OffsetSeqLog, OneByOneCommitLog,
OperatorStateMetadataV2, TransformWithStateVariableUtils @ Spark 4.0.0 to 4.2.0; the layouts are
those of ``migrate.spark.progress``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from decoder.storage import join
from migrate.errors import Refused
from migrate.positions import TopicPartition, UnreadableInput
from migrate.spark.offsets_json import NotOffsets, parse_json, starting_offsets
from migrate.spark.progress import (
    batch_begun,
    began_continuous,
    kafka_offsets_of,
    newest_committed_batch,
    numbers,
)
from migrate.storage.files import Files
from migrate.storage.new_directory import new_directory
from migrate.storage.new_file import write_pieces

_OPERATOR_METADATA = re.compile(r"(state/\d+)/_metadata/v2/\d+")
_CHECKSUM = re.compile(r"(.*/)\.([^/]+)\.crc")


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
        Refused: the query has run meanwhile, or a link stands in its location.
        UnreadableInput: the entry, or the metadata of an operator, cannot be read.
        OSError: the copy cannot be written.
    """
    entry = f"offsets/{batch}"
    with new_directory(out, str(out)) as stage:
        for path, name in _walk(directory, "", files):
            checksum_of = _CHECKSUM.sub(r"\1\2", name)
            pieces: Iterable[bytes]
            if name == entry:
                pieces = [_rewritten(path, files, changed)]
            elif (metadata := _OPERATOR_METADATA.fullmatch(name)) is not None:
                pieces = [_with_paths_of(out, metadata[1], path, files)]
            elif checksum_of == entry or _OPERATOR_METADATA.fullmatch(checksum_of):
                continue
            else:
                pieces = files.pieces(path)
            write_pieces(stage / name, pieces)
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


def _with_paths_of(out: Path, operator: str, path: str, files: Files) -> bytes:
    """An operator's metadata that names the schemas of its state in the new location."""
    text = files.read(path).decode()
    version, _, metadata = text.partition("\n")
    schemas = f"/{operator}/_stateSchema/"
    try:
        if version != "v2":
            raise NotOffsets(f"version {version[:20]!r} is not known here; known: v2")
        named = [
            one
            for store in parse_json(metadata)["stateStoreInfo"]
            for one in store["stateSchemaFilePaths"]
        ]
        for old in named:
            below, found, name = old.rpartition(schemas)
            if not (below and found):
                raise NotOffsets(f"a schema lies elsewhere, in {old!r}")
            metadata = metadata.replace(_quoted(old), _quoted(f"file:{out}{schemas}{name}"))
    except (NotOffsets, KeyError, TypeError, AttributeError) as error:
        raise UnreadableInput(f"{path}: {error}") from error
    return f"{version}\n{metadata}".encode()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _walk(directory: str, below: str, files: Files) -> Iterator[tuple[str, str]]:
    """Every file: its path, and its name from the directory on."""
    for entry in files.entries(directory) or ():
        path, name = join(directory, entry.name), below + entry.name
        if entry.is_directory:
            yield from _walk(path, f"{name}/", files)
        elif "://" not in path and Path(path).is_symlink():
            raise Refused([f"{path} is a symbolic link: put what it names in its place"])
        else:
            yield path, name
