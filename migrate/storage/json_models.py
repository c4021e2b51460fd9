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
from migrate.model.errors import InputError, Refused
from migrate.model.option_names import option
from migrate.model.wording import did_you_mean, similar_names
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


# A SHA-256 in hexadecimal, such as a ``checksum``.
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

# A list with at most one row per topic-partition.
OncePerPartition = Annotated[list[_Row], AfterValidator(_check_unique)]


# The ``kind`` field of plans, rollback files, and cut-over records starts with this text.
OWN_KIND = "flink-offset-migrate "


class EditedFile(InputError):
    """A file whose checksum does not match its content."""


def checksum(content: Mapping[str, Any]) -> str:
    """Return the checksum of a file's JSON without its ``sha256`` field."""
    hashed = {name: value for name, value in content.items() if name != "sha256"}
    canonical = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def as_json(model: Model) -> str:
    """Return a model as the text of a file; a ``sha256`` field gets the other fields' checksum."""
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
    if len(text) > MAX_FILE_BYTES:  # in ASCII, each character is one byte
        raise Refused(
            f"{path} would have {len(text)} bytes, but migrate reads at most {MAX_FILE_BYTES}; "
            f"move fewer partitions at a time with {option('partitions')}"
        )
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
        edited_hint: the fix for a file with a wrong checksum.

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
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | IsADirectoryError)
        advice = f"; {creation_hint}" if missing else ""
        if isinstance(error, FileNotFoundError):
            advice = _suggest_sibling(path) or advice
        raise InputError(f"{path}: cannot be read: {error.strerror}{advice}") from error


def _suggest_sibling(path: Path) -> str:
    """Suggest a file next to a missing file if their names are very similar; else return ""."""
    try:
        names = [sibling.name for sibling in path.parent.iterdir() if sibling.is_file()]
    except OSError:
        return ""
    # The cutoff is high, because two names that end with `.json` are already similar.
    similar = similar_names(path.name, names, cutoff=0.8)
    return did_you_mean(str(path.with_name(name)) for name in similar)


def parse(
    model: type[_Model],
    content: bytes,
    path: Path,
    name: str,
    *,
    creation_hint: str = "",
    edited_hint: str,
) -> _Model:
    """Read a model from bytes; see ``read_file`` for the arguments and errors."""
    hint = f"; {creation_hint}" if creation_hint else ""
    if not content:
        raise InputError(f"{path}: the file is empty, not a {name}{hint}")
    kind = name.partition(" of ")[0]
    edited = EditedFile(
        f"{path}: the {kind} was edited (its checksum does not match); {edited_hint}"
    )
    try:
        parsed = model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            raise InputError(f"{path}: damaged, not a {name}: {first['msg']}") from error
        where = ".".join(map(str, first["loc"])) or "the whole"
        if where == "kind" and isinstance(first["input"], str):
            other = first["input"].removeprefix(OWN_KIND)
            advice = f"; to show it, run `migrate show {path}`"
            raise InputError(f"{path} is a {other}, not a {name}{advice}") from error
        if where == "kind":
            raise InputError(f"{path}: not a {name}{hint}") from error
        if where == "version" and isinstance(first["input"], int):
            raise InputError(
                f"{path} has version {first['input']} and is not a {name}; use the release of "
                "migrate that wrote it"
            ) from error
        if _is_edited(model, content):
            raise edited from error
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{path}: not a {name}: {where}: {problem}") from error
    if _is_edited(model, content):
        raise edited
    return parsed


def _is_edited(model: type[Model], content: bytes) -> bool:
    """Return whether a file's checksum is wrong, or is missing but required by the model."""
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
    """Return the JSON Schema of a model or TypedDict as written, with a title."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(shape).json_schema(mode="serialization"),
        "title": title,
    }
