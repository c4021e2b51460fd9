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
those of ``migrate.inputs.spark_log``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from decoder.storage import join
from migrate.inputs.offsets_json import NotOffsets, parse_json, starting_offsets
from migrate.inputs.spark_log import (
    batch_begun,
    began_continuous,
    kafka_offsets_of,
    newest_committed_batch,
    numbers,
)
from migrate.model.errors import InputError, Refused
from migrate.model.positions import TopicPartition
from migrate.storage.files import Files
from migrate.storage.new_file import new_directory, write_pieces

_OPERATOR_METADATA = re.compile(r"(state/\d+)/_metadata/v2/\d+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CHECKSUM = re.compile(r"(.*/)\.([^/]+)\.crc")


def check_can_be_copied(directory: str, files: Files) -> int:
    """The number of the batch whose entry is to be rewritten.

    Raises:
        Refused: the query could not go on from a copy with other offsets.
        InputError: its logs are damaged, or of a version not known.
    """
    batch = newest_committed_batch(directory, files)
    if batch is None:
        raise Refused(f"{directory}: the query has not committed a batch yet; seed a new one")
    if began_continuous(directory, files):
        raise Refused(f"{directory}: the query runs with the continuous trigger")
    begun = batch_begun(directory, files, batch)
    if begun is not None:
        raise Refused(
            f"{directory}: batch {begun} is begun and not committed, and would run again from "
            "where it began; start the query once more with availableNow, and let it end"
        )
    if not numbers(files, join(directory, "state")):
        raise Refused(
            f"{directory}: the query keeps no state (or tracks its progress asynchronously); "
            "seed a new one with --checkpoint-dir alone"
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
        Refused: the query has run meanwhile, a link stands in its location, or which of several
            sources is to read a partition is not known.
        InputError: the entry, or the metadata of an operator, cannot be read.
        OSError: the copy cannot be written.
    """
    entry = f"offsets/{batch}"
    rewritten = _rewritten(join(directory, entry), files, changed)
    with new_directory(out, str(out)) as stage:
        for path, name in _walk(directory, "", files):
            checksum_of = _CHECKSUM.sub(r"\1\2", name)
            pieces: Iterable[bytes]
            if name == entry:
                pieces = [rewritten]
            elif (metadata := _OPERATOR_METADATA.fullmatch(name)) is not None:
                pieces = [_with_paths_of(out, metadata[1], path, files)]
            elif checksum_of == entry or _OPERATOR_METADATA.fullmatch(checksum_of):
                continue
            else:
                pieces = files.pieces(path)
            write_pieces(stage / name, pieces)
        if numbers(files, join(directory, "offsets"))[-1] != batch:
            raise Refused(f"{directory}: the query has run meanwhile; stop it first")


def _rewritten(entry: str, files: Files, changed: Mapping[TopicPartition, int | None]) -> bytes:
    lines = files.read(entry).decode().split("\n")
    named_lines = lines[0].strip() == "v2"
    sources = {}
    for index, line in enumerate(lines[2:], start=2):
        name, colon, offsets = line.partition(":") if named_lines else ("", "", line)
        if held := kafka_offsets_of(entry, offsets.strip()):
            sources[index] = name + colon, held
    added = _added(changed, [held for _, held in sources.values()])
    for index, (name, held) in sources.items():
        topics = {topic for topic, _ in held}
        new = {
            **{place: changed.get(place, at) for place, at in held.items()},
            **{place: at for place, at in added.items() if place[0] in topics},
        }
        left = {place: at for place, at in new.items() if at is not None}
        if left != held:
            lines[index] = name + starting_offsets(left)
    return "\n".join(lines).encode()


def _added(
    changed: Mapping[TopicPartition, int | None], sources: Sequence[Mapping[TopicPartition, int]]
) -> dict[TopicPartition, int]:
    """What no source holds yet: all sources of its topic get it, if they read the same of it.

    Raises:
        Refused: they read other partitions.
    """
    known = {place for held in sources for place in held}
    added = {place: at for place, at in changed.items() if at is not None and place not in known}
    refusals = []
    for topic in sorted({topic for topic, _ in added}):
        of_it = [{number for name, number in held if name == topic} for held in sources]
        readers = [numbers for numbers in of_it if numbers]
        if any(numbers != readers[0] for numbers in readers):
            names = ", ".join(
                f"{topic}-{number}" for name, number in sorted(added) if name == topic
            )
            refusals.append(
                f"which of its {len(readers)} sources of topic {topic} is to read {names} is not "
                "known: they do not read the same partitions; name those that are read already "
                "with --partitions"
            )
    if refusals:
        raise Refused(refusals)
    return added


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
        moved = {}
        for old in named:
            below, found, name = old.rpartition(schemas)
            if not (below and found):
                raise NotOffsets(f"a schema lies elsewhere, in {old!r}")
            moved[old] = json.dumps(f"file:{out}{schemas}{name}", ensure_ascii=False)
    except (NotOffsets, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: {error}") from error
    # Each string by what it says: Spark may escape it otherwise than json.dumps.
    metadata = _STRING.sub(lambda found: moved.get(json.loads(found[0]), found[0]), metadata)
    return f"{version}\n{metadata}".encode()


def _walk(directory: str, below: str, files: Files) -> Iterator[tuple[str, str]]:
    """Every file: its path, and its name from the directory on."""
    for entry in files.entries(directory) or ():
        path, name = join(directory, entry.name), below + entry.name
        if entry.is_directory:
            yield from _walk(path, f"{name}/", files)
        elif "://" not in path and Path(path).is_symlink():
            raise Refused(f"{path} is a symbolic link: put what it names in its place")
        else:
            yield path, name
