"""A seed: the checkpoint location of a Spark query that has not run yet.

``metadata`` holds ``{"id":"<uuid>"}``; ``sources/0/0`` a zero byte, ``v1``, a newline and the
offsets as JSON. A micro-batch query, stateless or stateful, starts its batch 0 exactly there,
whatever its ``startingOffsets`` says. The continuous trigger ignores it.

Source: org.apache.spark.sql.kafka010.{KafkaMicroBatchStream, KafkaSourceInitialOffsetWriter},
org.apache.spark.sql.execution.streaming.StreamMetadata @ Spark 4.0.0.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path

from migrate.targets.spark_options import starting_offsets


class TargetInUse(Exception):
    """The directory holds something already: another query's progress, or files of any kind."""


def check_free(directory: Path) -> None:
    """Refuse a directory that is not new or empty.

    Raises:
        TargetInUse: it holds anything at all.
    """
    if directory.is_symlink():
        raise TargetInUse(f"{directory} is a symbolic link; name the directory itself")
    if directory.exists() and not directory.is_dir():
        raise TargetInUse(f"{directory} is not a directory")
    names = {entry.name for entry in directory.iterdir()} if directory.exists() else set()
    if not names:
        return
    if names & {"metadata", "offsets", "commits", "sources"}:
        raise TargetInUse(
            f"{directory} is the checkpoint location of a query already; name a new directory"
        )
    raise TargetInUse(f"{directory} is not empty; name a new directory")


def write_seed(next_offsets: Mapping[tuple[str, int], int], directory: Path) -> None:
    """Write the seed beside ``directory`` and rename it into place, whole or not at all.

    The query id is a fresh one: a sink that remembers batches of an older query skips them.

    Raises:
        TargetInUse: the directory is not new or empty.
        OSError: it cannot be written.
    """
    directory = directory.absolute()  # "." is staged beside, not inside itself
    check_free(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        _write(stage / "metadata", json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":")))
        (stage / "sources" / "0").mkdir(parents=True)
        _write(stage / "sources" / "0" / "0", "\0v1\n" + starting_offsets(next_offsets))
        for made in (stage / "sources" / "0", stage / "sources", stage):
            _sync_directory(made)
        _open_to_others(stage)
        try:
            stage.rename(directory)  # replaces an empty directory, nothing else
        except OSError:
            check_free(directory)
            raise
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    _sync_directory(directory.parent)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _open_to_others(stage: Path) -> None:
    """mkdtemp makes a private directory; the query may run as another user, under the umask."""
    umask = os.umask(0)
    os.umask(umask)
    stage.chmod(0o777 & ~umask)
