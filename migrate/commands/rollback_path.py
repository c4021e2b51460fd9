"""The way back of a change to a consumer group: a rollback file, written before it is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from migrate.errors import Refused, UsageError
from migrate.log import log
from migrate.storage.new_file import check_new


def check_rollback_path(path: Path) -> None:
    """Before it is asked: can the rollback file be written there?

    Raises:
        Refused: there is something of this name.
        UsageError: it cannot.
    """
    try:
        check_new(path)
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError as error:
        raise UsageError(
            f"the rollback file {path} cannot be written: {error.strerror}; name another place "
            "with --rollback-file"
        ) from error


@contextmanager
def keeping(path: Path) -> Iterator[None]:
    """While a change is made that writes its rollback file there first.

    Raises:
        Refused: there is something of this name by now.
    """
    log.info(f"what the group holds now goes to {path} first")
    try:
        yield
    except FileExistsError as error:
        raise _taken(path) from error


def _taken(path: Path) -> Refused:
    return Refused([f"{path} is there already; name a new file"])
