"""A directory that was not there before: whole and on the disk, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from migrate.storage.new_file import sync_folder


@contextmanager
def new_directory(directory: Path, name: str) -> Iterator[Path]:
    """Fill the directory that this gives; at the end it gets its own name.

    It is staged beside its place. If the process ends meanwhile, nothing is there under that name.

    Args:
        directory: not there yet, or empty: a rename replaces nothing else.
        name: how its user named it. What fails in the stage fails of this one: nobody knows the
            stage's name.

    Raises:
        OSError: it cannot be written, or something has come there meanwhile.
    """
    with _of(name):
        directory.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        with _of(name):
            yield stage
        for made in (*(path for path in stage.rglob("*") if path.is_dir()), stage):
            sync_folder(made)
        _open_to_others(stage)
        stage.rename(directory)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    sync_folder(directory.parent)


@contextmanager
def _of(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def _open_to_others(stage: Path) -> None:
    """mkdtemp makes a private directory; others may read it as another user, under the umask."""
    umask = os.umask(0)
    os.umask(umask)
    stage.chmod(0o777 & ~umask)
