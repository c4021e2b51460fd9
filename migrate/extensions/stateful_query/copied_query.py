"""A copy of a query's checkpoint location, with the same state and different positions.

The offset log has an entry for each batch. A query resumes from the offsets in the entry of the
newest committed batch. In the copy of this entry, only the offsets of Kafka sources change. The
batch's number, watermark, and state version do not change.

The copy also changes the metadata files of some operators: transformWithState and, in Spark 4.2 and
later, joins. A metadata file, ``state/<operator>/_metadata/v2/<batch>``, contains a line ``v2`` and
a line of JSON. The JSON contains the absolute paths of the state schemas. In the copy, these paths
point to the new location.

All other files are copied unchanged. The Hadoop checksum of a changed file is not copied, because
Spark does not need the checksum.

Source: MicroBatchExecution.populateStartOffsets, OffsetSeqLog, OneByOneCommitLog,
OperatorStateMetadataV2, TransformWithStateVariableUtils @ Spark 4.0.0 to 4.2.0.
``migrate.inputs.spark_log`` describes the layouts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from decoder.storage import join
from migrate.extensions.stateful_query.catalog import (
    OPERATOR_METADATA_DAMAGED,
    OPERATOR_METADATA_VERSION_UNKNOWN,
    QUERY_BATCH_NOT_COMMITTED,
    QUERY_IS_CONTINUOUS,
    QUERY_RAN_DURING_COPY,
    QUERY_STORES_NO_STATE,
    QUERY_WITHOUT_BATCH,
    SOURCE_OF_PARTITIONS_UNKNOWN,
    STATE_SCHEMA_ELSEWHERE,
    SYMBOLIC_LINK_IN_QUERY,
)
from migrate.inputs.offsets_json import NotOffsets, parse_json, starting_offsets
from migrate.inputs.spark_log import (
    newest_committed_batch,
    newest_uncommitted_batch,
    oldest_is_continuous,
)
from migrate.inputs.spark_log_entries import entry_numbers, entry_offsets, read_entry
from migrate.model.errors import InputError, Refused
from migrate.model.positions import TopicPartition
from migrate.storage.files import Files
from migrate.storage.new_file import new_directory, write_pieces

_OPERATOR_METADATA = re.compile(r"(state/\d+)/_metadata/v2/\d+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CHECKSUM = re.compile(r"(.*/)\.([^/]+)\.crc")


def check_can_be_copied(directory: str, files: Files) -> int:
    """Check that a query can be copied, and return the query's newest committed batch.

    Raises:
        Refused: the query has not committed a batch, has an uncommitted batch, uses the continuous
            trigger, or stores no state.
        InputError: the query's logs are damaged, or they have an unknown version.
    """
    batch = newest_committed_batch(directory, files)
    if batch is None:
        raise Refused(QUERY_WITHOUT_BATCH(query=directory))
    if oldest_is_continuous(directory, files):
        raise Refused(QUERY_IS_CONTINUOUS(query=directory))
    begun = newest_uncommitted_batch(directory, files, batch)
    if begun is not None:
        raise Refused(QUERY_BATCH_NOT_COMMITTED(query=directory, batch=begun))
    if not entry_numbers(files, join(directory, "state")):
        raise Refused(QUERY_STORES_NO_STATE(query=directory))
    return batch


def write_copy(
    directory: str,
    batch: int,
    changed: Mapping[TopicPartition, int | None],
    out: Path,
    files: Files,
) -> None:
    """Copy a checkpoint location, and change offsets in the offset log entry for a batch.

    ``batch`` is the newest committed batch. ``changed`` contains the next offset of each changed
    partition, or None for a partition that the query must no longer read.

    Raises:
        Refused: the query has started a batch after ``batch``; its location contains a symbolic
            link; or ``changed`` adds a partition to a topic, but it is unknown which of the topic's
            sources must read the partition.
        InputError: the entry, or the metadata of an operator, cannot be read.
        OSError: the copy cannot be written.
    """
    entry = f"offsets/{batch}"
    rewritten = _rewrite_entry(join(directory, entry), files, changed)
    with new_directory(out, str(out)) as stage:
        for path, name in _walk(directory, "", files):
            checksum_of = _CHECKSUM.sub(r"\1\2", name)
            pieces: Iterable[bytes]
            if name == entry:
                pieces = [rewritten]
            elif (metadata := _OPERATOR_METADATA.fullmatch(name)) is not None:
                pieces = [_relocate_schemas(out, metadata[1], path, files)]
            elif checksum_of == entry or _OPERATOR_METADATA.fullmatch(checksum_of):
                continue
            else:
                pieces = files.pieces(path)
            write_pieces(stage / name, pieces)
        if entry_numbers(files, join(directory, "offsets"))[-1] != batch:
            raise Refused(QUERY_RAN_DURING_COPY(query=directory))


def _rewrite_entry(path: str, files: Files, changed: Mapping[TopicPartition, int | None]) -> bytes:
    entry = read_entry(files, path)
    sources = entry_offsets(entry, path)
    added = _added_offsets(changed, list(sources.values()))
    offsets = dict(entry.offsets)
    for source, next_offsets in sources.items():
        topics = {topic for topic, _ in next_offsets}
        new = {
            **{partition: changed.get(partition, at) for partition, at in next_offsets.items()},
            **{partition: at for partition, at in added.items() if partition[0] in topics},
        }
        kept = {partition: at for partition, at in new.items() if at is not None}
        if kept != next_offsets:
            offsets[source] = starting_offsets(kept)
    return str(replace(entry, offsets=offsets)).encode()


def _added_offsets(
    changed: Mapping[TopicPartition, int | None], sources: Sequence[Mapping[TopicPartition, int]]
) -> dict[TopicPartition, int]:
    """Return the entries of ``changed`` for partitions that no source reads yet.

    All sources of a topic read its new partitions.

    Raises:
        Refused: several sources read a topic with a new partition, and these sources read different
            partitions of the topic.
    """
    known = {partition for next_offsets in sources for partition in next_offsets}
    added = {
        partition: at
        for partition, at in changed.items()
        if at is not None and partition not in known
    }
    refusals = []
    for topic in sorted({topic for topic, _ in added}):
        readers = [
            numbers
            for next_offsets in sources
            if (numbers := {number for name, number in next_offsets if name == topic})
        ]
        if any(numbers != readers[0] for numbers in readers):
            names = [f"{topic}-{number}" for name, number in sorted(added) if name == topic]
            refusals.append(
                SOURCE_OF_PARTITIONS_UNKNOWN(sources=len(readers), topic=topic, partitions=names)
            )
    if refusals:
        raise Refused(refusals)
    return added


def _relocate_schemas(out: Path, operator_directory: str, path: str, files: Files) -> bytes:
    """Return an operator's metadata, with the paths of the state schemas in the copy."""
    version, _, metadata = files.read(path).decode().partition("\n")
    if version != "v2":
        raise InputError(OPERATOR_METADATA_VERSION_UNKNOWN(path=path, version=version[:20]))
    schemas = f"/{operator_directory}/_stateSchema/"
    moved = {}
    try:
        for store in parse_json(metadata)["stateStoreInfo"]:
            for old in store["stateSchemaFilePaths"]:
                below, separator, name = old.rpartition(schemas)
                if not (below and separator):
                    raise InputError(STATE_SCHEMA_ELSEWHERE(path=path, schema=old))
                moved[old] = json.dumps(f"file:{out}{schemas}{name}", ensure_ascii=False)
    except (NotOffsets, KeyError, TypeError, AttributeError) as error:
        problem = str(error) if isinstance(error, NotOffsets) else f"no valid value of {error}"
        raise InputError(OPERATOR_METADATA_DAMAGED(path=path, problem=problem)) from error
    # Compare decoded strings, because Spark may escape characters differently than json.dumps.
    metadata = _STRING.sub(lambda match: moved.get(json.loads(match[0]), match[0]), metadata)
    return f"{version}\n{metadata}".encode()


def _walk(directory: str, below: str, files: Files) -> Iterator[tuple[str, str]]:
    """Yield the full path of each file, and the file's path relative to the top directory."""
    for entry in files.entries(directory) or ():
        path, name = join(directory, entry.name), below + entry.name
        if entry.is_directory:
            yield from _walk(path, f"{name}/", files)
        elif "://" not in path and Path(path).is_symlink():
            raise Refused(SYMBOLIC_LINK_IN_QUERY(path=path))
        else:
            yield path, name
