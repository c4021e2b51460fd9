"""JSON models: strict and frozen, with schemas, and files that hold one each.

Plans, rollback files and diffs are such. A file is written completely or not at all, and must be of
the right kind and version to be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from decoder.storage import read_file as read_regular_file
from migrate.storage.new_file import write_new

Offset = Annotated[int, Field(ge=0, le=2**63 - 1)]
PartitionNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Model(BaseModel):
    """A model without conversions of types, unknown fields, and later changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _PartitionRow(Protocol):
    topic: str
    partition: int


_Row = TypeVar("_Row", bound=_PartitionRow)
_Model = TypeVar("_Model", bound=Model)


def _check_unique(rows: list[_Row]) -> list[_Row]:
    if len({(row.topic, row.partition) for row in rows}) != len(rows):
        raise ValueError("a partition occurs twice")
    return rows


# A list with at most one row per topic-partition.
OncePerPartition = Annotated[list[_Row], AfterValidator(_check_unique)]


def write_file(model: Model, path: Path) -> None:
    """Write a model to a new file on the disk, completely or not at all.

    Raises:
        FileExistsError: the file exists.
        OSError: it cannot be written.
    """
    write_new(path, json.dumps(model.model_dump(mode="json"), indent=2) + "\n")


def read_file(
    of: type[_Model],
    path: Path,
    name: str,
    unreadable: Callable[[str], Exception],
    *,
    whence: str,
) -> _Model:
    """Read what ``write_file`` wrote.

    Args:
        of: the model.
        path: the file.
        name: the kind of the file, such as "rollback file of version 1".
        unreadable: makes the error for a missing file, or one of another kind.
        whence: where such a file comes from, for the error about a missing one.
    """
    return parse(of, read_content(path, unreadable, whence=whence), path, name, unreadable)


def read_content(path: Path, unreadable: Callable[[str], Exception], *, whence: str) -> bytes:
    """Read a file's bytes; the arguments are those of ``read_file``."""
    try:
        return read_regular_file(path)
    except OSError as error:
        hint = f"; {whence}" if isinstance(error, FileNotFoundError) else ""
        raise unreadable(f"{path}: cannot be read: {error.strerror}{hint}") from error


def parse(
    of: type[_Model],
    content: bytes,
    path: Path,
    name: str,
    unreadable: Callable[[str], Exception],
) -> _Model:
    """Read a model from the bytes of a file; the arguments are those of ``read_file``."""
    try:
        return of.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        if where == "kind" and isinstance(first["input"], str):
            kind = first["input"].removeprefix("flink-offset-migrate ")
            raise unreadable(f"{path}: not a {name}: it is a {kind}") from error
        problem = first["msg"].removeprefix("Value error, ")
        raise unreadable(f"{path}: not a {name}: {where}: {problem}") from error


def schema_of(shape: type[Any], title: str) -> dict[str, Any]:
    """Return the JSON Schema of a written model, with a title."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(shape).json_schema(mode="serialization"),
        "title": title,
    }
