"""An entry of a keyed state in its JSON form: one object, what the state lacks left out.

Structs by field; a map as an object where all of its keys are text in JSON, else as a list of
{"key", "value"}; decimals and integers of any size as text, without an exponent; bytes as hex;
dates and times as Java's ``toString`` prints them; numbers that JSON does not have as "NaN",
"Infinity", "-Infinity".
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from decoder.keyed_state import Entry, KeyedState, StateKind
from decoder.keyed_state.java_values import Instant, LocalDate, LocalDateTime, LocalTime, Pairs
from decoder.keyed_state.types import Kind, Scalar

_NO_NAMESPACE = (Scalar(Kind.VOID_NAMESPACE), Scalar(Kind.GLOBAL_WINDOW))
# A scale may be any 32-bit number: digits without an exponent could be gigabytes of zeros.
_MOST_ZEROS = 10_000


def entry_json(state: KeyedState, entry: Entry) -> dict[str, Any]:
    """The object of an entry of ``state``: values that ``json.dumps`` prints as they are."""
    found = {"key_group": entry.key_group, "key": value_json(entry.key)}
    if state.namespace not in _NO_NAMESPACE:
        found["namespace"] = value_json(entry.namespace)
    if state.kind is StateKind.MAP:
        found["map_key"] = value_json(entry.map_key)
    found["value"] = value_json(entry.value)
    if state.ttl:
        found["last_access"] = entry.last_access
    return found


def value_json(value: Any) -> Any:
    """A value that the decoder gave, in its JSON form."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case Decimal():
            return _plain(value)
        case bytes():
            return value.hex()
        case Pairs():
            return _map(value)
        case Instant() | LocalDate() | LocalTime() | LocalDateTime():
            return str(value)
        case dict():
            return {name: value_json(part) for name, part in value.items()}
        case _:
            return [value_json(one) for one in value]


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _plain(value: Decimal) -> str:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and abs(exponent) > _MOST_ZEROS:
        return str(value)
    return format(value, "f")


def _map(pairs: Pairs) -> Any:
    told = [(value_json(key), value_json(value)) for key, value in pairs]
    if all(isinstance(key, str) for key, _ in told):
        return dict(told)
    return [{"key": key, "value": value} for key, value in told]
