"""The list of keyed states for ``migrate state`` and Spark's ``view=states``.

``migrate state`` also describes the states of Flink's own operators.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from decoder.keyed_state import KeyedState, StateKind
from decoder.keyed_state.types import Sql
from migrate.extensions.keyed_state.type_mapping import column_type, namespace_type, value_type
from migrate.model.column_types import ColumnType


class StateRow(NamedTuple):
    """A row in the list; its field names are part of the command contract.

    ``name`` is the operator's name. ``namespace_type`` is None if the state has no namespace. A
    type is also None if the values of this type cannot be read. ``reason`` explains why a state is
    unreadable, or why some values in a readable state might be unreadable.
    """

    operator_id: str
    uid: str | None
    name: str | None
    state: str
    kind: str
    key_type: str | None
    namespace_type: str | None
    value_type: str | None
    ttl: bool
    readable: bool
    reason: str | None


def state_row(state: KeyedState) -> StateRow:
    """Return the row of a state."""
    return StateRow(
        state.operator_id,
        state.uid,
        state.operator_name,
        state.name,
        state.kind.value,
        ddl(column_type(state.key)),
        ddl(namespace_type(state)),
        ddl(value_type(state)),
        state.ttl,
        state.readable,
        state.reason or state.caveat,
    )


def ddl(type_: ColumnType | None) -> str | None:
    """Return the Spark DDL of a column type; None if the type is None."""
    return type_.ddl if type_ is not None else None


# The names of two states in DataStream jobs. The first state stores the contents of windows. The
# second state maps each session to the window under which the session's contents are stored. SQL
# uses other names.
WINDOW_CONTENTS = "window-contents"
MERGING_WINDOWS = "merging-window-set"
_TIMERS = re.compile(r"_timer_state/(event|processing)_(.*)")
_TIMER_SERVICES = {
    "user-timers": "of its function",
    "window-timers": "of windows",
    "CLEANUP_TIMER": "that clean up the join",
}

_MEANINGS = {
    WINDOW_CONTENTS: "contents of each window",
    MERGING_WINDOWS: "merging windows: f0 is the current window, f1 the window with its contents",
    "LEFT_BUFFER": "interval join: left side, by time",
    "RIGHT_BUFFER": "interval join: right side, by time",
    "nfaStateName": "CEP: partial matches",
    "eventQueuesStateName": "CEP: events that wait for their watermark",
    "sharedBuffer-events": "CEP: events of partial matches",
    "sharedBuffer-events-count": "CEP: number of events for each timestamp",
    "sharedBuffer-entries": "CEP: order of the events of partial matches",
}
# The states of a window's trigger, if their operator also has the WINDOW_CONTENTS state.
_TRIGGER_MEANINGS = {
    "count": "elements counted by the window's trigger",
    "fire-time": "next time at which the window's trigger fires",
    "last-element": "the element that last fired the window's trigger",
    "timeout": "timeout of the window's trigger",
}
_SQL_MEANINGS = {
    "accState": "SQL accumulators",
    "inputState": "SQL OVER: rows of the frame, by time",
    "lastTriggeringTsState": "SQL OVER: time of the last processed rows",
    "processedCountState": "SQL OVER: number of processed rows",
    "cleanupTsState": "SQL OVER: time of the state's cleanup",
    "window-aggs": "SQL accumulators of each window or slice",
    "previous-aggs": "SQL windows: last emitted results",
    "session-window-mapping": (
        "SQL merging windows: map_key is the current window, value the window with its accumulators"
    ),
    "deduplicate-state": "SQL deduplication: stored row, or a mark that a row exists",
    "already-emitted-state-boolean": "SQL deduplication: true if the row was emitted",
    "waiting-to-emit-on-timer": "SQL deduplication: row that waits for its watermark",
    "data-state-with-append": "SQL top n: rows by sort key",
    "data-state-with-update": "SQL top n: rows by their key, with their rank",
    "data-state": "SQL top n: rows by sort key",
    "sorted-map": "SQL top n: number of rows by sort key",
    "left-records": "SQL join: left side",
    "right-records": "SQL join: right side",
    "IntervalJoinLeftCache": "SQL interval join: left side, by time",
    "IntervalJoinRightCache": "SQL interval join: right side, by time",
    "IntervalJoinLeftTimerState": "SQL interval join: time of the left side's cleanup",
    "IntervalJoinRightTimerState": "SQL interval join: time of the right side's cleanup",
    "left": "SQL temporal join: left rows that wait for their watermark",
    "right": "SQL temporal join: versions of the right side, by time",
    "next-index": "SQL temporal join: number of the next left row",
    "sortState": "SQL sort: rows buffered until their event time",
}
_SQL_PATTERNS = (
    (
        re.compile(r"distinctAcc_\d+"),
        "SQL DISTINCT: values, and the aggregates that have seen them",
    ),
    (re.compile(r"agg\d+\$\w+"), "SQL: data view of an aggregate function"),
    (re.compile(r".+_null_state"), "SQL: data view of an aggregate function, for NULL"),
)


def meaning(state: KeyedState, operator_states: Collection[str]) -> str:
    """Return a short description of one of Flink's own states; empty for any other state.

    ``operator_states`` are the names of all states in the same operator.
    """
    if state.kind is StateKind.TIMERS:
        name = _TIMERS.fullmatch(state.name)
        if name is None:
            return "pending timers"
        kind, service = name.groups()
        return f"pending {kind}-time timers {_TIMER_SERVICES.get(service, '')}".rstrip()
    if state.name == WINDOW_CONTENTS and MERGING_WINDOWS in operator_states:
        return f"{_MEANINGS[WINDOW_CONTENTS]}, under f1 of {MERGING_WINDOWS}"
    if state.name in _MEANINGS:
        return _MEANINGS[state.name]
    if WINDOW_CONTENTS in operator_states and state.name in _TRIGGER_MEANINGS:
        return _TRIGGER_MEANINGS[state.name]
    if not isinstance(state.key, Sql):
        return ""
    if state.name in _SQL_MEANINGS:
        return _SQL_MEANINGS[state.name]
    return next((text for pattern, text in _SQL_PATTERNS if pattern.fullmatch(state.name)), "")
