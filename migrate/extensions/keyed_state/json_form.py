"""The JSON format of a keyed state entry: an object that contains only the state's fields.

Values have these formats:

- a struct: an object with the struct's fields;
- a map: an object if all keys are JSON strings, else a list of {"key", "value"};
- a decimal or a BigInteger: a string. It contains an exponent only if the number would otherwise be
  very long;
- bytes: hex digits;
- a date or time: the string that ``toString`` of its java.time class returns. A java.util.Date or
  java.sql.Timestamp has the format of an Instant; for java.sql.Date and java.sql.Time, see
  ``java_values``;
- a number that JSON does not support: "NaN", "Infinity", or "-Infinity".
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from decoder.keyed_state import Entry, KeyedState, StateKind
from decoder.keyed_state.java_values import Instant, LocalDate, LocalDateTime, LocalTime, Pairs
from decoder.keyed_state.types import Kind, Scalar

# The namespace types of states without a namespace: VoidNamespace and the global window.
NO_NAMESPACE = (Scalar(Kind.VOID_NAMESPACE), Scalar(Kind.GLOBAL_WINDOW))
# A decimal with an exponent up to this limit is written without an exponent, as in 1000 for 1E+3.
# Without this limit, a decimal with a 32-bit scale could become gigabytes of zeros.
_MAX_ZEROS = 10_000


def entry_json(state: KeyedState, entry: Entry) -> dict[str, Any]:
    """Return an entry as an object that ``json.dumps`` accepts."""
    row = {"key_group": entry.key_group, "key": value_json(entry.key)}
    if state.namespace not in NO_NAMESPACE:
        row["namespace"] = value_json(entry.namespace)
    if state.kind is StateKind.MAP:
        row["map_key"] = value_json(entry.map_key)
    row["value"] = value_json(entry.value)
    if state.ttl:
        row["last_access"] = entry.last_access
    return row


def value_json(value: Any) -> Any:
    """Return a value from the decoder in its JSON format."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if math.isfinite(value):
                return value
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Decimal():
            exponent = value.as_tuple().exponent
            is_long = isinstance(exponent, int) and abs(exponent) > _MAX_ZEROS
            return str(value) if is_long else format(value, "f")
        case bytes():
            return value.hex()
        case Pairs():
            entries = [(value_json(key), value_json(part)) for key, part in value]
            if all(isinstance(key, str) for key, _ in entries):
                return dict(entries)
            return [{"key": key, "value": part} for key, part in entries]
        case Instant() | LocalDate() | LocalTime() | LocalDateTime():
            return str(value)
        case dict():
            return {name: value_json(part) for name, part in value.items()}
        case _:
            return [value_json(part) for part in value]
