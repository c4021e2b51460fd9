"""Keyed states for programs: as JSON and CSV, in the shape of ``state_schema``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from decoder.keyed_state import KeyedState
from migrate.state.listing import Listed, listed


def states_json(states: Sequence[KeyedState]) -> str:
    return json.dumps({"states": [listed(state)._asdict() for state in states]}, indent=2)


def states_csv(states: Sequence[KeyedState]) -> str:
    from migrate.report.text import csv_text  # which takes what draws tables along

    return csv_text(Listed._fields, map(listed, states))
