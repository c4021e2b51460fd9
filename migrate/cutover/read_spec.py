"""Read the spec of a cut-over from strict YAML. Each problem is reported with its key or line."""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from decoder.storage import read_file
from migrate.cutover.spec import PARTS, Spec, SpecFile, shortened
from migrate.cutover.spec_problems import spec_problems, yaml_problem
from migrate.model.errors import InputError
from migrate.model.wording import printable

# The maximum size of a spec, in bytes. PyYAML takes five seconds to read a file of this size.
_LARGEST_SPEC = 262_144
_DEEPEST = 16  # a spec has five levels
_MOST_DIGITS = 20
_SCALAR_TAGS = (":bool", ":int", ":float", ":null")


def read_spec(path: Path) -> SpecFile:
    """Read a spec.

    Raises:
        InputError: the file is missing, is not YAML, or is not a spec.
    """
    try:
        content = read_file(path, _LARGEST_SPEC)
    except IsADirectoryError as error:
        raise InputError(
            f"{path}: a directory; cut-over takes a spec (YAML), which names a savepoint as "
            "flink.savepoint"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        values = yaml.load(content, _Strict)
    except _RefusedYaml as error:
        raise InputError(f"{path}: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = _line(error.problem_mark)
        raise InputError(f"{path}: not YAML: {yaml_problem(error)}{line}") from error
    except yaml.reader.ReaderError as error:
        raise InputError(
            f"{path}: not YAML: {error.reason}: character {error.position + 1}"
        ) from error
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "text"
        problem = "is empty" if values is None else f"is {kind}, not keys with values"
        raise InputError(f"{path}: the spec {problem}")
    try:
        folder = path.absolute().parent
        for part in PARTS & values.keys():
            values[part] = values[part] if values[part] is not None else {}
        spec = Spec.model_validate_json(json.dumps(values), context=folder)
    except ValidationError as error:
        raise InputError(f"{path}: {spec_problems(error)}") from error
    return SpecFile(path, content, spec)


class _RefusedYaml(yaml.YAMLError):
    """The spec uses a feature of YAML that is not allowed."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem + _line(mark))


def _line(mark: Any) -> str:
    return f" (line {mark.line + 1})" if mark is not None else ""


class _Strict(yaml.SafeLoader):
    """A loader of mappings, lists, text, numbers, true, false and null.

    Keys are text, even ``on`` and ``1``. The loader refuses repeated keys, aliases, tags, deep
    nesting and huge numbers. It also refuses invalid numbers and escapes, and characters that no
    command argument can hold.
    """

    # Leave out dates, which JSON lacks, and the merge key, which needs aliases.
    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it so
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith(_SCALAR_TAGS)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedYaml(
                f"an alias, *{event.anchor}; write out what it stands for", event.start_mark
            )
        if event.tag is not None:
            raise _RefusedYaml(f"the tag {printable(event.tag)}; leave it out", event.start_mark)
        if self._depth == _DEEPEST:
            raise _RefusedYaml(f"nested deeper than {_DEEPEST} levels", event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.ScalarNode):
            _check_scalar(node)
        return node

    def fetch_more_tokens(self) -> None:
        try:
            super().fetch_more_tokens()
        except (ValueError, OverflowError) as error:
            raise _RefusedYaml(
                "an escape, or a version of YAML, that cannot be read; take it out",
                self.get_mark(),
            ) from error

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            raise _RefusedYaml(
                "a number that cannot be read; put text in quotes", node.start_mark
            ) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping: dict[Hashable, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _RefusedYaml("a key that is a list or has keys itself", key.start_mark)
            if key.value in mapping:
                raise _RefusedYaml(f"{shortened(key.value)} is there twice", node.start_mark)
            mapping[key.value] = self.construct_object(value, deep=True)
        return mapping


def _check_scalar(node: yaml.ScalarNode) -> None:
    """Refuse an integer with too many digits, and text that no file or command can hold."""
    if node.tag.endswith(":int") and len(node.value) > _MOST_DIGITS:
        raise _RefusedYaml(f"a number of more than {_MOST_DIGITS} digits", node.start_mark)
    if "\0" in node.value:
        raise _RefusedYaml("a NUL character; take it out", node.start_mark)
    try:
        # A character beyond U+FFFF may be written as two escapes, a surrogate pair, as in JSON.
        node.value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise _RefusedYaml("half of a surrogate pair; take it out", node.start_mark) from error
