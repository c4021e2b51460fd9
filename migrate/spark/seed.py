"""A seed: the checkpoint location of a Spark query that has not run yet.

``metadata`` holds ``{"id":"<uuid>"}``; ``sources/<n>/0``, for each Kafka source, a zero byte,
``v1``, a newline and the offsets as JSON. A micro-batch query, stateless or stateful, starts its
batch 0 exactly there, whatever its ``startingOffsets`` says. The continuous trigger ignores it.

Spark takes each of these files by itself: where only ``metadata`` is there, or one source's file of
two, the query starts all the same, what is missing by its ``startingOffsets``, by default at the
log end. So a seed must never be seen in part. A local directory is staged beside its place and
renamed. Elsewhere ``metadata`` is written first as something that Spark fails on, then the sources,
then ``metadata`` again.

Source: org.apache.spark.sql.kafka010.{KafkaMicroBatchStream, KafkaSourceInitialOffsetWriter},
org.apache.spark.sql.execution.streaming.{StreamExecution, StreamMetadata} @ Spark 4.0.0.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from migrate.errors import Refused
from migrate.spark.locations import LocalDirectory, Location
from migrate.spark.offsets_json import starting_offsets
from migrate.spark.source_options import SparkSource
from migrate.storage.new_file import sync_folder

_METADATA = "metadata"
# No JSON: StreamMetadata.read throws, and the query does not start.
UNFINISHED = b"flink-offset-migrate had not finished writing this seed: remove the directory\n"

_OF_A_QUERY = frozenset({_METADATA, "offsets", "commits", "sources"})


class TargetInUse(Refused):
    """The directory holds something already: another query's progress, or files of any kind."""

    def __init__(self, problem: str) -> None:
        super().__init__([problem])


def check_free(location: Location) -> None:
    """Refuse a directory that is not new or empty.

    Raises:
        TargetInUse: it holds anything at all.
        OSError: it cannot be looked at.
    """
    names = location.names()
    if names is None:
        raise TargetInUse(f"{location.name} is a file or a symbolic link; name a directory itself")
    if not names:
        return
    if names & _OF_A_QUERY:
        raise TargetInUse(
            f"{location.name} is the checkpoint location of a query already; name a new directory"
        )
    raise TargetInUse(f"{location.name} is not empty; name a new directory")


def write_checkpoint(sources: Iterable[SparkSource], location: Location) -> None:
    """Write the seed of a query with these Kafka sources, so that Spark sees it whole or fails.

    The query id is a fresh one: a Delta table skips the batches that it has of an id.

    Raises:
        TargetInUse: the directory is not new or empty.
        OSError: it cannot be written.
    """
    files = {
        f"sources/{source.number}/0": f"\0v1\n{starting_offsets(source.next_offsets)}".encode()
        for source in sources
    }
    metadata = json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":")).encode()
    check_free(location)
    if isinstance(location, LocalDirectory) and not location.mounted:
        _stage_and_rename({_METADATA: metadata, **files}, location)
    else:
        _write_in_place(metadata, files, location)


def _write_in_place(metadata: bytes, files: dict[str, bytes], location: Location) -> None:
    location.write(_METADATA, UNFINISHED)
    try:
        for path, content in files.items():
            location.write(path, content)
        location.write(_METADATA, metadata)
    except BaseException:
        with contextlib.suppress(Exception):
            _take_back(files, location)
        raise


def _take_back(files: Iterable[str], location: Location) -> None:
    """Remove what was written, as far as that goes: what Spark fails on goes last, and is there
    before anything is missing, also where the last write has arrived although it failed."""
    location.write(_METADATA, UNFINISHED)
    for path in (*files, _METADATA):
        location.remove(path)


def _stage_and_rename(files: dict[str, bytes], location: LocalDirectory) -> None:
    directory = location.path
    with _of(location):
        directory.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        staged = LocalDirectory(str(stage), stage)
        for path, content in files.items():
            with _of(location):
                staged.write(path, content)
        for made in (*(path for path in stage.rglob("*") if path.is_dir()), stage):
            sync_folder(made)
        _open_to_others(stage)
        try:
            stage.rename(directory)  # replaces an empty directory, nothing else
        except OSError:
            check_free(location)
            raise
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    sync_folder(directory.parent)


@contextlib.contextmanager
def _of(location: LocalDirectory) -> Iterator[None]:
    """What fails in the stage fails of the directory: nobody knows the stage's name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, location.name) from error


def _open_to_others(stage: Path) -> None:
    """mkdtemp makes a private directory; the query may run as another user, under the umask."""
    umask = os.umask(0)
    os.umask(umask)
    stage.chmod(0o777 & ~umask)
