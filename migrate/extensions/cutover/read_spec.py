"""Read the spec of a cut-over from strict YAML.

Each problem is reported with its key or line. A value that may be a secret is not shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.spec import Spec, SpecFile, shortened
from migrate.model.errors import InputError
from migrate.model.message import Message
from migrate.model.wording import hint, join_some, printable
from migrate.storage.json_models import OWN_KIND, Model, read_content

# The maximum size of a spec in bytes. PyYAML takes five seconds for this size.
_LARGEST_SPEC = 262_144
# The only format for numbers. Numbers in other formats, such as 0x10 or 1.5, are strings.
_INTEGER = ("tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9][0-9]{0,18})$"))
_MOST_PROBLEMS = 10
# A part without a value (``kafka:``) is read as a part without keys.
_PARTS = frozenset({"flink", "kafka", "move", "target", "timeouts"})
# If a value may be a string or a list, pydantic reports a problem for each of the two types, and
# adds the type as a suffix to the value's path. Therefore, even a list is reported as not being a
# string.
_NO_KEYS = ("constrained-str", "list[constrained-str]")
# The expected values, by the type of the pydantic error.
_EXPECTED = {
    "string_type": "a string is expected (quote a number, true, or false)",
    "bool_type": "true or false is expected",
    "list_type": "a list is expected",
    "model_type": "keys with values are expected",
    "dict_type": "keys with values are expected",
    "json_invalid": "the value is nested too deeply, or contains half of a surrogate pair",
}
_EXAMPLES = {
    "flink": "{savepoint: PATH}",
    "kafka": "{bootstrap-servers: HOST:PORT}",
    "kafka.bootstrap-servers": "HOST:PORT,HOST:PORT",
    "move.partitions": "{clicks: [0, 2]}",
    "move.topic-map": "{old: new}",
    "spark-source": "{0: topic:clicks}",
    "target": "{checkpoint-dir: PATH}",
}
# Descriptions of problems, by a part of the PyYAML message.
_YAML_PROBLEMS = {
    "'\\t'": catalog.YAML_TAB,
    "could not find expected ':'": catalog.YAML_COLON_MISSING,
    "<block": catalog.YAML_INDENTATION,
    "mapping values are not allowed": catalog.YAML_INDENTATION,
    "expected ',' or": catalog.YAML_NOT_CLOSED,
    "unexpected end of stream": catalog.YAML_NOT_CLOSED,
}


def read_spec(path: Path) -> SpecFile:
    """Read a spec.

    Raises:
        InputError: the file is missing, is not YAML, or is not a spec.
    """
    creation_hint = "pass a spec (YAML); to move from a savepoint, set flink.savepoint in the spec"
    content = read_content(path, creation_hint=creation_hint, largest=_LARGEST_SPEC)
    try:
        values = _load(content)
        if values is None:
            raise InputError(catalog.SPEC_EMPTY(path=path))
        if isinstance(values, dict):  # pydantic refuses other types
            if (kind := str(values.get("kind", ""))).startswith(OWN_KIND):
                kind = kind.removeprefix(OWN_KIND)
                raise InputError(catalog.SPEC_OF_OTHER_KIND(path=path, kind=kind))
            values |= {part: {} for part in _PARTS & values.keys() if values[part] is None}
        spec = Spec.model_validate_json(json.dumps(values), context=path.absolute().parent)
    except _RefusedYaml as error:
        raise InputError(error.reason.about(str(path))) from error
    except ValidationError as error:
        problems = dict.fromkeys(
            _problem(problem)
            for problem in error.errors(include_url=False)
            if not (isinstance(problem["input"], list) and problem["loc"][-1:] == _NO_KEYS[:1])
        )
        shown = join_some(problems, _MOST_PROBLEMS, "; ")
        raise InputError(catalog.SPEC_NOT_VALID(path=path, problems=shown)) from error
    return SpecFile(path, content, spec)


def _problem(problem: ErrorDetails) -> str:
    keys = [str(part) for part in problem["loc"] if part not in _NO_KEYS]
    name = shortened(".".join(keys)) or ("''" if keys else "the spec")
    match problem["type"]:
        case "extra_forbidden":
            return f"{name}: no such key{hint(keys[-1], _keys(keys[:-1]))}"
        case "missing":
            return f"{name}: missing" + (" (set version: 1)" if name == "version" else "")
        case "literal_error" if problem["input"] == "1":
            return f"{name}: the number 1 is expected, not a string (remove the quotes)"
        case "string_type" if isinstance(problem["input"], list):
            expected = "one string is expected, not a list"
        case "string_type" if keys[0] == "timeouts":
            expected = "a duration is expected, such as 10s or 10m"
        case kind:
            text = problem["msg"].removeprefix("Value error, ").replace("Input should", "must")
            expected = _EXPECTED.get(kind, text)
    is_example = name in _EXAMPLES and problem["type"] != "value_error"
    example = f", such as {_EXAMPLES[name]}" if is_example else ""
    return f"{name}: {expected}{example}"


def _keys(parents: list[str]) -> list[str]:
    """Return the valid keys under the path ``parents``."""
    model: Any = Spec
    for name in parents:
        field = getattr(model, "model_fields", {}).get(name.replace("-", "_"))
        model = field.annotation if field is not None else Model
    return [field.alias or name for name, field in getattr(model, "model_fields", {}).items()]


def _load(content: bytes) -> Any:
    """Return the values of a YAML document.

    Raises:
        _RefusedYaml: the content is not YAML, or it has a feature that a spec must not use.
    """
    try:
        return yaml.load(content, _Strict)
    except yaml.reader.ReaderError as error:
        position = error.position + 1
        reason = catalog.YAML_CHARACTER(problem=error.reason, character=position)
    except yaml.MarkedYAMLError as error:
        found, line = (error.problem or "").removeprefix("but "), _line(error.problem_mark)
        known = (template for part, template in _YAML_PROBLEMS.items() if part in found)
        if (template := next(known, None)) is not None:
            reason = template(line=line)
        else:
            reason = catalog.YAML_SYNTAX(problem=found, line=line)
    except RecursionError:
        reason = catalog.YAML_TOO_DEEP()
    except (ValueError, OverflowError):  # PyYAML does not turn these into a ``YAMLError``
        reason = catalog.YAML_ESCAPE()
    raise _RefusedYaml(reason)


class _RefusedYaml(yaml.YAMLError):
    """The error for a file that is not YAML, or that uses a YAML feature not allowed in a spec."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason)
        self.reason = reason


def _line(mark: Any) -> int | str:
    return mark.line + 1 if mark is not None else "unknown"


class _Strict(yaml.SafeLoader):
    """A loader of mappings, lists, strings, integers, true, false, and null.

    Keys are strings, even ``on`` and ``1``. Repeated keys, empty values, aliases, tags, and NUL
    characters are refused. (Command arguments cannot contain NUL characters.)
    """

    # Dates, fractions, and the merge key ``<<`` are omitted. A spec contains no dates or fractions,
    # and ``<<`` requires aliases, which are refused.
    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it so
        **{
            first: [(tag, pattern) for tag, pattern in known if tag.endswith((":bool", ":null"))]
            for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
        },
        **{first: [_INTEGER] for first in "-0123456789"},
    }

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            line = _line(event.start_mark)
            raise _RefusedYaml(catalog.YAML_ALIAS(alias=event.anchor, line=line))
        if event.tag is not None:
            line = _line(event.start_mark)
            raise _RefusedYaml(catalog.YAML_TAG(tag=printable(event.tag), line=line))
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode) and "\0" in node.value:
            raise _RefusedYaml(catalog.YAML_NUL(line=_line(node.start_mark)))
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping: dict[Hashable, Any] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _RefusedYaml(catalog.YAML_KEY_NOT_STRING(line=_line(key.start_mark)))
            # If a colon is missing, a key can be "sasl.password SECRET". Show only its first word.
            name, line = shortened(key.value.partition(" ")[0]), key.start_mark.line + 1
            if key.value in lines:
                repeated = catalog.YAML_KEY_REPEATED(key=name, first=lines[key.value], second=line)
                raise _RefusedYaml(repeated)
            lines[key.value] = line
            is_empty = isinstance(value, yaml.ScalarNode) and value.tag.endswith(":null")
            if is_empty and value.value == "" and key.value not in _PARTS:
                raise _RefusedYaml(catalog.YAML_KEY_EMPTY(key=name, line=line))
            mapping[key.value] = self.construct_object(value, deep=True)
        return mapping
