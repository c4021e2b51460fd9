"""What is wrong with a spec, in words that name its keys and not their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from migrate.cutover import spec
from migrate.model.wording import hint, join_some
from migrate.storage.json_models import Model

_MOST_PROBLEMS = 10
# What pydantic adds to the path of a value that may be a text or a list, and of a key.
_NO_KEYS = ("constrained-str", "list[constrained-str]", "[key]")
# What is expected, by the type of pydantic's error.
_EXPECTED = {
    "string_type": "text",
    "string_too_short": "text that is not empty",
    "too_short": "a list that is not empty",
    "list_type": "a list",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "greater_than_equal": "a whole number from 0",
}
_KINDS: Mapping[type, str] = {
    str: "text",
    list: "a list",
    dict: "keys with values",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "nothing",
}


def spec_problems(error: ValidationError) -> str:
    """Return the problems of a spec, each with the name of its key, without the values."""
    problems = dict.fromkeys(map(_problem, error.errors(include_url=False)))
    return join_some(problems, _MOST_PROBLEMS, "; ")


def yaml_problem(error: yaml.MarkedYAMLError) -> str:
    """Return what is wrong with text that is not YAML, and what to do about it."""
    problem = (error.problem or "").removeprefix("but ")
    if "'\\t'" in problem:
        return "a tab; indent with spaces"
    if "could not find expected ':'" in problem:
        return "a colon is missing in this line or in the one before"
    if "<block" in problem or "mapping values are not allowed" in problem:
        return (
            "the indentation of this line or of the one before is wrong, or a colon or a quote is "
            "missing"
        )
    if "expected ',' or" in problem or "unexpected end of stream" in problem:
        return "a bracket or a quote is not closed"
    return problem


def _problem(problem: ErrorDetails) -> str:
    """Return the message for a problem that pydantic reports."""
    keys = [str(part) for part in problem["loc"] if part not in _NO_KEYS]
    is_union = len(keys) < len(problem["loc"]) and problem["loc"][-1] != "[key]"
    name = spec.shortened(".".join(keys)) or ("''" if keys else "the spec")
    message = problem["msg"]
    match problem["type"]:
        case "extra_forbidden":
            return f"{name}: no such key{hint(keys[-1], _keys(keys[:-1]))}"
        case "missing":
            return f"{name}: missing"
        case spec.MISSING_KEY:
            return f"{name}.{message}"
        case "literal_error" | "enum":
            return f"{name}: {message.removeprefix('Input should be ')} is expected"
        case "value_error":
            return f"{name}: {message.removeprefix('Value error, ')}"
        case "model_type" | "dict_type":
            known = ", ".join(_keys(keys))
            expected = "keys with values are expected" + (f" ({known})" if known else "")
        case _ if is_union:
            expected = "text, or a list of texts, is expected"
        case kind:
            as_key = " as the key" if problem["loc"][-1] == "[key]" else ""
            expected = f"{_EXPECTED.get(kind, 'another value')}{as_key} is expected"
    return f"{name}: {expected}{_unlike(problem['input'], expected)}"


def _unlike(value: Any, expected: str) -> str:
    """Return ``, not a list`` if the kind of a value says what is wrong, or an empty text."""
    kind = _KINDS.get(type(value), "")
    if not kind or kind.rpartition(" ")[2] in expected:
        return ""
    in_quotes = expected.startswith("text") and isinstance(value, bool | int | float)
    return f", not {kind}" + (" (put it in quotes)" if in_quotes else "")


def _keys(parents: list[str]) -> list[str]:
    """Return the keys that the spec allows below the key with the path ``parents``."""
    model: Any = spec.Spec
    for name in parents:
        field = getattr(model, "model_fields", {}).get(name.replace("-", "_"))
        model = field.annotation if field is not None else Model
    return [field.alias or name for name, field in getattr(model, "model_fields", {}).items()]
