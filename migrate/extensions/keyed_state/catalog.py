"""The messages of the keyed_state extension; ``migrate.model.catalog`` describes catalogs."""

from __future__ import annotations

from migrate.model.message import refusal, warning

STATE_OF_SEVERAL_OPERATORS = refusal(
    "state-of-several-operators",
    "{count} operators have a state {state!r}: {operators}",
    "choose one of these operators by its ID with {option.operator}",
)

# Warnings. Several messages can have the same code, because ``explanations.md`` explains codes, not
# messages.

KEYED_STATE_NOT_LISTED = warning(
    "state-unreadable",
    "operator {operator} has keyed state that cannot be listed: {error}",
)
