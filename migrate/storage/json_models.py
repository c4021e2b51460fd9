"""Strict, frozen JSON models (plans, rollback files, diffs), their schemas, and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from decoder.storage import MAX_FILE_BYTES
from decoder.storage import read_file as read_regular_file
from migrate.model.errors import InputError
from migrate.storage.new_file import write_new

Offset = Annotated[int, Field(ge=0, le=2**63 - 1)]
PartitionNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Model(BaseModel):
    """A frozen model that refuses unknown fields and values of other types."""

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


# A list that has at most one row for each topic-partition.
OncePerPartition = Annotated[list[_Row], AfterValidator(_check_unique)]


def write_file(model: Model, path: Path) -> None:
    """Write a model to a new local file, completely or not at all.

    Raises:
        FileExistsError: the file exists.
        OSError: the file cannot be written.
    """
    write_new(path, json.dumps(model.model_dump(mode="json"), indent=2) + "\n")


def read_file(model: type[_Model], path: Path, name: str, *, creation_hint: str) -> _Model:
    """Read a model from a file that ``write_file`` wrote.

    Args:
        model: the class of the model.
        path: the file.
        name: the kind of the file, such as "rollback file of version 1", for errors.
        creation_hint: how to make a file of this kind, for the error about a missing file.

    Raises:
        InputError: the file is missing, cannot be read, or does not match the model.
    """
    content = read_content(path, creation_hint=creation_hint)
    return parse(model, content, path, name, creation_hint=creation_hint)


def read_content(path: Path, *, creation_hint: str, largest: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a file that has at most ``largest``.

    The other arguments and errors are those of ``read_file``.
    """
    try:
        return read_regular_file(path, largest)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | IsADirectoryError)
        advice = f"; {creation_hint}" if missing else ""
        raise InputError(f"{path}: cannot be read: {error.strerror}{advice}") from error


def parse(
    model: type[_Model], content: bytes, path: Path, name: str, *, creation_hint: str = ""
) -> _Model:
    """Read a model from bytes; the arguments and errors are those of ``read_file``."""
    hint = f"; {creation_hint}" if creation_hint else ""
    if not content:
        raise InputError(f"{path}: the file is empty, not a {name}{hint}")
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            raise InputError(f"{path}: damaged, not a {name}: {first['msg']}") from error
        where = ".".join(map(str, first["loc"])) or "the whole"
        if where == "kind" and isinstance(first["input"], str):
            kind = first["input"].removeprefix("flink-offset-migrate ")
            advice = f"; `migrate show {path}` shows it"
            raise InputError(f"{path}: not a {name}: it is a {kind}{advice}") from error
        if where == "kind":
            raise InputError(f"{path}: not a {name}{hint}") from error
        if where == "version" and isinstance(first["input"], int):
            raise InputError(
                f"{path}: of version {first['input']}, not a {name}: take the release that wrote it"
            ) from error
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{path}: not a {name}: {where}: {problem}") from error


def schema_of(shape: type[Any], title: str) -> dict[str, Any]:
    """Return the JSON Schema of a model or TypedDict in its written form, with a title."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(shape).json_schema(mode="serialization"),
        "title": title,
    }
