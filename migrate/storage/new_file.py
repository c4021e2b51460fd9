"""Write files and directories completely or not at all.

On a local disk, the content is written under a unique name in the same directory (the stage) and
then renamed. An object store cannot rename. The caller therefore writes the most important file in
a directory last, and readers refuse a directory without this file.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice, permutations
from pathlib import Path
from typing import IO

from decoder.storage import join
from decoder.urls import redact_url
from migrate.model.catalog import ALREADY_EXISTS, FILE_INSIDE_CHECKPOINT
from migrate.model.errors import Refused, UsageError
from migrate.model.option_names import can_set, option
from migrate.model.warning import warn
from migrate.model.warning_catalog import REMAINING_FILES
from migrate.storage.files import Files, place_of
from migrate.storage.uris import AnyPath, is_uri, is_within

# A function that writes a file in a new directory. The arguments are the file's name, and its
# content in pieces.
WriteFile = Callable[[str, Iterable[bytes]], None]

# The remedy for a file that cannot be written, if the user cannot choose a different file.
MAKE_WRITABLE = "free space on its disk, or make its directory writable"

# Errors from link() on file systems without hard links (FAT, some network file systems).
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def check_new_file(name: str, path: Path) -> None:
    """Check that a new file can be written, by creating and removing a file next to it.

    ``name`` is the name of the option that contains the path.

    Raises:
        Refused: the path exists, or it is in the directory of a checkpoint, savepoint, or job.
        UsageError: the file cannot be written.
    """
    try:
        with suppress(FileNotFoundError):
            path.lstat()
            raise already_there(path)
        stage, file = _open_stage(path)
        file.close()
        stage.unlink()
    except OSError as error:
        named = f"{option(name)} {path}" if can_set(name) else str(path)
        if isinstance(error, FileNotFoundError) and not path.parent.exists():
            problem = f"the directory {path.parent} does not exist; create it"
        else:
            remedy = "choose a different file" if can_set(name) else MAKE_WRITABLE
            problem = f"cannot be written: {error.strerror}; {remedy}"
        raise UsageError(f"{named}: {problem}") from error
    # Imported here, because only commands that write a file need this module.
    from migrate.storage.recognize_file import NAMES_OF_FLINK, PARENT_LEVELS, is_of_flink

    for directory in islice(Path(os.path.realpath(path)).parents, PARENT_LEVELS):
        names = [name for name in NAMES_OF_FLINK if os.path.exists(directory / name)]
        if is_of_flink(str(directory), Files(), names):
            raise Refused(FILE_INSIDE_CHECKPOINT(path=path, directory=directory))


def check_separate(outputs: Mapping[str, AnyPath | None]) -> None:
    """Check that no two outputs of one command have the same path, and that none contains another.

    Args:
        outputs: the local path or URL of each output, by the name of its option; None or an empty
            string for no output.

    Raises:
        UsageError: two outputs have the same path, or one is inside the other.
    """
    named = {name: os.fspath(path) for name, path in outputs.items() if path}
    for (first, one), (second, other) in permutations(named.items(), 2):
        place, around = place_of(one), place_of(other)
        if not is_within(place, around):
            continue
        inner, outer = option(first, redact_url(one)), option(second, redact_url(other))
        is_same = is_within(around, place)
        what = f"{inner} and {outer} are the same path" if is_same else f"{inner} is inside {outer}"
        raise UsageError(f"{what}; choose two paths, neither inside the other")


def check_new_directory(directory: Path, *, staged: bool) -> None:
    """Check that a new directory can be written, by creating and removing a temporary directory.

    The temporary directory is created in the nearest existing directory. Missing parents are not
    created, and nothing remains.

    Args:
        directory: the final path, which is missing or an empty directory.
        staged: True if ``new_directory`` will write the directory, which requires write access to
            its parent; False if the files will be written in place.

    Raises:
        OSError: no directory can be created. ``filename`` is the nearest existing directory.
    """
    first = directory.parent if staged else directory
    existing = next(path for path in (first, *first.parents) if path.exists())
    prefix = _stage_prefix(directory) if staged else ".migrate-"
    try:
        Path(tempfile.mkdtemp(prefix=prefix, dir=existing)).rmdir()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(existing)) from error


def already_there(path: Path | str, kind: str = "file") -> Refused:
    """Return the refusal for an existing path; ``kind`` is "file" or "directory"."""
    return Refused(ALREADY_EXISTS(path=path, kind=kind))


@contextmanager
def add_path_to_errors(path: Path | str) -> Iterator[None]:
    """Add the path to system errors without a path, such as the error for a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_new(path: Path, text: str) -> None:
    """Write a new text file; see ``new_file`` for the errors."""
    with new_file(path) as out:
        out.write(text.encode())


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a new file, completely or not at all.

    If the block raises an error, the file does not exist afterward. The file also does not exist
    after a crash, except that an empty file may remain on a file system without hard links.

    Raises:
        FileExistsError: the path exists; it is not changed.
        OSError: the file cannot be written.
    """
    stage, out = _open_stage(path)
    try:
        with add_path_to_errors(path), out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        _publish(stage, path)
    finally:
        stage.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write or replace a local file, and sync it to disk; create missing parent directories.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with add_path_to_errors(path), path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, text: str) -> None:
    """Write a file, or replace it; an existing file stays complete until it is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    stage, out = _open_stage(path)
    try:
        with add_path_to_errors(path), out:
            out.write(text.encode())
            out.flush()
            os.fsync(out.fileno())
        with _errors_about(path):
            stage.replace(path)
    finally:
        stage.unlink(missing_ok=True)


def _open_stage(path: Path) -> tuple[Path, IO[bytes]]:
    """Create a file under a new name next to ``path``; an existing file is left unchanged."""
    while True:
        stage = path.with_name(f".migrate-{secrets.token_hex(8)}.tmp")
        with suppress(FileExistsError), _errors_about(path):
            return stage, stage.open("xb")


@contextmanager
def _errors_about(path: Path) -> Iterator[None]:
    """Raise a system error about a stage as an error about its final path."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _publish(stage: Path, path: Path) -> None:
    """Move a stage to its final path; raise FileExistsError if the path exists."""
    try:
        os.link(stage, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        return
    path.open("x").close()  # fails if the path exists; the rename below replaces the empty file
    try:
        stage.replace(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk, so that new files survive a machine crash.

    If the file system does not support this, or the user cannot read the folder, do nothing.

    Raises:
        OSError: the entries cannot be written.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # the user may have permission to write to the folder, but not to read it
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL: the file system does not support this
            raise
    finally:
        os.close(descriptor)


@contextmanager
def write_directory(location: str, files: Files) -> Iterator[tuple[str, WriteFile]]:
    """Write a new directory, either local or in an object store.

    The context yields a path for reading the written files, and a function that writes a file. If
    the context fails, the files are removed. The error, or a warning, lists files that could not be
    removed from an object store. If the process is killed, files remain in the object store.

    Args:
        location: a local path, or a URL in an object store. The directory must be missing or empty;
            in an object store, the caller checks this.
        files: for a URL, the storage to which to write.

    Raises:
        OSError: the directory cannot be written to.
    """
    if not is_uri(location):
        with new_directory(Path(location), location) as stage:
            yield str(stage), lambda name, pieces: write_pieces(stage / name, pieces)
        return
    written: list[str] = []

    def write(name: str, pieces: Iterable[bytes]) -> None:
        written.append(join(location, name))
        files.write_pieces(written[-1], pieces)

    try:
        yield location, write
    except BaseException as error:
        if remaining := _remove_written(written, files):
            # List all files, because the user must remove each of them.
            message = REMAINING_FILES(location=location, files=", ".join(remaining))
            if isinstance(error, Exception):
                reason = getattr(error, "strerror", None) or error
                raise OSError(errno.EIO, f"{reason}; {message.way_out}", location) from error
            warn(message)
        raise


def _remove_written(written: list[str], files: Files) -> list[str]:
    """Remove files from an object store, last file first, because readers require the last file.

    Returns:
        The remaining files (the first file that cannot be removed, and the files written before
        it).
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
    """Yield a temporary directory with the same parent, and rename it to ``directory`` at the end.

    If the process is killed, ``directory`` is missing, empty, or complete.

    Args:
        directory: the final path, which is missing or an empty directory.
        name: the user's name for the directory, for messages.

    Raises:
        OSError: the directory cannot be written, or other files were created in it in the meantime.
    """
    with _name_errors(name):
        directory.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=_stage_prefix(directory), dir=directory.parent))
    try:
        with _name_errors(name):
            yield stage
        for folder in (*(path for path in stage.rglob("*") if path.is_dir()), stage):
            sync_folder(folder)
        _apply_umask(stage)
        stage.rename(directory)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    sync_folder(directory.parent)


def _stage_prefix(directory: Path) -> str:
    """Return the name prefix of a directory's stage; ``find_unfinished`` searches for it."""
    return f".{directory.name}."


def find_unfinished(directory: Path) -> list[Path]:
    """Return the temporary directories that a killed or running process created for a path.

    The name of such a directory is ``.NAME.XXXXXXXX`` or ``.NAME.WORD.XXXXXXXX``. NAME is the name
    of the path, and ``tempfile.mkdtemp`` chooses the eight characters XXXXXXXX.
    """
    name = re.compile(rf"\.{re.escape(directory.name)}(\.[a-z]+)?\.[a-z0-9_]{{8}}")
    if not directory.parent.is_dir():
        return []
    beside = directory.parent.iterdir()
    return sorted(path for path in beside if name.fullmatch(path.name) and path.is_dir())


@contextmanager
def _name_errors(name: str) -> Iterator[None]:
    """Report a system error as a failure to write a directory, with the user's ``name`` for it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", name) from error


def _apply_umask(stage: Path) -> None:
    """Set the permissions that the umask allows, because mkdtemp creates a private directory."""
    umask = os.umask(0)
    os.umask(umask)
    stage.chmod(0o777 & ~umask)
