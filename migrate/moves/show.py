"""``show``: read a saved plan, a rollback file, or the positions of a Spark query."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pydantic_core import from_json

from decoder.storage import join, read_file
from migrate.inputs.spark_log import committed_positions, has_begun_batch, starting_positions
from migrate.inputs.spark_query import QueryLocation
from migrate.model.catalog import (
    CUT_OVER_RECORD_SHOWN,
    SHOWN_FILE_MISSING,
    SHOWN_FILE_NOT_JSON,
    SHOWN_FILE_UNKNOWN,
    SHOWN_FILE_UNREADABLE,
)
from migrate.model.errors import InputError
from migrate.model.positions import PLAN_PREFIX, SPARK_PREFIX
from migrate.planning import Plan, plan_file
from migrate.storage.files import Files
from migrate.storage.uris import AnyPath, path_of
from migrate.targets.group import rollback_file
from migrate.targets.seed import FILES_OF_A_QUERY

# The keys are the values of ``kind`` in a file's JSON.
_READERS: dict[str, Callable[[Path], Plan | rollback_file.RollbackFile]] = {
    plan_file.KIND: plan_file.read_plan,
    rollback_file.KIND: rollback_file.read,
}


class NothingToShow(InputError):
    """The path is not a plan, a rollback file, or a checkpoint location."""


def show(file: AnyPath) -> Plan | rollback_file.RollbackFile | QueryLocation:
    """Read a saved plan, a rollback file, or the positions of a Spark query.

    Args:
        file: a saved plan, a rollback file, or the checkpoint location of a Spark query (a
            directory or URL, with or without ``spark:``).

    Raises:
        NothingToShow: ``file`` is none of these.
        InputError: ``file`` cannot be read.
        Refused: as in ``committed_positions``.
    """
    files = Files()
    name = os.fspath(file)
    path = path_of(name.removeprefix(SPARK_PREFIX).removeprefix(PLAN_PREFIX), files)
    if not files.is_file(path):
        if files.list_directory(path) is None:
            raise NothingToShow(SHOWN_FILE_MISSING(name=name))
        return _location(name, files.absolute(path), files)
    kind = _kind(name, Path(path))
    reader = _READERS.get(kind)
    if kind == "flink-offset-migrate cut-over":
        raise NothingToShow(CUT_OVER_RECORD_SHOWN(name=name))
    if reader is None:
        raise _unknown_file(name)
    return reader(Path(path))


def _unknown_file(name: str) -> NothingToShow:
    return NothingToShow(SHOWN_FILE_UNKNOWN(name=name))


def _kind(name: str, path: Path) -> str:
    try:
        document = from_json(read_file(path))
    except OSError as error:
        raise InputError(SHOWN_FILE_UNREADABLE(path=path, reason=error.strerror)) from error
    except ValueError as error:
        raise NothingToShow(SHOWN_FILE_NOT_JSON(name=name, problem=str(error))) from error
    return str(document.get("kind")) if isinstance(document, dict) else ""


def _location(name: str, directory: str, files: Files) -> QueryLocation:
    if not FILES_OF_A_QUERY & set(files.list_directory(directory) or ()):
        raise _unknown_file(name)
    if not has_begun_batch(directory, files):
        return QueryLocation(directory, starting_positions(name, directory, files), None)
    seeded = files.list_directory(join(directory, "sources")) is not None
    started = starting_positions(name, directory, files) if seeded else None
    return QueryLocation(directory, started, committed_positions(name, directory, files))
