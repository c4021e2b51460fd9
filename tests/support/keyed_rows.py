"""Compare rows of keyed state in Arrow with the JSON that Flink wrote for them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

from tests.golden.state.generate import STATE

_TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?"
_MOMENT = re.compile(rf"(?:([+-]?\d+-\d\d-\d\d)(?:T|$))?(?:{_TIME})?Z?")
_NOT_FINITE = {"NaN", "Infinity", "-Infinity"}


def expected_states(entry: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the states of a golden snapshot, by operator id and state name."""
    return {
        (operator["operator_id"], state["state"]): state
        for operator in json.loads((STATE / entry["expected"]).read_text())
        for state in operator["states"]
    }


def assert_same_rows(actual: pa.Table, expected: Iterable[dict[str, Any]]) -> None:
    """Assert that the rows are equal to Flink's rows, in any order."""
    left: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in expected:
        left[row["key_group"]].append(row)
    table = with_numbers(actual)
    for row in table.to_pylist():
        candidates = left[row["key_group"]]
        same = next((item for item in candidates if _is_row(row, item, actual.schema)), None)
        assert same is not None, (row, candidates)
        candidates.remove(same)
    assert not any(left.values()), left


def with_numbers(table: pa.Table) -> pa.Table:
    """Replace dates and timestamps by numbers, because Python's dates end in year 9999."""
    return table.cast(pa.schema([(field.name, _numbers(field.type)) for field in table.schema]))


def _numbers(type_: pa.DataType) -> pa.DataType:
    if types.is_timestamp(type_):
        return pa.int64()
    if types.is_date(type_):
        return pa.int32()
    if types.is_struct(type_):
        return pa.struct([(field.name, _numbers(field.type)) for field in type_])
    if types.is_map(type_):
        return pa.map_(_numbers(type_.key_type), _numbers(type_.item_type))
    if types.is_list(type_):
        return pa.list_(_numbers(type_.value_type))
    return type_


def _is_row(row: dict[str, Any], expected: dict[str, Any], schema: pa.Schema) -> bool:
    return row.keys() == expected.keys() and all(
        is_value(row[field.name], expected[field.name], field.type) for field in schema
    )


def is_value(actual: Any, expected: Any, type_: pa.DataType) -> bool:
    """Return whether the value of a column equals the value that Flink reported."""
    if actual is None or expected is None:
        return actual is expected
    if types.is_struct(type_):
        # A column also has the fields of other subclasses.
        assert isinstance(expected, dict)
        return expected.keys() <= {field.name for field in type_} and all(
            is_value(actual[field.name], expected.get(field.name), field.type) for field in type_
        )
    if types.is_map(type_):
        pairs = (
            expected.items()
            if isinstance(expected, dict)
            else ((p["key"], p["value"]) for p in expected)
        )
        return all(
            is_value(key, expected_key, type_.key_type) and is_value(value, of, type_.item_type)
            for (key, value), (expected_key, of) in _zip(actual, list(pairs))
        )
    if types.is_list(type_):
        return all(is_value(item, of, type_.value_type) for item, of in _zip(actual, expected))
    if types.is_timestamp(type_):
        return bool(actual == _moment(expected))
    if types.is_date(type_):
        return bool(actual == _day(expected))
    if types.is_decimal(type_):
        return bool(actual == Decimal(expected))
    if types.is_binary(type_):
        return bool(actual.hex() == expected)
    if types.is_floating(type_) and expected in _NOT_FINITE:
        return str(actual) == str(float(expected))
    if types.is_string(type_) and actual != expected:
        return _from_json(actual) == (expected,)  # a column of JSON, for values of several types
    return bool(actual == expected and isinstance(actual, bool) == isinstance(expected, bool))


def _zip(actual: Any, expected: Any) -> Iterable[tuple[Any, Any]]:
    assert len(actual) == len(expected), (actual, expected)
    return zip(actual, expected, strict=True)


def _moment(expected: str) -> int:
    """Return microseconds since the epoch; a time without a date is on 1970-01-01, as in Java."""
    match = _MOMENT.fullmatch(expected)
    assert match is not None, expected
    day, hour, minute, second, fraction = match.groups()
    seconds = int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)
    micros = int((fraction or "0").ljust(9, "0")[:6])
    return ((_day(day) if day else 0) * 86_400 + seconds) * 1_000_000 + micros


def _day(expected: str) -> int:
    """Return days since the epoch for any year; the calendar repeats every 400 years."""
    year, month, day = re.fullmatch(r"([+-]?\d+)-(\d\d)-(\d\d)", expected).groups()  # type: ignore[union-attr]
    cycles, rest = divmod(int(year), 400)
    days = date(rest + 400, int(month), int(day)) - date(1970, 1, 1)
    return days.days + (cycles - 1) * 146_097


def _from_json(text: str) -> tuple[Any, ...]:
    """Return the parsed JSON in a tuple; an empty tuple if the text is not JSON."""
    try:
        return (json.loads(text),)
    except ValueError:
        return ()
