"""Writing of files and directories to the disk, completely or not at all.

A file is new, or replaces another: plans and rollback files. A directory is new: seeds and
savepoints. The content is staged beside its path, under a unique name, and then renamed. In a store
nothing can be renamed: there files are written in order, and the last must be the one without which
the others have no meaning.
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
from migrate.storage.files import Files
from migrate.storage.uris import is_uri

# Writes a file of a new directory: its name, its bytes.
WriteFile = Callable[[str, Iterable[bytes]], None]

# Errors of link() on disks without hard links (FAT, some network disks).
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def check_new(path: Path) -> None:
    """Check that a file can be written, by writing and removing one of another name.

    Raises:
        FileExistsError: there is something of this name.
        OSError: the file cannot be written.
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
    """Add the path to errors of the system that name no file, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_new(path: Path, text: str) -> None:
    """Write a new file; if the process or the machine ends meanwhile, it is complete or absent.

    On a disk without hard links it may be left empty instead.

    Raises:
        FileExistsError: there is something of this name; it is not changed.
        OSError: the file cannot be written.
    """
    stage = _stage(path)
    # An existing stage fails here, so that the one removed below is ours.
    out = stage.open("x", encoding="utf-8")
    try:
        with named(path), out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        _publish(stage, path)
    finally:
        stage.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file of a staged directory (``new_directory``) to the disk.

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
    """Write a file over one that may exist, which stays complete until then.

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


def _publish(stage: Path, path: Path) -> None:
    """Give a stage its name, unless that is taken; a rename would replace the other file."""
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
    """Write a folder's entries to the disk: a crash of the machine could lose a new name.

    Raises:
        OSError: that failed; not if the disk cannot do it, or the folder may not be read.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # the folder may be written and not read
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # not supported by the disk
            raise
    finally:
        os.close(descriptor)


@contextmanager
def new_place(place: str, files: Files) -> Iterator[tuple[str, WriteFile]]:
    """Write a new directory, local or in a store.

    Gives the directory's path meanwhile, to read it back, and a function that writes a file of it.
    On failure all written files are removed; if a store refuses that, the error names them. If the
    process is killed, a store keeps the first files.

    Args:
        place: a local path, or a store's URL; nothing is there yet.
        files: the stores.

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
        if remaining := _remove_written(written, files):
            advice = f"still there, and to be removed: {', '.join(remaining)}"
            if isinstance(error, Exception):
                reason = getattr(error, "strerror", None) or error
                raise OSError(errno.EIO, f"{reason}; {advice}", place) from error
            log.warning(f"{place}: {advice}")
        raise


def _remove_written(written: list[str], files: Files) -> list[str]:
    """Remove files of a store, the last one first: without it the others have no meaning.

    Returns:
        The files that are still there. If one cannot be removed, those before it are kept.
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
    """Give a staged directory to fill, which is renamed at the end.

    It is staged beside its path. If the process ends meanwhile, nothing is there under its name.

    Args:
        directory: missing or empty: a rename replaces nothing else.
        name: its user's name for it, for errors in the stage, whose own name nobody knows.

    Raises:
        OSError: it cannot be written, or something was created there meanwhile.
    """
    with _errors_of(name):
        directory.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        with _errors_of(name):
            yield stage
        for folder in (*(path for path in stage.rglob("*") if path.is_dir()), stage):
            sync_folder(folder)
        _open_to_others(stage)
        stage.rename(directory)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    sync_folder(directory.parent)


def unfinished(directory: Path) -> list[Path]:
    """Return staged directories beside a path, of a killed or a running process.

    Their names are those of ``new_directory`` and ``tempfile.mkdtemp``: ``.NAME.``, for some a word
    for their use, and eight characters.
    """
    name = re.compile(rf"\.{re.escape(directory.name)}(\.[a-z]+)?\.[a-z0-9_]{{8}}")
    if not directory.parent.is_dir():
        return []
    beside = directory.parent.iterdir()
    return sorted(path for path in beside if name.fullmatch(path.name) and path.is_dir())


@contextmanager
def _errors_of(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def _open_to_others(stage: Path) -> None:
    """Set the permissions of the umask: mkdtemp makes a private directory."""
    umask = os.umask(0)
    os.umask(umask)
    stage.chmod(0o777 & ~umask)
