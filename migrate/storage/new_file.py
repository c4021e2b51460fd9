"""Writes a file, or a directory, whole and to the disk, or not at all.

A file is new, or takes another's place: plans and rollback files. A directory is new: seeds and
savepoints. What is written goes to a stage beside its place, under a name that nobody else can
have, and only then gets its own name. In a store nothing can be renamed: there files are written in
their order, and the last is to be the one without which the others are nothing.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from decoder.storage import join
from migrate.model.log import log
from migrate.storage.files import Files, is_uri

# Writes a file of a new directory: its name, its bytes.
WriteFile = Callable[[str, Iterable[bytes]], None]

# What link() fails with on disks that have no hard links (FAT, some network disks).
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def check_new(path: Path) -> None:
    """Could this file be written now? Found out by trying, under another name; nothing is left.

    Raises:
        FileExistsError: there is something of this name.
        OSError: it could not be written.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    stage = _stage(path)
    stage.open("x").close()
    stage.unlink()


@contextmanager
def named(path: Path | str) -> Iterator[None]:
    """What the system says of no file by name, as that the disk is full, is said of this one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_new(path: Path, text: str) -> None:
    """Write a file; if the process or the machine ends meanwhile, it is not there, or whole.

    On a disk without hard links it may be left empty instead.

    Raises:
        FileExistsError: there is something of this name; it is left as it is.
        OSError: it cannot be written.
    """
    stage = _stage(path)
    # What is removed below was made here: a stage that is there already fails before.
    out = stage.open("x", encoding="utf-8")
    try:
        with named(path), out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        _name(stage, path)
    finally:
        stage.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file of a directory that is staged (``new_directory``), to the disk.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with named(path), path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, text: str) -> None:
    """Write a file in the place of one that may be there; that one is there, whole, until then.

    Raises:
        OSError: it cannot be written.
    """
    stage = _stage(path)
    try:
        with named(path), stage.open("x", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        stage.replace(path)
    finally:
        stage.unlink(missing_ok=True)


def _stage(path: Path) -> Path:
    return path.with_name(f".migrate-{secrets.token_hex(8)}.tmp")


def _name(stage: Path, path: Path) -> None:
    """Give the stage its name, unless that is taken; a rename would replace what has it."""
    try:
        os.link(stage, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        return
    path.open("x").close()  # from here on the name is ours to replace
    try:
        stage.replace(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Write what a folder names to the disk: a crash of the machine could take a name away again.

    Raises:
        OSError: that failed; not where there is no such thing, or the folder may not be read.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # a folder that may be written and not read
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a disk that has no such thing
            raise
    finally:
        os.close(descriptor)


@contextmanager
def new_place(place: str, files: Files) -> Iterator[tuple[str, WriteFile]]:
    """Write a new directory, here or in a store.

    Gives where it is meanwhile, to read it back, and what writes a file of it. If it fails, nothing
    is left of what was written; where the store does not remove it either, the error names it. If
    the process is killed, a store is left with the first files.

    Args:
        place: a local path, or a store's URL; nothing is there yet.

    Raises:
        OSError: it cannot be written.
    """
    if not is_uri(place):
        with new_directory(Path(place), place) as stage:
            yield str(stage), lambda name, pieces: write_pieces(stage / name, pieces)
        return
    written: list[str] = []

    def write(name: str, pieces: Iterable[bytes]) -> None:
        written.append(join(place, name))
        files.write_pieces(written[-1], pieces)

    try:
        yield place, write
    except BaseException as error:
        if left := _taken_back(written, files):
            told = f"still there, and to be removed: {', '.join(left)}"
            if isinstance(error, Exception):
                why = getattr(error, "strerror", None) or error
                raise OSError(errno.EIO, f"{why}; {told}", place) from error
            log.warning(f"{place}: {told}")
        raise


def _taken_back(written: list[str], files: Files) -> list[str]:
    """Remove files of a store, the last one first: without it the others are nothing.

    Returns:
        Those that are still there. Where one stays, so do those that it may need.
    """
    for number in range(len(written), 0, -1):
        try:
            files.remove(written[number - 1])
        except OSError:
            with suppress(OSError):
                if not files.is_file(written[number - 1]):
                    continue
            return written[:number]
    return []


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


def unfinished(directory: Path) -> list[Path]:
    """Return directories beside a place that a killed process left, or a running one still fills.

    They are named as ``new_directory`` and ``tempfile.mkdtemp`` name theirs: ``.NAME.``, for some
    a word of what they are for, and eight characters.
    """
    name = re.compile(rf"\.{re.escape(directory.name)}(\.[a-z]+)?\.[a-z0-9_]{{8}}")
    if not directory.parent.is_dir():
        return []
    beside = directory.parent.iterdir()
    return sorted(path for path in beside if name.fullmatch(path.name) and path.is_dir())


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
