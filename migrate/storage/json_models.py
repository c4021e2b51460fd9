"""Strict, frozen JSON models (plans, rollback files, and diffs), their schemas, and their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from decoder.kafka.split import TOPIC_PATTERN
from decoder.storage import MAX_FILE_BYTES
from decoder.storage import read_file as read_regular_file
from migrate.model.catalog import (
    CANNOT_READ_FILE,
    FILE_EDITED,
    FILE_EMPTY,
    FILE_INVALID,
    FILE_MISSING,
    FILE_NOT_JSON,
    FILE_OF_OTHER_KIND,
    FILE_OF_OTHER_VERSION,
    FILE_OF_UNKNOWN_KIND,
    FILE_TOO_LARGE,
    PATH_IS_DIRECTORY,
)
from migrate.model.errors import InputError, Refused
from migrate.model.wording import similar_names
from migrate.storage.new_file import write_new

Offset = Annotated[int, Field(ge=0, le=2**63 - 1)]
PartitionNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]
TopicName = Annotated[str, Field(pattern=TOPIC_PATTERN)]


class Model(BaseModel):
    """A frozen model that refuses unknown fields and values of the wrong type."""

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


# A SHA-256 in hexadecimal, such as the result of ``checksum``.
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

# A list with at most one row per topic-partition.
OncePerPartition = Annotated[list[_Row], AfterValidator(_check_unique)]


# The ``kind`` field of plans, rollback files, and cut-over records starts with this text.
OWN_KIND = "flink-offset-migrate "


class EditedFile(InputError):
    """The error for a file whose checksum does not match its content."""


def checksum(content: Mapping[str, Any]) -> str:
    """Return the checksum of a file's JSON without its ``sha256`` field."""
    hashed = {name: value for name, value in content.items() if name != "sha256"}
    canonical = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def as_json(model: Model) -> str:
    """Return a model as the text of a file; a ``sha256`` field is set to the checksum."""
    content = model.model_dump(mode="json")
    if "sha256" in content:
        content["sha256"] = checksum(content)
    return json.dumps(content, indent=2) + "\n"


def write_file(model: Model, path: Path) -> None:
    """Write a model to a new local file, completely or not at all.

    Raises:
        Refused: the file would be too large for ``read_file``; nothing was written.
        FileExistsError: the file exists.
        OSError: the file cannot be written.
    """
    text = as_json(model)
    if len(text) > MAX_FILE_BYTES:  # the text is ASCII: a byte per character
        raise Refused(FILE_TOO_LARGE(path=path, size=len(text), limit=MAX_FILE_BYTES))
    write_new(path, text)


def read_file(
    model: type[_Model],
    path: Path,
    name: str,
    *,
    creation_hint: str,
    edited_hint: str = "use the original file",
) -> _Model:
    """Read a model from a file that ``write_file`` wrote.

    Args:
        model: the class of the model.
        path: the file.
        name: the kind of the file, such as "rollback file of version 1", for messages.
        creation_hint: the command that creates such a file, for the message about a missing file.
        edited_hint: the remedy for a file with a wrong checksum.

    Raises:
        InputError: the file is missing, cannot be read, does not match the model, or was edited.
    """
    content = read_content(path, creation_hint=creation_hint)
    return parse(model, content, path, name, creation_hint=creation_hint, edited_hint=edited_hint)


def read_content(path: Path, *, creation_hint: str, largest: int = MAX_FILE_BYTES) -> bytes:
    """Return the content of a file of at most ``largest`` bytes.

    See ``read_file`` for the other arguments and errors.
    """
    try:
        return read_regular_file(path, largest)
    except FileNotFoundError as error:
        message = FILE_MISSING(path=path, alike=_similar_siblings(path), way_out=creation_hint)
        raise InputError(message) from error
    except IsADirectoryError as error:
        raise InputError(PATH_IS_DIRECTORY(path=path, way_out=creation_hint)) from error
    except OSError as error:
        raise InputError(CANNOT_READ_FILE(path=path, reason=error.strerror)) from error


def _similar_siblings(path: Path) -> list[str]:
    """Return the files next to a missing file that have very similar names."""
    try:
        names = [sibling.name for sibling in path.parent.iterdir() if sibling.is_file()]
    except OSError:
        return []
    # The cutoff is high, because two names that end with `.json` are already similar.
    return [str(path.with_name(name)) for name in similar_names(path.name, names, cutoff=0.8)]


def parse(
    model: type[_Model],
    content: bytes,
    path: Path,
    name: str,
    *,
    creation_hint: str,
    edited_hint: str,
    written_hint: str = "",
) -> _Model:
    """Read a model from bytes; see ``read_file`` for most arguments, and for the errors.

    ``written_hint`` is the remedy for a file that is not JSON; by default ``creation_hint``.
    """
    if not content:
        raise InputError(FILE_EMPTY(path=path, name=name, way_out=creation_hint))
    kind = name.partition(" of ")[0]
    edited = EditedFile(FILE_EDITED(path=path, kind=kind, way_out=edited_hint))
    try:
        parsed = model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            problem = first["msg"].removeprefix("Invalid JSON: ")
            way_out = written_hint or creation_hint
            raise InputError(
                FILE_NOT_JSON(path=path, name=name, problem=problem, way_out=way_out)
            ) from error
        where = ".".join(map(str, first["loc"])) or "the whole file"
        if where == "kind" and isinstance(first["input"], str):
            other = first["input"].removeprefix(OWN_KIND)
            raise InputError(
                FILE_OF_OTHER_KIND(path=path, other=other, name=name, way_out=creation_hint)
            ) from error
        if where == "kind":
            message = FILE_OF_UNKNOWN_KIND(path=path, name=name, way_out=creation_hint)
            raise InputError(message) from error
        if where == "version" and isinstance(first["input"], int):
            message = FILE_OF_OTHER_VERSION(path=path, version=first["input"], name=name)
            raise InputError(message) from error
        if _is_edited(model, content):
            raise edited from error
        problem = first["msg"].removeprefix("Value error, ")
        message = FILE_INVALID(
            path=path, name=name, field=where, problem=problem, way_out=edited_hint
        )
        raise InputError(message) from error
    if _is_edited(model, content):
        raise edited
    return parsed


def _is_edited(model: type[Model], content: bytes) -> bool:
    """Return whether a file's checksum is wrong, or is missing although the model requires it."""
    field = model.model_fields.get("sha256")
    try:
        saved = json.loads(content)
    except (ValueError, RecursionError):
        return False
    if field is None or not isinstance(saved, dict):
        return False
    saved_checksum = saved.get("sha256")
    is_expected = saved_checksum is not None or field.is_required()
    return is_expected and saved_checksum != checksum(saved)


def schema_of(shape: type[Any], title: str) -> dict[str, Any]:
    """Return the JSON Schema for the JSON output of a model or TypedDict, with this title."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(shape).json_schema(mode="serialization"),
        "title": title,
    }
