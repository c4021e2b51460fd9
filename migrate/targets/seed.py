"""A seed (the checkpoint location of a Spark query that has not run yet).

``metadata`` contains ``{"id":"<uuid>"}``. For each Kafka source, ``sources/<n>/0`` contains a zero
byte, ``v1``, a newline, and the offsets as JSON. A micro-batch query, stateless or stateful, starts
its batch 0 exactly at these offsets and ignores ``startingOffsets``. A query with the continuous
trigger ignores the seed.

Spark reads each of these files separately. If a source's file is missing, the query starts anyway,
and that source starts at its ``startingOffsets`` (by default, at the log end offset). Spark must
therefore never see an incomplete seed. A local directory is written under a temporary name next to
its final name, and then renamed. In mounted directories and object stores, ``metadata`` is first
written with text that makes Spark fail. Then the source files are written. The final ``metadata``
is written last.

Source: org.apache.spark.sql.kafka010.{KafkaMicroBatchStream, KafkaSourceInitialOffsetWriter},
org.apache.spark.sql.execution.streaming.{StreamExecution, StreamMetadata} @ Spark 4.0.0.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import uuid
from collections.abc import Collection, Iterable

from decoder.storage import checkpoint_number, join
from migrate.inputs.offsets_json import NextOffsets, starting_offsets
from migrate.model.catalog import (
    LOCATION_IN_USE,
    LOCATION_INSIDE_CHECKPOINT,
    LOCATION_INSIDE_QUERY,
    LOCATION_INSIDE_TABLE,
    LOCATION_IS_CHECKPOINT,
    LOCATION_NOT_A_DIRECTORY,
    LOCATION_NOT_EMPTY,
    LOCATION_UNFINISHED,
    SEED_IN_USE,
)
from migrate.model.errors import Refused
from migrate.model.warning import warn
from migrate.model.warning_catalog import UNFINISHED_SEED
from migrate.storage.files import Files
from migrate.storage.new_file import new_directory, write_pieces
from migrate.storage.recognize_file import PARENT_LEVELS, is_of_flink, looks_like_location
from migrate.targets.location import LocalDirectory, Location
from migrate.targets.source_options import SourceStart

_METADATA = "metadata"
# This is not JSON, so StreamMetadata.read throws an exception, and the query does not start.
UNFINISHED = b"flink-offset-migrate had not finished writing this seed: remove the directory\n"

_LOGS = ("offsets", "commits")
# The directories that show that a directory is the output of a Spark file sink, a Delta table, or a
# Hudi table.
_LOGS_OF_OUTPUT = frozenset({"_spark_metadata", "_delta_log", ".hoodie"})
FILES_OF_A_QUERY = frozenset({_METADATA, "offsets", "commits", "sources"})


def check_free(location: Location) -> None:
    """Refuse a location unless it is missing or empty, and outside the folders of others.

    Raises:
        Refused: the directory is not empty, is a file or a link, or is inside a savepoint, a job's
            checkpoint directory, the checkpoint location of a query, or a table. A savepoint or a
            job's checkpoint directory has its own reason.
        OSError: the directory cannot be listed.
    """
    names = location.names()
    if names is None:
        raise Refused(LOCATION_NOT_A_DIRECTORY(directory=location.name))
    if not names:
        _check_outside_others(location)
        return
    if is_unfinished(location):
        raise Refused(LOCATION_UNFINISHED(directory=location.name))
    if names & FILES_OF_A_QUERY:
        raise Refused(LOCATION_IN_USE(directory=location.name))
    if is_of_flink(*location.to_read, names) or any(
        checkpoint_number(name) is not None for name in names
    ):
        raise Refused(LOCATION_IS_CHECKPOINT(directory=location.name))
    raise Refused(LOCATION_NOT_EMPTY(directory=location.name))


def _check_outside_others(location: Location) -> None:
    place, files = location.to_read
    path = place
    for _ in range(PARENT_LEVELS):
        path = posixpath.dirname(path)
        names: Collection[str] = ()
        is_query = False
        with contextlib.suppress(OSError):  # the user might lack permission to read this parent
            names = files.list_directory(path) or ()
            is_query = _is_of_query(path, files, names)
        if is_of_flink(path, files, names):
            raise Refused(LOCATION_INSIDE_CHECKPOINT(directory=location.name, path=path))
        if is_query:
            raise Refused(LOCATION_INSIDE_QUERY(directory=location.name, path=path))
        # Readers and cleanups ignore names that start with ``_``, such as ``_checkpoints``.
        is_hidden = "/_" in place.removeprefix(path)
        if not is_hidden and (logs := _LOGS_OF_OUTPUT.intersection(names)):
            raise Refused(LOCATION_INSIDE_TABLE(directory=location.name, path=path, log=min(logs)))


def describe_other_use(path: str, files: Files) -> str | None:
    """Return what a path is if it is a file, or if its directory belongs to a query or to Flink.

    Return None for a directory that may be the output of a query or a job, or that does not exist.

    Raises:
        OSError: the directory cannot be listed.
    """
    names = files.list_directory(path)
    if names is None:
        return "a file" if files.is_file(path) else None
    if _is_of_query(path, files, names):
        return "the checkpoint location of a Spark query"
    if is_of_flink(path, files, names):
        return "a Flink checkpoint or savepoint, or the checkpoint directory of a job"
    return None


def _is_of_query(path: str, files: Files, names: Collection[str]) -> bool:
    """Return whether a directory with these entries is a query's checkpoint location."""
    return looks_like_location(names) and files.is_file(join(path, _METADATA))


def write_seed(
    sources: Iterable[SourceStart], location: Location, query_id: str | None = None
) -> None:
    """Write the seed of a query with these Kafka sources; Spark never starts from a partial seed.

    Args:
        sources: the Kafka sources of the query.
        location: the new checkpoint location.
        query_id: the UUID of the query; by default, a new UUID. It must be unique, because a Delta
            table skips a batch if it already contains that batch from the same ID.

    Raises:
        Refused: as in ``check_free``.
        OSError: the location cannot be listed, or cannot be written to.
    """
    files = {f"sources/{source.number}/0": seed_of(source.next_offsets) for source in sources}
    metadata = _metadata(query_id or str(uuid.uuid4()))
    check_free(location)
    if isinstance(location, LocalDirectory) and not location.mounted:
        _stage_and_rename({_METADATA: metadata, **files}, location)
    else:
        _write_in_place(metadata, files, location)


def replace_query_id(location: Location, query_id: str) -> None:
    """Write a new query ID to a location from which no query has started.

    A cut-over recognizes its own location by the query ID. After this call, the cut-over that wrote
    the old ID no longer recognizes this location.

    Raises:
        OSError: the location cannot be written to.
    """
    location.remove(f".{_METADATA}.crc")  # Hadoop's checksum, if Spark wrote the file
    location.write(_METADATA, _metadata(query_id))


def _metadata(query_id: str) -> bytes:
    return json.dumps({"id": query_id}, separators=(",", ":")).encode()


def seed_of(next_offsets: NextOffsets) -> bytes:
    """Return the content of ``sources/<n>/0`` for a Kafka source that starts at these offsets."""
    return f"\0v1\n{starting_offsets(next_offsets)}".encode()


def is_seed_of(location: Location, next_offsets: NextOffsets) -> bool:
    """Return whether a location contains only the seed of one source at these offsets.

    If a query has started from the location, even without logging a batch, return False.
    """
    path, files = location.to_read
    return (
        location.names() == {_METADATA, "sources"}
        and location.names("sources") == {"0"}
        and location.names("sources/0") == {"0"}
        and files.read(join(path, "sources/0/0")) == seed_of(next_offsets)
    )


def is_unfinished(location: Location) -> bool:
    """Return whether a location contains a partly written or partly removed seed, and no query.

    In this case, ``metadata`` contains ``UNFINISHED`` or, if the disk was full, is empty.
    """
    if _METADATA not in (location.names() or ()) or not _holds_only_seed(location):
        return False
    path, files = location.to_read
    return files.read(join(path, _METADATA)) in (UNFINISHED, b"")


def remove_seed(location: Location) -> None:
    """Remove a complete or incomplete seed; the query's logs must not contain any batches.

    Raises:
        Refused: the location contains more than a seed.
        OSError: the seed cannot be removed.
    """
    if location.names() is None or not _holds_only_seed(location):
        raise Refused(SEED_IN_USE(directory=location.name))
    folders = [*_LOGS, *(f"sources/{source}" for source in location.names("sources") or ())]
    files = [f"{folder}/{name}" for folder in folders for name in location.names(folder) or ()]
    _remove_files(files, location)
    if isinstance(location, LocalDirectory):
        for directory in sorted(location.path.rglob("*"), reverse=True):
            directory.rmdir()
        location.path.rmdir()


def _holds_only_seed(location: Location) -> bool:
    """Return whether a location contains nothing but a seed and log folders without batches."""
    names = location.names() or set()
    logged = (name for log in _LOGS for name in location.names(log) or ())
    return names <= {_METADATA, "sources", *_LOGS} and not any(map(str.isdigit, logged))


def _write_in_place(metadata: bytes, files: dict[str, bytes], location: Location) -> None:
    try:
        location.write(_METADATA, UNFINISHED)
        for path, content in files.items():
            location.write(path, content)
        location.write(_METADATA, metadata)
    except BaseException as error:
        may_remain = not isinstance(error, Exception)
        try:
            _remove_files(files, location)
        except BaseException:
            may_remain = True
            raise error from None
        finally:
            if may_remain:  # a store's client may still complete an interrupted write
                warn(UNFINISHED_SEED(location=location.name))
        raise


def _remove_files(files: Iterable[str], location: Location) -> None:
    """Remove the files of a seed.

    ``metadata`` is first replaced with the text that makes Spark fail. (The final ``metadata``
    might exist even if writing it returned an error.) ``metadata`` is removed last.
    """
    location.write(_METADATA, UNFINISHED)
    for path in (*files, _METADATA):
        location.remove(path)


def _stage_and_rename(files: dict[str, bytes], location: LocalDirectory) -> None:
    try:
        with new_directory(location.path, location.name) as stage:
            for path, content in files.items():
                write_pieces(stage / path, [content])
    except OSError:
        check_free(location)  # raises Refused if another process has written to it
        raise
